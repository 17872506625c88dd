package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// The test binary is the program when it is told so.
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

// program is the server's binary with a data directory of its own.
type program struct {
	*testing.T
	dir      string
	database string   // its URL; empty: a private one in the data directory
	env      []string // besides that of the test
	log      *os.File // what serve writes; nil: server.log in dir

	openFiles int       // as many as the program may have; 0: as the test
	copied    string    // the program, where another user can run it
	conn      *pgx.Conn // to the database, once untilYes was called
}

// newProgram is a program whose database is one of the tests' cluster: no command has to start one.
func newProgram(t *testing.T) *program {
	t.Helper()
	p := newEmpty(t)
	p.database = storetest.New(t)
	return p
}

// newEmpty is a program that has nothing yet: what begins makes a private database.
func newEmpty(t *testing.T) *program {
	t.Helper()
	dir := storetest.Dir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &program{T: t, dir: dir}
}

// newPrivate is a program with a private database that is empty and up to date.
func newPrivate(t *testing.T) *program {
	t.Helper()
	p := newEmpty(t)
	p.install(filepath.Join(p.dir, "data"))
	return p
}

// command is a command that can be started.
func (p *program) command(args ...string) *exec.Cmd {
	p.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.Fatal(err)
	}
	cmd := exec.CommandContext(p.Context(), exe, args...)
	cmd.Env = append(os.Environ(), "DEVICEACCESS_TEST_RUN_MAIN=1", "DEVICEACCESS_DATA_DIR="+filepath.Join(p.dir, "data"))
	if p.database != "" {
		cmd.Env = append(cmd.Env, "DEVICEACCESS_DATABASE_URL="+p.database)
	}
	cmd.Env = append(cmd.Env, p.env...)
	if p.openFiles > 0 {
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, p.openFiles), exe}, args...)
		cmd.Path = "/bin/sh"
	}
	return cmd
}

// run runs a command to its end and returns what it prints.
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

// serve starts the server and waits until it is ready. What it logs is in p.dir, in server.log.
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
		defer log.Close() // the server has its own
	}
	cmd := p.command(append([]string{"serve", "--sandbox", "--listen", "127.0.0.1:0", "--ready-file", file}, args...)...)
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

// until is testenv.Until with longer intervals, for conditions that a server or a command answers: each answer costs processor
// time.
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

// untilYes waits until a question to the database is answered with true: that costs less than a command.
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

// post calls the API.
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

// send is post of which all that came back counts.
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

func TestCommandsWorkWhetherTheServerRunsOrNot(t *testing.T) {
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
			t.Errorf("the new key is answered %d", status)
		}
		for line := range strings.Lines(list) {
			if fields := strings.Fields(line); strings.Contains(line, " ci ") {
				p.ok("keys", "revoke", fields[0])
			}
		}
		if status := p.post(r, token, "/workspaces/get", "{}", nil); status != http.StatusUnauthorized {
			t.Errorf("the revoked key is answered %d", status)
		}
	}
}

// A server waits for a command that uses the data, as one of a timer may when the machine starts, and not for another server.
func TestServeWaitsForACommand(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	command, err := pglocal.Open(t.Context(), pglocal.Options{Dir: filepath.Join(p.dir, "data", "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for waits := false; !waits && t.Context().Err() == nil; <-time.After(10 * time.Millisecond) {
			said, _ := os.ReadFile(filepath.Join(p.dir, "server.log"))
			waits = bytes.Contains(said, []byte("waiting until a command"))
		}
		ended <- command.Close(context.WithoutCancel(t.Context()))
	}()
	_, cmd := p.serve()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if said := p.said("serve", "--listen", "127.0.0.1:0"); !strings.Contains(said, "a server is running on the data directory") {
		t.Errorf("beside a server: %s", said)
	}
	p.stop(cmd)
}

func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	r, cmd := p.serve("--sandbox-speed", "20")
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	p.until("the August lock appears", func() bool {
		p.post(r, r.APIKey, "/devices/list", `{"device_type":"august_lock"}`, &devices)
		return len(devices.Devices) == 1
	})
	device := devices.Devices[0].ID
	var code struct {
		Code struct {
			ID     string `json:"access_code_id"`
			Status string `json:"status"`
		} `json:"access_code"`
	}
	if status := p.post(r, r.APIKey, "/access_codes/create", fmt.Sprintf(`{"device_id":%q,"code":"2580","sync":true}`, device), &code); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	again, cmd := p.serve("--sandbox-speed", "20")
	if again.Workspace != r.Workspace || again.APIKey == "" {
		t.Errorf("after the restart it is workspace %s, was %s; key given: %v", again.Workspace, r.Workspace, again.APIKey != "")
	}
	if status := p.post(again, r.APIKey, "/access_codes/get", fmt.Sprintf(`{"access_code_id":%q}`, code.Code.ID), &code); status != http.StatusOK || code.Code.Status != "set" {
		t.Errorf("after the restart the code is answered %d, %s", status, code.Code.Status)
	}
	memory := p.ok("sandbox", "memory", "--endpoint", again.URL, device)
	if strings.Count(memory, "2580") != 1 {
		t.Error("the lock has forgotten the code, or has it twice")
	}
	p.stop(cmd)
}

func TestBadSettingsSayWhatToDo(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.ok("migrate")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":  {[]string{"serv"}, `unknown command "serv"; run deviceaccess-server --help for the commands`},
		"unknown below":    {[]string{"keys", "make"}, `unknown command "make"; run deviceaccess-server keys --help for the commands`},
		"word too many":    {[]string{"serve", "sandbox"}, `unexpected argument "sandbox"; run deviceaccess-server serve --help`},
		"second id":        {[]string{"keys", "revoke", "a", "b"}, `unexpected argument "b"`},
		"no lock":          {[]string{"sandbox", "memory"}, "missing argument: the device_id of the lock"},
		"lifetime":         {[]string{"keys", "create", "--lifetime", "-5m"}, "-5m0s is not greater than 0"},
		"unknown flag":     {[]string{"serve", "--port", "80"}, "port"},
		"log format":       {[]string{"serve", "--log-format", "xml"}, "text, json"},
		"no database":      {[]string{"migrate", "--database-url", "postgres://127.0.0.1:1/none"}, "connect to the database"},
		"no master key":    {[]string{"serve", "--listen", "127.0.0.1:0", "--master-key", "short"}, "openssl rand -base64 32"},
		"no workspace":     {[]string{"keys", "create"}, "workspaces create"},
		"no id":            {[]string{"keys", "revoke"}, "keys list"},
		"address in use":   {[]string{"serve", "--listen", "203.0.113.1:1"}, "--listen"},
		"no such database": {[]string{"serve", "--listen", "127.0.0.1:0", "--database-url", "nonsense://"}, "connect to the database"},
	} {
		out, err := p.run(c.args...)
		if err == nil || !strings.Contains(err.Error()+out, c.want) {
			t.Errorf("%s: %v; expected a word on %q", name, err, c.want)
		}
	}
}
