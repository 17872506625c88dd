package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// TestMain runs the program itself if the variable is set.
func TestMain(m *testing.M) {
	if os.Getenv("DEVICEACCESS_TEST_RUN_MAIN") == "1" {
		main()
		return
	}
	storetest.Main(m, store.Migrate, store.MigrationsVersion())
}

type ready struct {
	URL       string `json:"url"`
	APIKey    string `json:"api_key"`
	Workspace string `json:"workspace_id"`
}

// program runs the server's commands on its own data directory.
type program struct {
	*testing.T
	dir      string
	database string   // URL; empty for a private database in the data directory
	env      []string // in addition to the environment of the test
	log      *os.File // output of serve; nil for server.log in dir

	openFiles int       // limit of open files; 0 for that of the test
	copied    string    // path of a copy that other users can run
	conn      *pgx.Conn // connection of untilYes
}

// newProgram returns a program with a database in the cluster of the tests, so that commands need not start one.
func newProgram(t *testing.T) *program {
	t.Helper()
	p := newEmpty(t)
	p.database = storetest.New(t)
	return p
}

// newEmpty returns a program without data. Its first command creates a private database.
func newEmpty(t *testing.T) *program {
	t.Helper()
	dir := storetest.Dir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &program{T: t, dir: dir}
}

// newPrivate returns a program with a migrated private database.
func newPrivate(t *testing.T) *program {
	t.Helper()
	p := newEmpty(t)
	p.install(filepath.Join(p.dir, "data"))
	return p
}

// command returns a command that has not been started.
func (p *program) command(args ...string) *exec.Cmd {
	p.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.Fatal(err)
	}
	cmd := exec.CommandContext(p.Context(), exe, args...)
	cmd.Env = append(
		os.Environ(),
		"DEVICEACCESS_TEST_RUN_MAIN=1",
		"DEVICEACCESS_DATA_DIR="+filepath.Join(p.dir, "data"),
		"DEVICEACCESS_CONFIG=/dev/null", // not that of the machine
	)
	if p.database != "" {
		cmd.Env = append(cmd.Env, "DEVICEACCESS_DATABASE_URL="+p.database)
	}
	cmd.Env = append(cmd.Env, p.env...)
	if p.openFiles > 0 {
		cmd.Args = append(
			[]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, p.openFiles), exe},
			args...)
		cmd.Path = "/bin/sh"
	}
	return cmd
}

// run runs a command and returns its standard output. The error contains standard error.
func (p *program) run(args ...string) (stdout string, err error) {
	p.Helper()
	var out, errs bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), err
}

func (p *program) ok(args ...string) string {
	p.Helper()
	out, err := p.run(args...)
	if err != nil {
		p.Fatalf("%v: %v", args, err)
	}
	return strings.TrimSpace(out)
}

