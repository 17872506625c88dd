package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// What is wrong with the settings is told before anything is made: a private database takes a while, and stays.
func TestBadSettingsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	busy := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(busy.Close)
	serve := func(more ...string) []string { return append([]string{"serve", "--listen", "127.0.0.1:0"}, more...) }
	for name, c := range map[string]struct {
		args, env []string
		want      string
	}{
		"a public URL without a scheme": {serve("--public-url", "foo"), nil, `--public-url: "foo" is not a URL that starts with http:// or https://`},
		"one of a variable":             {serve(), []string{"DEVICEACCESS_PUBLIC_URL=foo"}, `DEVICEACCESS_PUBLIC_URL (--public-url): "foo" is not a URL`},
		"a key that is short":           {serve(), []string{"DEVICEACCESS_MASTER_KEY=short"}, "openssl rand -base64 32"},
		"to migrate":                    {[]string{"migrate", "--master-key", "short"}, nil, "openssl rand -base64 32"},
		"to begin":                      {[]string{"workspaces", "create", "Home", "--master-key", "short"}, nil, "openssl rand -base64 32"},
		"the cloud by itself":           {[]string{"sandbox", "serve", "--listen", "127.0.0.1:0", "--master-key", "short"}, nil, "openssl rand -base64 32"},
		"metrics where others listen":   {serve("--metrics-listen", busy.Listener.Addr().String()), nil, "--metrics-listen"},
		"metrics nowhere":               {serve("--metrics-listen", "nowhere"), nil, "--metrics-listen"},
		"a ready file in no directory":  {serve("--ready-file", filepath.Join(p.dir, "none", "ready.json")), nil, "directory " + filepath.Join(p.dir, "none") + " does not exist"},
		"traces to no URL":              {serve("--traces-endpoint", "localhost:4318"), nil, "--traces-endpoint is no URL that begins with http:// or https://"},
		"traces of a variable":          {serve(), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT is no URL that begins"},
	} {
		p.env = c.env
		if said := p.said(c.args...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s\nwant %s", name, said, c.want)
		} else if strings.Contains(said, "OTEL") != strings.Contains(c.want, "OTEL") {
			t.Errorf("%s: the variable was not given: %s", name, said)
		}
		if left, _ := filepath.Glob(filepath.Join(p.dir, "data", "*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
			_ = os.RemoveAll(filepath.Join(p.dir, "data"))
		}
	}
}

// A key file that is damaged is told of before a database is made beside it.
func TestADamagedKeyIsToldOfFirst(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	if err := os.Mkdir(filepath.Join(p.dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.file("data/master.key", "short")
	if said := p.said("serve", "--listen", "127.0.0.1:0"); !strings.Contains(said, "data/master.key: a master key is 32 bytes") {
		t.Errorf("it says %s", said)
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "data", "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// DATABASE_URL is the variable of whatever else is run from a shell.
func TestTheDatabaseOfTheShellIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	p.env = []string{"DATABASE_URL=postgres://127.0.0.1:1/shop"}
	p.ok("migrate")
	if help := p.ok("serve", "--help"); regexp.MustCompile(`[^_]DATABASE_URL`).MatchString(help) {
		t.Errorf("the help names the variable: %s", help)
	}
}

// A server that has a schema of its own works beside what another application has in the same database, and says where it is.
func TestAServerInASchemaOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	dsn := p.database
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(t.Context()) })
	if _, err := db.Exec(t.Context(), "drop schema public cascade; create schema public; create table devices (id int); create schema deviceaccess"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"migrate"}, {"workspaces", "create", "Home"}, {"sandbox", "serve", "--listen", "127.0.0.1:0"}} {
		if said := p.said(args...); !strings.Contains(said, "(devices)") || !strings.Contains(said, "search_path=") {
			t.Errorf("%v: %s", args, said)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data", "master.key")); !os.IsNotExist(err) {
		t.Errorf("a key has been made: %v", err)
	}
	p.env = []string{"DEVICEACCESS_DATABASE_URL=" + strings.Replace(dsn, "postgres@", "postgres:s3cret@", 1) + "&search_path=deviceaccess"}
	r, cmd := p.serve("--sandbox-speed", "100")
	p.furnish(r, "258013")
	p.stop(cmd)
	var n int
	if err := db.QueryRow(t.Context(), "select count(*) from pg_tables where schemaname = 'public'").Scan(&n); err != nil || n != 1 {
		t.Errorf("the other application has %d tables: %v", n, err)
	}
	log, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if said := string(withoutKeys(log)); !strings.Contains(said, "host="+at.Host) || !strings.Contains(said, "database="+at.Database) || strings.Contains(said, "s3cret") || strings.Contains(said, "user="+at.User) {
		t.Errorf("the log says %s", said)
	}
}

// That there is no way to the database is told in one line, with what to look at.
func TestNoDatabaseIsToldInOneLine(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	const url = "postgres://me:s3cret@127.0.0.1:1/shop"
	p.env = []string{"DEVICEACCESS_DATABASE_URL=postgres://127.0.0.1:2/other"}
	for name, args := range map[string][]string{"migrate": {"migrate"}, "serve": {"serve", "--listen", "127.0.0.1:0"}} {
		said := p.said(append(args, "--database-url", url)...)
		p.oneLine(name, said, "--database-url", "127.0.0.1:1", "shop")
		if strings.Contains(said, "DEVICEACCESS_DATABASE_URL") {
			t.Errorf("%s: it was the flag: %s", name, said)
		}
	}
	p.env = []string{"DEVICEACCESS_DATABASE_URL=" + url}
	p.oneLine("a variable", p.said("migrate"), "DEVICEACCESS_DATABASE_URL", "127.0.0.1:1", "shop")
	p.env = []string{"DEVICEACCESS_DATABASE_URL=postgres://me:s3cret@127.0.0.1:port/shop"}
	p.oneLine("one that cannot be read", p.said("migrate"), "DEVICEACCESS_DATABASE_URL")
}

// oneLine checks what a command ends with that finds no database.
func (p *program) oneLine(name, said string, wanted ...string) {
	p.Helper()
	_, said, _ = strings.Cut(said, "deviceaccess-server: ")
	if strings.Count(strings.TrimSpace(said), "\n") > 0 || strings.Contains(said, `\n`) || strings.Contains(said, `\t`) || strings.Count(said, "connection refused") > 1 || strings.Contains(said, "s3cret") {
		p.Errorf("%s: %s", name, said)
	}
	for _, want := range wanted {
		if !strings.Contains(said, want) {
			p.Errorf("%s: no word of %s: %s", name, want, said)
		}
	}
}

// Who has made a workspace is told how to get a key for it, beside the id that scripts read.
func TestANewWorkspaceSaysHowToGetAKey(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	cmd := p.command("workspaces", "create", "Home")
	var said strings.Builder
	cmd.Stderr = &said
	id, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	command := "keys create --workspace " + strings.TrimSpace(string(id))
	if strings.Count(string(id), "\n") != 1 || !strings.Contains(said.String(), "deviceaccess-server "+command) {
		t.Errorf("the id is %q, and it says %s", id, said.String())
	}
	if key := p.ok(strings.Fields(command)...); !strings.HasPrefix(key, "seam_") {
		t.Error("what it says makes no key")
	}
}

// Where another server answers, whoever looks into a lock is told that it may be another.
func TestMemoryOfALockAtAnotherServer(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	r, cmd := p.serve()
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	p.until("a lock is there", func() bool {
		return p.post(r, r.APIKey, "/devices/list", "{}", &devices) == http.StatusOK && len(devices.Devices) > 0
	})
	p.stop(cmd)
	for _, status := range []int{http.StatusUnauthorized, http.StatusNotFound} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(other.Close)
		said := p.said("sandbox", "memory", "--endpoint", other.URL, devices.Devices[0].ID)
		if !strings.Contains(said, "another server") || !strings.Contains(said, "--endpoint") || !strings.Contains(said, http.StatusText(status)) {
			t.Errorf("%d: %s", status, said)
		}
	}
}
