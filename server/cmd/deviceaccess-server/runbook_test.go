package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

const runbook = "../../../server/docs/runbook.md"

func runbookText(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// commandExists requires that a command and its flags exist.
func commandExists(t *testing.T, line string) {
	t.Helper()
	c := command()
	words := strings.Fields(line)
	for len(words) > 0 && c.Command(words[0]) != nil {
		c, words = c.Command(words[0]), words[1:]
	}
	if c.Action == nil || len(c.Commands) > 0 {
		t.Errorf("%q is no command", line)
	}
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		if isFlag && name != "help" &&
			!slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
			t.Errorf("%q: there is no flag --%s", line, name)
		}
	}
}

// Every command and flag in the guide to Seam workspaces exists.
func TestConnectSeam_CommandsExist(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../server/docs/connect-seam.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^deviceaccess-server (.*)$`).FindAllStringSubmatch(string(b), -1)
	if len(lines) != 2 {
		t.Errorf("%d commands are found", len(lines))
	}
	for _, l := range lines {
		commandExists(t, l[1])
	}
}

// Every command and flag in the runbook exists.
func TestRunbook_CommandsExist(t *testing.T) {
	t.Parallel()
	text := runbookText(t)
	lines := regexp.MustCompile(`(?m)^deviceaccess-server (.*)$`).FindAllStringSubmatch(text, -1)
	lines = append(
		lines,
		regexp.MustCompile(
			"`(?:deviceaccess-server )?((?:status|devices|codes|events|webhooks|accounts|keys|serve|audit) [^`]*)`",
		).FindAllStringSubmatch(text, -1)...)
	if len(lines) < 15 {
		t.Fatalf("only %d commands are found", len(lines))
	}
	for _, l := range lines {
		commandExists(t, l[1])
	}
	serve := command().Command("serve")
	for _, m := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(text, -1) {
		known := func(c *cli.Command) bool {
			return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), m[1]) })
		}
		if !known(serve) && m[1] != "without-key" {
			t.Errorf("serve has no flag --%s", m[1])
		}
	}
}

// sectionOf returns the text of the section with a title.
func sectionOf(t *testing.T, text, title string) string {
	t.Helper()
	_, section, found := strings.Cut(text, "\n## "+title+"\n")
	if !found {
		t.Errorf("there is no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// Each call of the first table has a section that begins with a command, and explains what the command shows.
func TestRunbook_CallsBeginWithACommand(t *testing.T) {
	t.Parallel()
	text := runbookText(t)
	calls := regexp.MustCompile("(?m)^\\| \\[([^]]+)\\]\\(#[^)]+\\) \\| `(deviceaccess-server ([^`]+))` \\|$").
		FindAllStringSubmatch(text, -1)
	if len(calls) < 10 {
		t.Fatalf("only %d calls are found", len(calls))
	}
	for _, call := range calls {
		commandExists(t, call[3])
		section := sectionOf(t, text, call[1])
		_, block, _ := strings.Cut(section, "```shell\n")
		if first, _, _ := strings.Cut(block, "\n"); first != call[2] {
			t.Errorf("%q begins with %q, want %q", call[1], first, call[2])
		}
		if !strings.Contains(section, "\n| it shows | what it means | what to do |\n") {
			t.Errorf("%q does not say what the output means", call[1])
		}
	}
}

// Everything that the runbook quotes from an output is in the source of the server.
func TestRunbook_OutputsExist(t *testing.T) {
	t.Parallel()
	source := serverSource(t)
	tables := regexp.MustCompile(`(?m)^\| it shows \|.*\n\|---.*\n((?:\|.*\n)+)`).
		FindAllStringSubmatch(runbookText(t), -1)
	quote, found := regexp.MustCompile("`([^`]+)`"), 0
	for _, table := range tables {
		for row := range strings.Lines(table[1]) {
			shows, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			for _, quoted := range quote.FindAllStringSubmatch(shows, -1) {
				found++
				for part := range strings.SplitSeq(quoted[1], "…") {
					if !strings.Contains(source, part) {
						t.Errorf("the server never shows %q: %s", quoted[1], row)
					}
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d quotations are found", found)
	}
}

// The runbook names every metric that is served, and no other. Package test/alerts tests its alerts.
func TestRunbook_MetricsExist(t *testing.T) {
	t.Parallel()
	text := runbookText(t)
	p := newProgram(t)
	r, _ := p.serve("--metrics-listen", "127.0.0.1:0", "--metrics-per-device")
	log, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	where := regexp.MustCompile(`msg="serving metrics" url=(\S+)`).FindSubmatch(log)
	if where == nil {
		t.Fatalf("the log does not contain the URL of the metrics: %s", log)
	}
	p.until("devices are found", func() bool {
		var found struct{ Devices []struct{} }
		p.post(r, r.APIKey, "/devices/list", "{}", &found)
		return len(found.Devices) > 0
	})
	told := ""
	name := regexp.MustCompile(`deviceaccess_[a-z_]+`)
	p.until("all metrics are there", func() bool {
		p.post(r, r.APIKey, "/devices/list", "{}", nil)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, string(where[1]), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		told = string(b)
		return err == nil && strings.Contains(told, "deviceaccess_health{") &&
			strings.Contains(told, "deviceaccess_device_")
	})
	for _, n := range name.FindAllString(text, -1) {
		// These appear only once they have a value, or with a private database.
		if n != "deviceaccess_" && !strings.Contains(told, "\n"+n) &&
			n != "deviceaccess_last_backup_timestamp_seconds" &&
			n != "deviceaccess_account_calls_left" &&
			!strings.HasPrefix(n, "deviceaccess_webhook_attempt_seconds") {
			t.Errorf("%s is not served", n)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (deviceaccess_[a-z_]+)`).FindAllStringSubmatch(told, -1) {
		if !strings.Contains(text, "`"+m[1]) {
			t.Errorf("%s is not in the runbook", m[1])
		}
	}
}

// Every log message and key in the runbook is one of the server's.
func TestRunbook_LogLinesExist(t *testing.T) {
	t.Parallel()
	source := serverSource(t)
	lines := regexp.MustCompile("`([^`]+)`[^`(]*\\(`(?:INFO|WARN|ERROR)`[^)]*\\)(?:\\s+with((?:[^`.:]*`[a-z_]+`)+))?").
		FindAllStringSubmatch(runbookText(t), -1)
	if len(lines) < 5 {
		t.Fatalf("the runbook describes %d log lines", len(lines))
	}
	keys := regexp.MustCompile("`([a-z_]+)`")
	calls := strings.Join(
		regexp.MustCompile(`(?i)\blog\.(?:With|Debug|Info|Warn|Error|Log)\w*\((?:[^()]|\([^()]*\))*\)`).
			FindAllString(source, -1),
		"\n",
	) + strings.Join(
		regexp.MustCompile(`attributes = append\(.*`).FindAllString(source, -1),
		"\n",
	)
	for _, line := range lines {
		if message := strings.Join(strings.Fields(line[1]), " "); !strings.Contains(source, message) {
			t.Errorf("the server logs no %q", message)
		}
		for _, key := range keys.FindAllStringSubmatch(line[2], -1) {
			if !strings.Contains(calls, `"`+key[1]+`"`) {
				t.Errorf("%q has no %q", line[1], key[1])
			}
		}
	}
}

// serverSource returns the source of the server, without tests and with split string literals joined.
func serverSource(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`" \+\s+"`).ReplaceAllString(all.String(), "")
}