// serve starts the server and waits until it is ready. It logs to server.log in p.dir.
func (p *program) serve(args ...string) (ready, *exec.Cmd) {
	p.Helper()
	file := filepath.Join(p.dir, "ready.json")
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		p.Fatal(err)
	}
	log := p.log
	if log == nil {
		var err error
		if log, err = os.Create(filepath.Join(p.dir, "server.log")); err != nil {
			p.Fatal(err)
		}
		defer log.Close() // the server has its own descriptor
	}
	cmd := p.command(
		append([]string{"serve", "--sandbox", "--listen", "127.0.0.1:0", "--ready-file", file}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	var r ready
	testenv.UntilOr(p, "the server is ready", func() bool {
		b, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(b, &r) == nil
	}, func() {
		said, _ := os.ReadFile(log.Name())
		p.Logf("the server says: %s", withoutKeys(said))
	})
	st, err := os.Stat(file)
	if err != nil || st.Mode().Perm() != 0o600 {
		p.Errorf("the ready file can be read by others: %v %v", st.Mode(), err)
	}
	return r, cmd
}

// until is testenv.Until with longer intervals, for conditions that are expensive to check.
func (p *program) until(what string, ok func() bool) {
	p.Helper()
	testenv.Until(p, what, func() bool {
		if ok() {
			return true
		}
		<-time.After(20 * time.Millisecond)
		return false
	})
}

// untilYes waits until an SQL condition is true. It is cheaper than running a command.
func (p *program) untilYes(sql string, args ...any) {
	p.Helper()
	if p.conn == nil {
		dsn, ok := p.database, true
		if dsn == "" {
			dsn, ok = p.dsn()
		}
		if !ok {
			p.Fatal("no server has a database that could be asked")
		}
		conn, err := pgx.Connect(p.Context(), dsn)
		if err != nil {
			p.Fatal(err)
		}
		p.Cleanup(func() { _ = conn.Close(context.Background()) })
		p.conn = conn
	}
	p.until(sql, func() bool {
		var yes bool
		if err := p.conn.QueryRow(p.Context(), "select "+sql, args...).Scan(&yes); err != nil {
			p.Fatalf("%s: %v", sql, err)
		}
		return yes
	})
}

// post sends a request and returns the status.
func (p *program) post(r ready, key, path, body string, out any) int {
	p.Helper()
	res, raw := p.send(r.URL+path, key, body)
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			p.Fatalf("%s: %s", path, raw)
		}
	}
	return res.StatusCode
}

// send sends a request and returns the whole response.
func (p *program) send(url, key, body string) (*http.Response, []byte) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	return res, raw
}

func (p *program) stop(cmd *exec.Cmd) {
	p.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		p.Errorf("SIGTERM ends the server with %v", err)
	}
}

func TestCommands_WithAndWithoutServer(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	r, cmd := p.serve()
	for _, running := range []bool{true, false} {
		if !running {
			p.stop(cmd)
		}
		token := p.ok("keys", "create", "--name", "ci")
		if !strings.HasPrefix(token, "seam_test") {
			t.Errorf("running %v: the key is no key of a sandbox", running)
		}
		list := p.ok("keys", "list")
		if strings.Contains(list, token) || !strings.Contains(list, "ci") {
			t.Errorf("running %v: the list shows the key, or does not name it", running)
		}
		if !running {
			break
		}
		if status := p.post(r, token, "/workspaces/get", "{}", nil); status != http.StatusOK {
			t.Errorf("a request with the new key: %d", status)
		}
		for line := range strings.Lines(list) {
			if fields := strings.Fields(line); strings.Contains(line, " ci ") {
				p.ok("keys", "revoke", fields[0])
			}
		}
		if status := p.post(r, token, "/workspaces/get", "{}", nil); status != http.StatusUnauthorized {
			t.Errorf("a request with the revoked key: %d", status)
		}
	}
}

func TestErrors_SayWhatToDo(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.ok("migrate")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown command": {[]string{"serv"}, `unknown command "serv"; run deviceaccess-server --help for the commands`},
		"unknown below": {
			[]string{"keys", "make"},
			`unknown command "make"; run deviceaccess-server keys --help for the commands`,
		},
		"word too many": {
			[]string{"serve", "sandbox"},
			`unexpected argument "sandbox"; run deviceaccess-server serve --help`,
		},
		"second id":    {[]string{"keys", "revoke", "a", "b"}, `unexpected argument "b"`},
		"no lock":      {[]string{"sandbox", "codes"}, "missing argument: the device_id of the lock"},
		"lifetime":     {[]string{"keys", "create", "--lifetime", "-5m"}, "-5m0s is not greater than 0"},
		"unknown flag": {[]string{"serve", "--port", "80"}, "port"},
		"log format":   {[]string{"serve", "--log-format", "xml"}, "text, json"},
		"no database":  {[]string{"migrate", "--database-url", "postgres://127.0.0.1:1/none"}, "connect to the database"},
		"no master key": {[]string{"serve", "--listen", "127.0.0.1:0", "--master-key", "short"}, "openssl rand " +
			"-base64 32"},
		"no workspace":   {[]string{"keys", "create"}, "workspaces create"},
		"no id":          {[]string{"keys", "revoke"}, "keys list"},
		"address in use": {[]string{"serve", "--listen", "203.0.113.1:1"}, "--listen"},
		"no such database": {[]string{"serve", "--listen", "127.0.0.1:0", "--database-url", "nonsense://"}, "connect to " +
			"the database"},
	} {
		out, err := p.run(c.args...)
		if err == nil || !strings.Contains(err.Error()+out, c.want) {
			t.Errorf("%s: %v; expected a word on %q", name, err, c.want)
		}
	}
}

