package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// said is all that a command prints that must fail.
func (p *program) said(args ...string) string {
	p.Helper()
	out, err := p.run(args...)
	if err == nil {
		p.Fatalf("%v succeeds and says %s", args, out)
	}
	return out + err.Error()
}

// A command with a wrong directory says so. It makes no installation there.
func TestCommandsMakeNoInstallation(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	id := "00000000-0000-7000-8000-000000000000"
	for _, args := range [][]string{{"webhooks", "list"}, {"webhooks", "deliveries"}, {"webhooks", "enable", id}, {"audit"}, {"keys", "list"}, {"keys", "create"}, {"keys", "revoke", id},
		{"keys", "rotate-encryption"}, {"accounts", "list"}, {"accounts", "connect", "devicecloud", "--url", "http://127.0.0.1:1"}, {"accounts", "disconnect", id}, {"workspaces", "list"},
		{"sandbox", "memory", id}, {"sandbox", "connect-access-systems"}, {"backup", filepath.Join(p.dir, "b")}} {
		if said := p.said(args...); !strings.Contains(said, "there is no database in "+p.dir+"/data: name the directory that serve uses with --data-dir") {
			t.Errorf("%v: %s", args, said)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data")); !os.IsNotExist(err) {
		t.Errorf("something has been made: %v", err)
	}
	home := p.ok("workspaces", "create", "Home") // one begins with it
	if list := p.ok("workspaces", "list"); !strings.Contains(list, home) {
		t.Errorf("the workspace is not there: %s", list)
	}
	if err := os.Rename(filepath.Join(p.dir, "data", "master.key"), filepath.Join(p.dir, "key")); err != nil {
		t.Fatal(err)
	}
	if said := p.said("keys", "list"); !strings.Contains(said, "there is no master key in "+p.dir+"/data/master.key") {
		t.Errorf("without the key: %s", said)
	}
	for _, args := range [][]string{{"migrate"}, {"workspaces", "create", "Other"}, {"serve", "--listen", "127.0.0.1:0"}} {
		if said := p.said(args...); !strings.Contains(said, "there is no master key in "+p.dir+"/data/master.key") || !strings.Contains(said, "nothing has been changed") {
			t.Errorf("%v without the key: %s", args, said)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data", "master.key")); !os.IsNotExist(err) {
		t.Errorf("another key has been made: %v", err)
	}
}

// A mistake in a flag is told in one line, which says how to see the help.
func TestAWrongFlagIsToldInOneLine(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	p.env = []string{"DEVICEACCESS_SHUTDOWN_DELAY="}
	for want, args := range map[string][]string{
		`--delivery-retention: "soon" is no time such as 90m, 12h or 30d; deviceaccess-server serve --help shows the flags`:        {"serve", "--delivery-retention", "soon"},
		`--audit-retention: -24h0m0s is less than 0; deviceaccess-server serve --help shows the flags`:                             {"serve", "--audit-retention", "-1d"},
		`--sandbox-locks: "many" is no whole number; deviceaccess-server serve --help shows the flags`:                             {"serve", "--sandbox-locks", "many"},
		`--attempt-timeout: 0s is not more than 0; deviceaccess-server serve --help shows the flags`:                               {"serve", "--attempt-timeout", "0"},
		`--offline-debounce: -1s is less than 0; deviceaccess-server serve --help shows the flags`:                                 {"serve", "--offline-debounce", "-1s"},
		`--shutdown-timeout: -1s is less than 0; deviceaccess-server serve --help shows the flags`:                                 {"serve", "--shutdown-timeout", "-1s"},
		`--sandbox-speed: NaN is not more than 0; deviceaccess-server sandbox serve --help shows the flags`:                        {"sandbox", "serve", "--sandbox-speed", "NaN"},
		`--sandbox-speed: +Inf is too much; deviceaccess-server serve --help shows the flags`:                                      {"serve", "--sandbox-speed", "inf"},
		`--listen: it is empty; deviceaccess-server serve --help shows the flags`:                                                  {"serve", "--listen", ""},
		`--data-dir: it is empty; deviceaccess-server keys list --help shows the flags`:                                            {"keys", "list", "--data-dir="},
		`--max-connections: 6 is less than 7; deviceaccess-server serve --help shows the flags`:                                    {"serve", "--max-connections", "6"},
		`--sandbox-speed: "quick" is no number; deviceaccess-server serve --help shows the flags`:                                  {"serve", "--sandbox-speed", "quick"},
		`there is no flag --port; deviceaccess-server serve --help shows the flags`:                                                {"serve", "--port", "80"},
		`there is no flag --nonsense; deviceaccess-server --help shows the flags`:                                                  {"--nonsense"},
		`--log-format: "xml" is none of [text json]; deviceaccess-server keys list --help shows the flags`:                         {"keys", "list", "--log-format", "xml"},
		`--lifetime: -5m0s is not a time to come; deviceaccess-server keys create --help shows the flags`:                          {"keys", "create", "--lifetime", "-5m"},
		`missing: --url; deviceaccess-server accounts connect devicecloud --help shows the flags`:                                  {"accounts", "connect", "devicecloud"},
		`--listen needs a value; deviceaccess-server serve --help shows the flags`:                                                 {"serve", "--listen"},
		`--overlap: "1 day" is no time such as 90m, 12h or 30d; deviceaccess-server webhooks rotate-secret --help shows the flags`: {"webhooks", "rotate-secret", "--overlap", "1 day"},
	} {
		_, err := p.run(args...)
		if err == nil {
			t.Errorf("%v is taken", args)
			continue
		}
		if _, said, _ := strings.Cut(err.Error(), ": "); strings.TrimSuffix(said, "\n") != "deviceaccess-server: "+want {
			t.Errorf("%v: %s\nwant %s", args, said, want)
		}
	}
	for set, want := range map[string]string{
		"DEVICEACCESS_SHUTDOWN_DELAY=later": `DEVICEACCESS_SHUTDOWN_DELAY (--shutdown-delay): "later" is no time such as 90m, 12h or 30d`,
		"DEVICEACCESS_SANDBOX_LOCKS=many":   `DEVICEACCESS_SANDBOX_LOCKS (--sandbox-locks): "many" is no whole number`,
		"DEVICEACCESS_SANDBOX_SPEED=quick":  `DEVICEACCESS_SANDBOX_SPEED (--sandbox-speed): "quick" is no number`,
		"DEVICEACCESS_LOG_FORMAT=xml":       `DEVICEACCESS_LOG_FORMAT (--log-format): "xml" is none of [text json]`,
	} {
		p.env = []string{set}
		if said := p.said("serve"); !strings.HasSuffix(strings.TrimSuffix(said, "\n"), "deviceaccess-server: "+want) {
			t.Errorf("%s: %s\nwant %s", set, said, want)
		}
	}
}

// A variable that is empty, as in many an environment file, is one that is not set.
func TestAnEmptyVariableIsTheDefault(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	for _, f := range serveCommand().Flags {
		for _, name := range f.(cli.DocGenerationFlag).GetEnvVars() {
			p.env = append(p.env, name+"=")
		}
	}
	data := filepath.Join(p.dir, "data")
	_, cmd := p.serve("--data-dir", data)
	p.stop(cmd)
	p.ok("keys", "list", "--data-dir", data)
}

// Who has no home is asked where the data is to be: that is nothing for a directory which the machine empties.
func TestWithoutAHomeTheDataDirectoryIsAskedFor(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	p.env = []string{"DEVICEACCESS_DATA_DIR=", "HOME=", "XDG_STATE_HOME="}
	elsewhere := []string{"--database-url", "postgres://127.0.0.1:1/none"}
	key := []string{"--master-key", base64.StdEncoding.EncodeToString(encryption.NewMaster())}
	for _, c := range []struct {
		arguments []string
		asked     bool
	}{
		{slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, elsewhere), true},
		{slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, elsewhere, key), true}, // what is simulated
		{slices.Concat([]string{"serve", "--listen", "127.0.0.1:0", "--sandbox-url", "http://127.0.0.1:1"}, elsewhere, key), false},
		{slices.Concat([]string{"keys", "list"}, elsewhere), true},
		{slices.Concat([]string{"keys", "list"}, elsewhere, key), false},
	} {
		cmd := p.command(c.arguments...)
		if os.Geteuid() == 0 { // root's is another
			cmd = p.as(&syscall.Credential{Uid: 65534, Gid: 65534}, cmd)
		}
		said, err := cmd.CombinedOutput()
		asked := strings.Contains(string(said), "there is no home directory to keep the data below: name a directory with --data-dir")
		if err == nil || asked != c.asked {
			t.Errorf("%v: %v: %s", c.arguments[:2], err, said)
		}
	}
}

