package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
)

// The doctor of a working installation finds nothing, and otherwise says what to do.
func TestDoctor(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	r, cmd := p.serve("--sandbox=false")
	listen := strings.TrimPrefix(r.URL, "http://")
	p.until("the server is healthy", func() bool { code, _ := p.exits("doctor", "--listen", listen); return code == 0 })
	out := p.ok("doctor", "--listen", listen, "--public-url", r.URL)
	for _, want := range []string{
		"healthy at " + r.URL, "agrees with that of the database", "MiB (", "backup", "as this program needs",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the doctor does not say %q: %s", want, out)
		}
	}
	if out := p.ok("doctor", "--listen", listen, "--output", "json"); !strings.Contains(out, `"check": "clock"`) {
		t.Errorf("the JSON is %s", out)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"plain http":      {[]string{"--public-url", "http://locks.example.com"}, "is not https"},
		"other service":   {[]string{"--public-url", r.URL + "/connect"}, "not with the health of this server"},
		"unreachable":     {[]string{"--public-url", "https://127.0.0.1:1"}, "check the name in DNS, the proxy"},
		"wrong port":      {[]string{"--listen", "127.0.0.1:1"}, "start the server, or set --listen"},
		"no database":     {[]string{"--database-url", "postgres://127.0.0.1:1/none"}, "connect to the database"},
		"another key":     {[]string{"--master-key-file", p.write("key", base64.StdEncoding.EncodeToString(encryption.NewMaster()))}, "master key"},
		"missing setting": {[]string{"--tls-cert", "/nowhere"}, "--tls-cert and --tls-key belong together"},
	} {
		code, out := p.exits(append([]string{"doctor", "--listen", listen}, c.args...)...)
		if code == 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d: %s", name, code, out)
		}
	}
	p.untilYes("true")
	if _, err := p.conn.Exec(
		t.Context(),
		"insert into last_backup (finished_at) values (now() - interval '3 days')",
	); err != nil {
		t.Fatal(err)
	}
	if code, out := p.exits("doctor", "--listen", listen); code != 0 ||
		!strings.Contains(out, "not known: back up your PostgreSQL with its own tools") {
		t.Errorf("the backup of an external database: %d: %s", code, out)
	}
	p.stop(cmd)
	if _, err := os.Stat(filepath.Join(p.dir, "data", "postgres")); !os.IsNotExist(err) {
		t.Errorf("the doctor has created a database: %v", err)
	}
}

// The doctor finds that the last backup of a private database is too old.
func TestDoctor_OldBackup(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	r, _ := p.serve("--sandbox=false")
	listen := strings.TrimPrefix(r.URL, "http://")
	p.until("the server is healthy", func() bool { code, _ := p.exits("doctor", "--listen", listen); return code == 0 })
	p.untilYes("true")
	if _, err := p.conn.Exec(
		t.Context(),
		"insert into last_backup (finished_at) values (now() - interval '3 days')",
	); err != nil {
		t.Fatal(err)
	}
	if code, out := p.exits(
		"doctor",
		"--listen",
		listen,
	); code != exitFailed ||
		!strings.Contains(out, "at least daily") {
		t.Errorf("an old backup: %d: %s", code, out)
	}
}