// The version of a build that is not a release is that of its module, if it has one.
func TestVersionOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set, module, want string
	}{
		{"1.2.3", "v0.9.0", "1.2.3"},
		{"dev", "v0.1.0", "0.1.0"},
		{"dev", "v0.0.0-20260101000000-abcdefabcdef+dirty", "0.0.0-20260101000000-abcdefabcdef+dirty"},
		{"dev", "(devel)", "dev"},
		{"dev", "", "dev"},
	} {
		if got := versionOf(c.set, &debug.BuildInfo{Main: debug.Module{Version: c.module}}); got != c.want {
			t.Errorf("%q with %q is %q, want %q", c.set, c.module, got, c.want)
		}
	}
	if got := versionOf("dev", nil); got != "dev" {
		t.Errorf("without a module it is %q", got)
	}
}

func TestPrintVersion(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abc"},
		{Key: "vcs.modified", Value: "true"},
	}}
	if err := printVersion(&out, info); err != nil {
		t.Fatal(err)
	}
	if want := regexp.MustCompile(
		`^version +dev\ncommit +0123abc, modified\ngo +go1\.\S+ \w+/\w+\nschema +\d+\n$`,
	); !want.Match(
		out.Bytes(),
	) {
		t.Errorf("the version is %s", out.Bytes())
	}
}

// said runs a command that must fail and returns its output.
func (p *program) said(args ...string) string {
	p.Helper()
	out, err := p.run(args...)
	if err == nil {
		p.Fatalf("%v succeeds and says %s", args, out)
	}
	return out + err.Error()
}

// A command with a wrong data directory fails and creates nothing there.
func TestCommands_CreateNoInstallation(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	id := "00000000-0000-7000-8000-000000000000"
	for _, args := range [][]string{
		{"webhooks", "list"},
		{"webhooks", "deliveries"},
		{"webhooks", "enable", id},
		{"audit"},
		{"keys", "list"},
		{"keys", "create"},
		{"keys", "revoke", id},
		{"keys", "rotate-encryption"},
		{"accounts", "list"},
		{"accounts", "connect", "devicecloud", "--url", "http://127.0.0.1:1"},
		{"accounts", "disconnect", id},
		{"workspaces", "list"},
		{"sandbox", "codes", id},
		{"sandbox", "connect-access-systems"},
		{"backup", filepath.Join(p.dir, "b")},
	} {
		if said := p.said(
			args...); !strings.Contains(
			said,
			"there is no database in "+p.dir+"/data: set --data-dir to the directory of serve",
		) {
			t.Errorf("%v: %s", args, said)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data")); !os.IsNotExist(err) {
		t.Errorf("the data directory was created: %v", err)
	}
	home := p.ok("workspaces", "create", "Home") // this command creates the installation
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
		if said := p.said(
			args...); !strings.Contains(said, "there is no master key in "+p.dir+"/data/master.key") ||
			!strings.Contains(said, "nothing has been changed") {
			t.Errorf("%v without the key: %s", args, said)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data", "master.key")); !os.IsNotExist(err) {
		t.Errorf("another key was created: %v", err)
	}
}

// Without a home directory, commands that keep data require --data-dir.
func TestDataDir_RequiredWithoutHome(t *testing.T) {
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
		{slices.Concat([]string{"serve", "--listen", "127.0.0.1:0"}, elsewhere, key), true}, // for simulated devices
		{
			slices.Concat([]string{"serve", "--listen", "127.0.0.1:0", "--sandbox-url", "http://127.0.0.1:1"}, elsewhere, key),
			false,
		},
		{slices.Concat([]string{"keys", "list"}, elsewhere), true},
		{slices.Concat([]string{"keys", "list"}, elsewhere, key), false},
	} {
		cmd := p.command(c.arguments...)
		if os.Geteuid() == 0 { // root has another default
			cmd = p.as(&syscall.Credential{Uid: 65534, Gid: 65534}, cmd)
		}
		said, err := cmd.CombinedOutput()
		asked := strings.Contains(
			string(said),
			"there is no home directory for the data: set a directory with --data-dir",
		)
		if err == nil || asked != c.asked {
			t.Errorf("%v: %v: %s", c.arguments[:2], err, said)
		}
	}
}

