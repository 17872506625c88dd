package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

// packaging is the directory of what packages install in addition to the program.
const packaging = "../../../packaging/"

// The man page and the completions of the packages are those of the commands.
func TestManPage_IsFresh(t *testing.T) {
	t.Parallel()
	fresh := map[string]string{"man/deviceaccess-server.8": manPage(command())}
	for shell, file := range map[string]string{
		"bash": "deviceaccess-server.bash",
		"zsh":  "_deviceaccess-server",
		"fish": "deviceaccess-server.fish",
	} {
		var out bytes.Buffer
		root := command()
		root.Writer = &out
		if err := root.Run(t.Context(), []string{root.Name, "completion", shell}); err != nil {
			t.Fatalf("completion %s: %v", shell, err)
		}
		fresh["completions/"+file] = out.String()
	}
	for path, want := range fresh {
		got, err := os.ReadFile(packaging + path)
		switch {
		case err == nil && string(got) == want:
		case *update:
			if err := os.WriteFile(packaging+path, []byte(want), 0o644); err != nil { //nolint:gosec // documentation
				t.Fatal(err)
			}
		default:
			t.Errorf("packaging/%s is old: run go test ./server/cmd/deviceaccess-server -run TestManPage -update", path)
		}
	}
}

// Shells ask the program what can follow.
func TestCompletion_ProposesCommandsAndFlags(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	for want, args := range map[string][]string{
		"webhooks":         {"--generate-shell-completion"},
		"create":           {"keys", "--generate-shell-completion"},
		"--metrics-listen": {"serve", "--metrics", "--generate-shell-completion"},
	} {
		if out := p.ok(args...); !strings.Contains(out, want) {
			t.Errorf("%v: %q does not contain %s", args, out, want)
		}
	}
}

// manPage returns the manual of a program for section 8 of the Unix manual.
func manPage(root *cli.Command) string {
	m := &roff{}
	m.line(".TH %s 8 \"\" \"Device Access\" \"System administration\"", strings.ToUpper(root.Name))
	m.line(".SH NAME")
	m.line("%s \\- %s", roffText(root.Name), roffText(root.Usage))
	m.line(".SH SYNOPSIS")
	m.line(".B %s", roffText(root.Name))
	m.line("[\\fIcommand\\fR] [\\fIoptions\\fR] [\\fIargument\\fR]")
	m.line(".SH DESCRIPTION")
	description, codes, _ := strings.Cut(root.Description, "Exit codes: ")
	m.text(description)
	m.line(".SH COMMANDS")
	m.commands(root, root.Name)
	m.line(".SH OPTIONS OF COMMANDS THAT USE THE DATABASE")
	m.flags(databaseFlags(), nil)
	m.line(".SH EXIT STATUS")
	m.text(codes)
	m.line(".SH FILES")
	for _, file := range [][2]string{
		{defaultConfig, "The settings, named like the flags of serve."},
		{"/etc/deviceaccess/master-key", "The master key, which the package creates."},
		{"/var/lib/deviceaccess", "The private PostgreSQL, and the simulated locks."},
		{"/var/backups/deviceaccess", "The backups of deviceaccess-server-backup.timer."},
	} {
		m.line(".TP\n.I %s", file[0])
		m.text(file[1])
	}
	m.line(".SH SEE ALSO")
	m.line(".BR systemctl (1),\n.BR journalctl (1)")
	return m.String()
}

// roff builds a manual page.
type roff struct{ strings.Builder }

func (m *roff) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// text writes paragraphs.
func (m *roff) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			m.line(".PP")
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(line, "  ") { // an example
				m.line(".br")
			}
			m.line("%s", roffText(strings.TrimSpace(line)))
		}
	}
}

// commands describes the commands below c that do something.
func (m *roff) commands(c *cli.Command, path string) {
	var shared []string
	for _, f := range databaseFlags() {
		shared = append(shared, f.Names()[0])
	}
	for _, below := range c.Commands {
		name := path + " " + below.Name
		if len(below.Commands) > 0 {
			m.commands(below, name)
			continue
		}
		m.line(".SS \"%s\"", roffText(strings.TrimSpace(name+" "+below.ArgsUsage)))
		m.text(strings.ToUpper(below.Usage[:1]) + below.Usage[1:] + ".\n\n" + below.Description)
		m.flags(below.Flags, shared)
	}
}

// flags describes flags, apart from those of the names in but.
func (m *roff) flags(flags []cli.Flag, but []string) {
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok || slices.Contains(but, f.Names()[0]) {
			continue
		}
		name, usage := "\\fB"+roffText("--"+f.Names()[0])+"\\fR", doc.GetUsage()
		if found := placeholder.FindStringSubmatch(usage); found != nil && doc.TakesValue() {
			name += " \\fI" + roffText(found[1]) + "\\fR"
		}
		usage = placeholder.ReplaceAllString(usage, "$1")
		m.line(".TP\n%s", name)
		m.text(strings.ToUpper(usage[:1]) + usage[1:] + ".")
		if value := strings.Trim(doc.GetValue(), `"`); doc.IsDefaultVisible() && doc.TakesValue() && value != "" &&
			value != "[]" && value != "0" && f.Names()[0] != "data-dir" {
			m.line("The default is %s.", roffText(value))
		}
		if variables := doc.GetEnvVars(); len(variables) > 0 {
			m.line("The variable is %s.", roffText(strings.Join(variables, ", ")))
		}
	}
}

// roffText escapes text for roff.
func roffText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
