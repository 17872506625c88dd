package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// Wrong settings are reported before anything is created, since creating a private database takes a while.
func TestServe_BadSettingsLeaveNothing(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	busy := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(busy.Close)
	serve := func(more ...string) []string { return append([]string{"serve", "--listen", "127.0.0.1:0"}, more...) }
	for name, c := range map[string]struct {
		args, env []string
		want      string
	}{
		"a public URL without a scheme": {
			serve("--public-url", "foo"),
			nil,
			`--public-url: "foo" is not a URL that starts with http:// or https://`,
		},
		"one of a variable": {
			serve(),
			[]string{"DEVICEACCESS_PUBLIC_URL=foo"},
			`DEVICEACCESS_PUBLIC_URL (--public-url): "foo" is not a URL`,
		},
		"a key that is short": {serve(), []string{"DEVICEACCESS_MASTER_KEY=short"}, "openssl rand -base64 32"},
		"to migrate":          {[]string{"migrate", "--master-key", "short"}, nil, "openssl rand -base64 32"},
		"to begin": {
			[]string{"workspaces", "create", "Home", "--master-key", "short"},
			nil,
			"openssl rand -base64 32",
		},
		"the simulated cloud": {
			[]string{"sandbox", "serve", "--listen", "127.0.0.1:0", "--master-key", "short"},
			nil,
			"openssl rand -base64 32",
		},
		"metrics where others listen": {serve("--metrics-listen", busy.Listener.Addr().String()), nil, "--metrics-listen"},
		"metrics nowhere":             {serve("--metrics-listen", "nowhere"), nil, "--metrics-listen"},
		"a ready file in no directory": {
			serve("--ready-file", filepath.Join(p.dir, "none", "ready.json")),
			nil,
			"directory " + filepath.Join(p.dir, "none") + " does not exist",
		},
		"traces to no URL": {serve("--traces-endpoint", "localhost:4318"), nil, "--traces-endpoint is not a URL with http:// or https://"},
		"traces of a variable": {
			serve(),
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318"},
			"OTEL_EXPORTER_OTLP_ENDPOINT is not a URL with http",
		},
	} {
		p.env = c.env
		if said := p.said(c.args...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s\nwant %s", name, said, c.want)
		} else if strings.Contains(said, "OTEL") != strings.Contains(c.want, "OTEL") {
			t.Errorf("%s: the message names the wrong source: %s", name, said)
		}
		if left, _ := filepath.Glob(filepath.Join(p.dir, "data", "*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
			_ = os.RemoveAll(filepath.Join(p.dir, "data"))
		}
	}
}

// A malformed key file is reported before a database is created.
func TestServe_MalformedKeyFile(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	if err := os.Mkdir(filepath.Join(p.dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.file("data/master.key", "short")
	if said := p.said(
		"serve",
		"--listen",
		"127.0.0.1:0",
	); !strings.Contains(
		said,
		"data/master.key: a master key is 32 bytes",
	) {
		t.Errorf("it says %s", said)
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "data", "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// A server in its own schema works in a database of another application, and logs host and database.
func TestServe_OwnSchema(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	dsn := p.database
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(t.Context()) })
	if _, err := db.Exec(
		t.Context(),
		"drop schema public cascade; create schema public; create table devices (id int); create schema deviceaccess",
	); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0"},
		{"migrate"},
		{"workspaces", "create", "Home"},
		{"sandbox", "serve", "--listen", "127.0.0.1:0"},
	} {
		if said := p.said(args...); !strings.Contains(said, "(devices)") || !strings.Contains(said, "search_path=") {
			t.Errorf("%v: %s", args, said)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data", "master.key")); !os.IsNotExist(err) {
		t.Errorf("a key was created: %v", err)
	}
	p.env = []string{
		"DEVICEACCESS_DATABASE_URL=" + strings.Replace(
			dsn,
			"postgres@",
			"postgres:s3cret@",
			1,
		) + "&search_path=deviceaccess",
	}
	r, cmd := p.serve("--sandbox-speed", "100")
	p.furnish(r, "258013")
	p.stop(cmd)
	var n int
	if err := db.QueryRow(t.Context(), "select count(*) from pg_tables where schemaname = 'public'").
		Scan(&n); err != nil ||
		n != 1 {
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
	if said := string(
		withoutKeys(log),
	); !strings.Contains(said, "host="+at.Host) || !strings.Contains(said, "database="+at.Database) || strings.Contains(said, "s3cret") ||
		strings.Contains(said, "user="+at.User) {
		t.Errorf("the log says %s", said)
	}
}

// serve waits for a command that uses the data, such as one of a timer at boot, but not for another server.
func TestServe_WaitsForCommand(t *testing.T) {
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
	if said := p.said(
		"serve",
		"--listen",
		"127.0.0.1:0",
	); !strings.Contains(
		said,
		"a server is running on the data directory",
	) {
		t.Errorf("next to a running server: %s", said)
	}
	p.stop(cmd)
}

func TestServe_KilledLosesNothing(t *testing.T) {
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
	if status := p.post(
		r,
		r.APIKey,
		"/access_codes/create",
		fmt.Sprintf(`{"device_id":%q,"code":"2580","sync":true}`, device),
		&code,
	); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	again, cmd := p.serve("--sandbox-speed", "20")
	if again.Workspace != r.Workspace || again.APIKey == "" {
		t.Errorf(
			"after the restart the workspace is %s, was %s; key in the ready file: %v",
			again.Workspace,
			r.Workspace,
			again.APIKey != "",
		)
	}
	if status := p.post(
		again,
		r.APIKey,
		"/access_codes/get",
		fmt.Sprintf(`{"access_code_id":%q}`, code.Code.ID),
		&code,
	); status != http.StatusOK ||
		code.Code.Status != "set" {
		t.Errorf("after the restart the code is answered %d, %s", status, code.Code.Status)
	}
	memory := p.ok("sandbox", "codes", "--endpoint", again.URL, device)
	if strings.Count(memory, "2580") != 1 {
		t.Error("the lock has forgotten the code, or has it twice")
	}
	p.stop(cmd)
}

func TestServe_BadWebhookSettings(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	for _, c := range [][]string{
		{"--allow-webhook-prefix", "anywhere"},
		{"--delivery-retention", "-1h"},
		{"--metrics-listen", "nowhere"},
	} {
		out, err := p.run(append([]string{"serve", "--listen", "127.0.0.1:0"}, c...)...)
		if err == nil || !strings.Contains(out+err.Error(), strings.TrimPrefix(c[0], "--")) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// By default, the server limits failed authentications.
func TestServe_LimitsFailedAuthentications(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	r, _ := p.serve()
	const atOnce, tries = 60, 400 // the limit adds one every 2 s
	if status := p.post(r, r.APIKey, "/workspaces/get", "{}", nil); status != http.StatusOK {
		t.Fatalf("a request with a valid key: %d", status)
	}
	refused := 0
	for n := range tries {
		res, _ := p.send(r.URL+"/devices/list", fmt.Sprint("seam_guess", n), "{}")
		switch wait, _ := strconv.Atoi(res.Header.Get("Retry-After")); {
		case res.StatusCode == http.StatusTooManyRequests && wait > 0:
			refused++
		case res.StatusCode != http.StatusUnauthorized:
			t.Fatalf("attempt %d: %s, Retry-After %q", n, res.Status, res.Header.Get("Retry-After"))
		}
		if refused > 0 && n < atOnce {
			t.Fatalf("attempt %d is already rejected", n)
		}
	}
	if refused == 0 {
		t.Errorf("all %d attempts are answered 401", tries)
	}
	if status := p.post(r, r.APIKey, "/workspaces/get", "{}", nil); status != http.StatusOK {
		t.Errorf("a valid key from the same address is answered %d", status)
	}
}

// Clients that hold more connections than the limit of open files leave enough files for the database, locks, and
// endpoints.
func TestClientConnections_LeaveOpenFiles(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.openFiles = 200
	h := p.hooked()
	h.answer.Store(http.StatusOK)
	http.DefaultClient.CloseIdleConnections()

	var gone atomic.Int32
	for place := range 6 {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+place))}}
		for range 60 {
			c, err := from.DialContext(t.Context(), "tcp", strings.TrimPrefix(h.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				_, _ = io.Copy(io.Discard, c)
				gone.Add(1)
			}()
		}
	}
	h.until("most connections are closed", func() bool { return gone.Load() >= 260 })

	h.event()
	h.until("the endpoint receives the event", func() bool { return len(h.received()) > 0 })
	log, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "limit=200 connections=100") {
		t.Error("the log does not say that clients have fewer connections")
	}
	if strings.Contains(string(log), "too many open files") {
		t.Error("there were too few open files")
	}
}