// The password of the database appears in no message.
func TestDatabaseURL_PasswordIsNotPrinted(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	for _, url := range []string{
		"host=127.0.0.1 password = s3cret sslmode=bogus",
		"host=127.0.0.1 password= 's3 cret\\' s3cret' sslmode=bogus",
		"host=127.0.0.1 port=1 password=s3cret connect_timeout=1",
		"sslmode=bogus PASSWORD = s3cret",
		"password=s3cret host=127.0.0.1 sslmode=bogus",
		"host=127.0.0.1 sslmode=bogus " +
			"password='s3cret",
		"password \t=\ts3cret nonsense",
		"postgres://me:s3cret@127.0.0.1:1/x?connect_timeout=1",
		"postgres://me:s3cret@127.0.0.1:port/x",
		"postgres://127.0.0.1/x?password=s3cret&sslmode=bogus",
		"postgres://me:s3cret%zz@127.0.0.1/x",
		"postgres://me:s3 s3cret@127.0.0.1:1/x",
		"postgres://me:a@s3cret@127.0.0.1:x/x",
		"host=127.0.0.1 sslpassword = s3cret sslmode=bogus",
	} {
		if said := p.said(
			"migrate",
			"--database-url",
			url,
		); strings.Contains(said, "s3cret") ||
			strings.Contains(said, "s3 ") {
			t.Errorf("%q: %s", url, said)
		}
		for _, open := range []error{
			store.Migrate(t.Context(), url),
			func() error { _, err := store.Open(t.Context(), url, 1); return err }(),
			func() error { _, err := store.SchemaVersion(t.Context(), url); return err }(),
		} {
			if open == nil || strings.Contains(open.Error(), "s3cret") || strings.Contains(open.Error(), "s3 ") {
				t.Errorf("%q: %v", url, open)
			}
		}
	}
}

// DATABASE_URL belongs to other programs of a shell.
func TestDatabaseURL_IgnoresGenericVariable(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	p.env = []string{"DATABASE_URL=postgres://127.0.0.1:1/shop"}
	p.ok("migrate")
	if help := p.ok("serve", "--help"); regexp.MustCompile(`[^_]DATABASE_URL`).MatchString(help) {
		t.Errorf("the help names the variable: %s", help)
	}
}

// The error of an unreachable database is one line with what to check.
func TestDatabaseURL_UnreachableIsOneLine(t *testing.T) {
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

// oneLine checks the error of a command that cannot reach its database.
func (p *program) oneLine(name, said string, wanted ...string) {
	p.Helper()
	_, said, _ = strings.Cut(said, "deviceaccess-server: ")
	if strings.Count(strings.TrimSpace(said), "\n") > 0 || strings.Contains(said, `\n`) ||
		strings.Contains(said, `\t`) ||
		strings.Count(said, "connection refused") > 1 ||
		strings.Contains(said, "s3cret") {
		p.Errorf("%s: %s", name, said)
	}
	for _, want := range wanted {
		if !strings.Contains(said, want) {
			p.Errorf("%s: no word of %s: %s", name, want, said)
		}
	}
}

// said is a buffer for concurrent writes and reads.
type said struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.String()
}
