// Package gateways runs third-party programs for tests: real gateways with simulated devices, and clients of the API.
// It installs them once from npm into the user's cache directory. The package must not know what a test does with them.
package gateways

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// ErrMissing reports that something a lab needs is not on this machine.
var ErrMissing = errors.New("needed for a lab")

// Lab is an installed set of npm packages with scripts.
type Lab struct {
	// Cache is a directory in the user's cache, for files kept between runs.
	Cache   string
	scripts string
	node    string
	modules string
}

// Install installs the npm packages that files (package.json, package-lock.json, and the scripts, in the root) lock, if
// necessary. They need Node.js of version major or newer. Install returns ErrMissing if a program is missing.
func Install(ctx context.Context, name string, files fs.FS, major int) (*Lab, error) {
	node, err := findNode(ctx, major)
	if err != nil {
		return nil, err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a directory for the lab %s: %w", name, err)
	}
	packages, err := Hash(files, "package.json", "package-lock.json")
	if err != nil {
		return nil, err
	}
	root := filepath.Join(user, "deviceaccess", "labs")
	l := &Lab{Cache: filepath.Join(root, name+"-"+packages), node: node}
	l.modules = filepath.Join(l.Cache, "node_modules")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("create a directory for the lab %s: %w", name, err)
	}
	err = CreateOnce(ctx, l.Cache, func(dir string) error { return npm(ctx, files, dir) })
	if err != nil {
		return nil, err
	}
	scripts, err := Hash(files, "*.cjs")
	if err != nil {
		return nil, err
	}
	l.scripts = filepath.Join(l.Cache, "scripts-"+scripts)
	return l, CreateOnce(ctx, l.scripts, func(dir string) error { return write(files, dir, "*.cjs") })
}

// Scripts returns the directory of the scripts. It changes with them, so that files kept in it never belong to other
// scripts.
func (l *Lab) Scripts() string { return l.scripts }

// Require skips the test unless tests of gateways are enabled: they take minutes and much of the machine.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv("GATEWAYS") != "1" && os.Getenv("REQUIRE_ALL") != "1" {
		t.Skip("skipped; set GATEWAYS=1 to run it: make test-gateways")
	}
}

// CreateOnce creates the directory place if it does not exist, in one process only. The directory exists only once fill
// has succeeded.
func CreateOnce(ctx context.Context, place string, fill func(dir string) error) error {
	if _, err := os.Stat(place); err == nil {
		return nil
	}
	lock, err := pglocal.WaitLock(ctx, place+".lock")
	if err != nil {
		return fmt.Errorf("wait for another process to create %s: %w", place, err)
	}
	defer lock.Release() //nolint:errcheck // it ends with this process
	if _, err := os.Stat(place); err == nil {
		return nil
	}
	half, err := os.MkdirTemp(filepath.Dir(place), "making-")
	if err != nil {
		return fmt.Errorf("create %s: %w", place, err)
	}
	defer os.RemoveAll(half) //nolint:errcheck // renamed or useless
	if err := fill(half); err != nil {
		return err
	}
	return os.Rename(half, place)
}

func findNode(ctx context.Context, major int) (string, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("%w: Node.js %d or newer on the PATH", ErrMissing, major)
	}
	out, err := exec.CommandContext(ctx, node, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%w: a Node.js that runs (%w)", ErrMissing, err)
	}
	if m := regexp.MustCompile(`^v(\d+)`).FindSubmatch(out); m != nil {
		if have, _ := strconv.Atoi(string(m[1])); have >= major {
			return node, nil
		}
	}
	return "", fmt.Errorf("%w: Node.js %d or newer (the one on the PATH is %.20s)", ErrMissing, major, out)
}

func npm(ctx context.Context, files fs.FS, dir string) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return fmt.Errorf("%w: npm on the PATH", ErrMissing)
	}
	if err := write(files, dir, "package*.json", ".npmrc"); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm packages that could not be installed (%w): %s", ErrMissing, err, out)
	}
	return nil
}

func matching(files fs.FS, patterns []string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		found, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	return names, nil
}

func write(files fs.FS, dir string, patterns ...string) error {
	names, err := matching(files, patterns)
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Hash returns a short hash of the files that match patterns.
func Hash(files fs.FS, patterns ...string) (string, error) {
	names, err := matching(files, patterns)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// Process is a running script. It ends with its standard input, and so with the test process.
type Process struct {
	cmd   *exec.Cmd
	input io.Closer
	ended chan struct{}

	stderr tail
}

// Stderr returns the end of the process's standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// Run starts a script of the lab, and decodes the first line of JSON that it prints into ready. It fails after the
// duration within.
func (l *Lab) Run(script string, ready any, within time.Duration, args ...string) (*Process, error) {
	cmd := exec.Command( //nolint:noctx // it outlives the test that starts it
		l.node,
		append(
			[]string{filepath.Join(l.scripts, script)},
			args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+l.modules)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, input: input, ended: make(chan struct{})}
	cmd.Stderr = &p.stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", script, err)
	}
	line := make(chan error, 1)
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(output)
		decoded := false
		for lines.Scan() {
			if !decoded && json.Unmarshal(lines.Bytes(), ready) == nil {
				decoded = true
				line <- nil
			}
		}
		err := cmd.Wait()
		if !decoded {
			line <- fmt.Errorf("%s ended before it was ready: %w: %s", script, err, p.Stderr())
		}
	}()
	select {
	case err = <-line:
	case <-time.After(within):
		err = fmt.Errorf("%s was not ready within %s: %s", script, within, p.Stderr())
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Kill ends the process immediately, like a power failure.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	p.Wait()
}

// Wait returns when the process has ended.
func (p *Process) Wait() {
	<-p.ended
	_ = p.input.Close()
}

// Paused reports whether SIGSTOP has stopped the process, as Linux shows it.
func (p *Process) Paused() (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return false, err
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "T"), nil
}

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// tail keeps the end of the standard error.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data...)
	t.kept = t.kept[max(0, len(t.kept)-4096):]
	return len(data), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
