package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

var update = flag.Bool("update", false, "write the reference of settings into server/docs/settings.md")

// The reference of settings is that of the flags of serve.
func TestSettingsPage_IsFresh(t *testing.T) {
	t.Parallel()
	const page, end = "../../docs/settings.md", "<!-- end of the settings -->"
	const begin = "<!-- settings: go test ./server/cmd/deviceaccess-server -run TestSettingsPage -update -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no reference between %q and %q", page, begin, end)
	}
	fresh := before + begin + settingsReference() + end + after
	switch {
	case fresh == string(text):
	case *update:
		err = os.WriteFile(page, []byte(fresh), 0o644) //nolint:gosec // documentation
	default:
		t.Error("the reference is old: run go test ./server/cmd/deviceaccess-server -run TestSettingsPage -update")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// settingsReference describes the flags of serve by category, in Markdown.
func settingsReference() string {
	var out strings.Builder
	known := settingFlags()
	for _, category := range []string{"Server", "Console", "Data", "Sandbox", "Log"} {
		fmt.Fprintf(&out, "\n### %s\n\n", category)
		for _, f := range serveCommand().Flags {
			if c, ok := f.(cli.CategorizableFlag); !ok || c.GetCategory() != category {
				continue
			}
			out.WriteString(
				describeSetting(f, known[f.Names()[0]] != nil && !slices.Contains(secretFlags, f.Names()[0])),
			)
		}
	}
	out.WriteString("\n")
	return out.String()
}

var placeholder = regexp.MustCompile("`([A-Z:_=]+)`")

func describeSetting(f cli.Flag, inFile bool) string {
	doc, _ := f.(cli.DocGenerationFlag)
	name, facts := "--"+f.Names()[0], []string{}
	if m := placeholder.FindStringSubmatch(doc.GetUsage()); m != nil && doc.TakesValue() {
		name += " " + m[1]
	}
	for _, variable := range doc.GetEnvVars() {
		facts = append(facts, "`"+variable+"`")
	}
	switch value := strings.Trim(doc.GetValue(), `"`); {
	case f.Names()[0] == "data-dir":
		facts = append(facts, "default `/var/lib/deviceaccess` for root, else `~/.local/state/deviceaccess`")
	case doc.IsDefaultVisible() && doc.TakesValue() && value != "" && value != "[]" && value != "0":
		facts = append(facts, "default `"+value+"`")
	}
	if !inFile {
		facts = append(facts, "not in the configuration file")
	}
	usage := placeholder.ReplaceAllString(doc.GetUsage(), "$1")
	sentences := strings.Split(usage, "; ")
	for i, s := range sentences {
		sentences[i] = strings.ToUpper(s[:1]) + s[1:]
	}
	return wrapItem(fmt.Sprintf("* `%s` (%s). %s.", name, strings.Join(facts, ", "), strings.Join(sentences, ". ")))
}

// wrapItem breaks an item of a list into lines of at most 120 columns.
func wrapItem(text string) string {
	var out strings.Builder
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > 120:
			out.WriteString(line + "\n")
			line = "  " + word
		default:
			line += " " + word
		}
	}
	return out.String() + line + "\n"
}