func TestTimesAreGivenInDays(t *testing.T) {
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
	if list := p.ok("keys", "list"); !strings.Contains(list, "until ") {
		t.Errorf("it does not end: %s", list)
	}
}

// What is no backup, or not the whole one, says that nothing was changed, and leaves nothing.
func TestARestoreThatFailsHasChangedNothing(t *testing.T) {
	t.Parallel()
	b := backedUp(t)
	p := newEmpty(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	whole, err := os.ReadFile(b.withoutKey)
	if err != nil {
		t.Fatal(err)
	}
	p.file("cut", string(whole[:len(whole)*2/3]))
	p.file("end", string(whole[:len(whole)-9]))
	p.file("text", "nonsense")
	wrong := "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	for want, args := range map[string][]string{
		"the backup is damaged":     {at("cut"), "--master-key", wrong},
		"it was cut off":            {at("end"), "--master-key", wrong},
		"is something else":         {at("text"), "--master-key", wrong},
		"is the master key the one": {b.withoutKey, "--master-key", wrong},
		"openssl rand -base64 32":   {b.withoutKey, "--master-key", "abc"},
	} {
		said := p.said(append([]string{"restore", "--data-dir", at("new"), "--log-level", "error"}, args...)...)
		if !strings.Contains(said, want) || strings.Count(said, "nothing was changed") != 1 {
			t.Errorf("%s: %s", want, said)
		}
		if strings.Contains(said, "Restoring: 100") {
			t.Errorf("%s: all of it is said to be restored: %s", want, said)
		}
		if strings.Contains(want, "openssl") && strings.Contains(said, "Reading") {
			t.Errorf("a key that is none is refused late: %s", said)
		}
		if _, err := os.Stat(at("new")); !os.IsNotExist(err) {
			left, _ := filepath.Glob(at("new/*"))
			t.Errorf("%s: left behind: %v", want, left)
		}
	}
	if said := p.said("backup", at("nowhere/b.tar.gz")); !strings.Contains(said, "there is no directory "+at("nowhere")+": make it first") {
		t.Errorf("to no directory: %s", said)
	}
}

