package abuse

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a process of the real server.
type server struct {
	cmd   *exec.Cmd
	ended chan struct{}
	ready struct {
		URL       string `json:"url"`
		APIKey    string `json:"api_key"`
		Workspace string `json:"workspace_id"`
	}
}

// Build builds the server's binary in dir.
func Build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "deviceaccess-server")
	out, err := exec.CommandContext(
		ctx,
		"go",
		"build",
		"-o",
		program,
		"github.com/deviceaccess/terraform-provider-deviceaccess/server/cmd/deviceaccess-server",
	).
		CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return program, nil
}

// waitTimeout is long enough for a busy machine.
const waitTimeout = 8 * time.Minute

func startServer(ctx context.Context, o Options) (*server, error) {
	file := filepath.Join(o.Dir, "ready.json")
	s := &server{ended: make(chan struct{})}
	s.cmd = exec.CommandContext(
		context.WithoutCancel(ctx),
		o.Program,
		"serve",
		"--sandbox",
		"--sandbox-locks",
		"2",
		"--sandbox-speed",
		"50",
		"--listen",
		"127.0.0.1:0",
		"--ready-file",
		file, //nolint:gosec // just built
		"--data-dir",
		filepath.Join(o.Dir, "data"),
		"--database-url",
		o.DSN,
		"--allow-webhook-prefix",
		"127.0.0.0/8",
		"--log-level",
		"warn",
	)
	s.cmd.Stdout, s.cmd.Stderr = o.Log, o.Log
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	go func() {
		s.cmd.Wait() //nolint:errcheck // only the end matters
		close(s.ended)
	}()
	err := until(ctx, "the server is ready", func() (bool, error) {
		select {
		case <-s.ended:
			return false, errors.New("the server has ended")
		default:
		}
		b, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(b, &s.ready) == nil, nil
	})
	if err != nil {
		s.kill()
	}
	return s, err
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// freeze suspends the server until thaw.
func (s *server) freeze() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) } // it may have ended

func (s *server) thaw() { _ = s.cmd.Process.Signal(syscall.SIGCONT) } // it may have ended

// alive returns an error if the server has ended.
func (s *server) alive() error {
	select {
	case <-s.ended:
		return fmt.Errorf("the server has ended: %s", s.cmd.ProcessState)
	default:
		return nil
	}
}

// resetPeak makes peak count from now on.
func (s *server) resetPeak() {
	// requires Linux 4.0; otherwise the peak counts since the start
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.cmd.Process.Pid), []byte("5"), 0)
}

// peak returns the peak memory of the process, in MiB.
func (s *server) peak() (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the server's memory: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kb / 1024, err
		}
	}
	return 0, errors.New("the kernel does not report the peak memory")
}

// processor returns the processor time that the server has used.
func (s *server) processor() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if err != nil || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11]) // proc(5)
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / 100
}

// post sends a request to the API, and fails unless the status is 200.
func post(ctx context.Context, client *http.Client, url, key string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is answered %s: %.300s", url, res.Status, got)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(got, out)
}

func until(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	for {
		if done, err := ok(); err != nil || done {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("timeout waiting: %s: %w", what, ctx.Err())
		}
	}
}
