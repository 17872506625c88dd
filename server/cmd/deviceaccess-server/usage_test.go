package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

// The error of a wrong flag is one line that names the help command.
func TestFlags_ErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	p.env = []string{"DEVICEACCESS_SHUTDOWN_DELAY="}
	for want, args := range map[string][]string{
		`--delivery-retention: "soon" is not a duration such as 90m, 12h, or 30d`: {"serve", "--delivery-retention", "soon"},
		`--audit-retention: -24h0m0s is less than 0`:                              {"serve", "--audit-retention", "-1d"},
		`--sandbox-locks: "many" is not a whole number`:                           {"serve", "--sandbox-locks", "many"},
		`--attempt-timeout: 0s is not greater than 0`:                             {"serve", "--attempt-timeout", "0"},
		`--offline-debounce: -1s is less than 0`:                                  {"serve", "--offline-debounce", "-1s"},
		`--shutdown-timeout: -1s is less than 0`:                                  {"serve", "--shutdown-timeout", "-1s"},
		`--sandbox-speed: NaN is not greater than 0`:                              {"sandbox", "serve", "--sandbox-speed", "NaN"},
		`--sandbox-speed: +Inf is too large`:                                      {"serve", "--sandbox-speed", "inf"},
		`--listen: must not be empty`:                                             {"serve", "--listen", ""},
		`--data-dir: must not be empty`:                                           {"keys", "list", "--data-dir="},
		`--database-connections: 6 is less than 7`:                                {"serve", "--database-connections", "6"},
		`--sandbox-speed: "quick" is not a number`:                                {"serve", "--sandbox-speed", "quick"},
		`unknown flag --port`:                                                     {"serve", "--port", "80"},
		`unknown flag --nonsense`:                                                 {"--nonsense"},
		`--log-format: "xml" is not one of text, json`:                            {"keys", "list", "--log-format", "xml"},
		`--lifetime: -5m0s is not greater than 0`:                                 {"keys", "create", "--lifetime", "-5m"},
		`missing required flag: --url`:                                            {"accounts", "connect", "devicecloud"},
		`--listen needs a value`:                                                  {"serve", "--listen"},
		`--overlap: "1 day" is not a duration such as 90m, 12h, or 30d`:           {"webhooks", "rotate-secret", "--overlap", "1 day"},
	} {
		help := "deviceaccess-server"
		for _, word := range args {
			if strings.HasPrefix(word, "--") {
				break
			}
			help += " " + word
		}
		want += "; run " + help + " --help for the flags"
		_, err := p.run(args...)
		if err == nil {
			t.Errorf("%v is taken", args)
			continue
		}
		if _, said, _ := strings.Cut(
			err.Error(),
			": ",
		); strings.TrimSuffix(
			said,
			"\n",
		) != "deviceaccess-server: "+want {
			t.Errorf("%v: %s\nwant %s", args, said, want)
		}
	}
	for set, want := range map[string]string{
		"DEVICEACCESS_SHUTDOWN_DELAY=later": `DEVICEACCESS_SHUTDOWN_DELAY (--shutdown-delay): "later" is not a duration such as 90m, 12h, or 30d`,
		"DEVICEACCESS_SANDBOX_LOCKS=many":   `DEVICEACCESS_SANDBOX_LOCKS (--sandbox-locks): "many" is not a whole number`,
		"DEVICEACCESS_SANDBOX_SPEED=quick":  `DEVICEACCESS_SANDBOX_SPEED (--sandbox-speed): "quick" is not a number`,
		"DEVICEACCESS_LOG_FORMAT=xml":       `DEVICEACCESS_LOG_FORMAT (--log-format): "xml" is not one of text, json`,
	} {
		p.env = []string{set}
		if said := p.said("serve"); !strings.HasSuffix(strings.TrimSuffix(said, "\n"), "deviceaccess-server: "+want) {
			t.Errorf("%s: %s\nwant %s", set, said, want)
		}
	}
}

// An empty environment variable counts as unset.
func TestFlags_EmptyVariableIsUnset(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	for _, f := range serveCommand().Flags {
		for _, name := range f.(cli.DocGenerationFlag).GetEnvVars() {
			if name != "DEVICEACCESS_CONFIG" { // the machine may have a configuration file
				p.env = append(p.env, name+"=")
			}
		}
	}
	data := filepath.Join(p.dir, "data")
	_, cmd := p.serve("--data-dir", data)
	p.stop(cmd)
	p.ok("keys", "list", "--data-dir", data)
}

func TestFlags_DurationsInDays(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	for command, wanted := range map[string][]string{"serve": {"(default: 30d)", "(default: 400d)", "(default: 10m)", "(default: 30s)"}, "webhooks rotate-secret": {"(default: 1d)"}} {
		help := p.ok(append(strings.Fields(command), "--help")...)
		for _, want := range wanted {
			if !strings.Contains(help, want) {
				t.Errorf("%s: no word of %q in %s", command, want, help)
			}
		}
	}
	p.ok("workspaces", "create", "Home")
	p.ok("keys", "create", "--name", "guest", "--lifetime", "30d")
	if list := p.ok("keys", "list", "--output", "yaml"); !strings.Contains(list, "expires_at: ") {
		t.Errorf("it does not end: %s", list)
	}
}