// The audit log is long: its newest are shown, and that there are more.
func TestAuditShowsTheNewest(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.ok("workspaces", "create", "Home")
	if out := p.ok("audit", "--actor", "nobody"); out != "No entries match." {
		t.Errorf("nothing: %s", out)
	}
	if out := p.ok("audit", "--actor", "nobody", "--format", "json"); out != "" {
		t.Errorf("nothing, as JSON: %s", out)
	}
	p.ok("workspaces", "create", "Other")
	if all, few := p.ok("audit"), p.ok("audit", "--limit", "1"); strings.Contains(all, "--limit") || strings.Count(all, "\n") != 2 || strings.Count(few, "\n") != 1 {
		t.Errorf("all: %s\none: %s", all, few)
	}
	cmd := p.command("audit", "--limit", "1")
	var more strings.Builder
	cmd.Stderr = &more
	if err := cmd.Run(); err != nil || !strings.Contains(more.String(), "There are more; --limit 0 shows all.") {
		t.Errorf("%v: %s", err, more.String())
	}
	for _, f := range auditCommand().Flags {
		if f.Names()[0] == "limit" && !strings.Contains(f.String(), "(default: 50)") {
			t.Errorf("%s", f)
		}
	}
	if said := p.said("accounts", "connect", "devicecloud", "--url", "http://127.0.0.1:1"); !strings.Contains(said, "there are 2 workspaces for real devices: name one") {
		t.Errorf("%s", said)
	}
	if said := p.said("keys", "revoke", "00000000-0000-7000-8000-000000000000"); !strings.Contains(said, "There is no such credential, or it is already revoked.") {
		t.Errorf("%s", said)
	}
}

// Whoever has logs has no passwords.
func TestThePasswordOfTheDatabaseIsNotPrinted(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	for _, url := range []string{
		"host=127.0.0.1 password = s3cret sslmode=bogus", "host=127.0.0.1 password= 's3 cret\\' s3cret' sslmode=bogus", "host=127.0.0.1 port=1 password=s3cret connect_timeout=1",
		"sslmode=bogus PASSWORD = s3cret", "password=s3cret host=127.0.0.1 sslmode=bogus", "host=127.0.0.1 sslmode=bogus password='s3cret", "password \t=\ts3cret nonsense",
		"postgres://me:s3cret@127.0.0.1:1/x?connect_timeout=1", "postgres://me:s3cret@127.0.0.1:port/x", "postgres://127.0.0.1/x?password=s3cret&sslmode=bogus",
		"postgres://me:s3cret%zz@127.0.0.1/x", "postgres://me:s3 s3cret@127.0.0.1:1/x", "postgres://me:a@s3cret@127.0.0.1:x/x", "host=127.0.0.1 sslpassword = s3cret sslmode=bogus",
	} {
		if said := p.said("migrate", "--database-url", url); strings.Contains(said, "s3cret") || strings.Contains(said, "s3 ") {
			t.Errorf("%q: %s", url, said)
		}
		for _, open := range []error{store.Migrate(t.Context(), url), func() error { _, err := store.Open(t.Context(), url, 1); return err }(), func() error { _, err := store.SchemaVersion(t.Context(), url); return err }()} {
			if open == nil || strings.Contains(open.Error(), "s3cret") || strings.Contains(open.Error(), "s3 ") {
				t.Errorf("%q: %v", url, open)
			}
		}
	}
}
