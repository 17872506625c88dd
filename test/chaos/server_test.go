package chaos_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// server is the real program, restarted on the same data.
type server struct {
	testing.TB
	program, dir, dsn string
	cmd               *exec.Cmd
	log               *os.File
	ready             struct {
		URL       string `json:"url"`
		APIKey    string `json:"api_key"`
		Workspace string `json:"workspace_id"`
	}
}

func newServer(t testing.TB, dsn string) *server {
	t.Helper()
	s := &server{
		TB:      t,
		program: build(t),
		dir:     t.TempDir(),
		dsn:     dsn,
	}
	var err error
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		s.log.Close()
		if t.Failed() {
			b, _ := os.ReadFile(s.log.Name())
			t.Logf("the server's log ends with\n%s", b[max(0, len(b)-4000):])
		}
	})
	return s
}

// start starts the server and returns once it answers requests.
func (s *server) start() {
	s.Helper()
	file := filepath.Join(s.dir, "ready.json")
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	s.cmd = exec.CommandContext(
		s.Context(),
		s.program,
		"serve",
		"--sandbox",
		"--sandbox-speed",
		"20",
		"--listen",
		"127.0.0.1:0",
		"--ready-file",
		file,
		"--data-dir",
		filepath.Join(s.dir, "data"),
		"--database-url",
		s.dsn,
		"--allow-webhook-prefix",
		"127.0.0.0/8",
	)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	key := s.ready.APIKey // is shown once
	until(s, "the server is ready", func() bool {
		b, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(b, &s.ready) == nil
	})
	if s.ready.APIKey == "" {
		s.ready.APIKey = key
	}
}

// kill ends the server like kill -9.
func (s *server) kill() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// post sends a request to the server at url, which may be down.
func (s *server) post(url, path string, in map[string]any, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.ready.APIKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(out)
}

// until is testenv.Until with longer intervals: most conditions take seconds and need a database query.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	testenv.Until(t, what, func() bool {
		if ok() {
			return true
		}
		wait(t.Context(), 30*time.Millisecond)
		return false
	})
}
