package chaos_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// instance is one of several servers on one database. It is restarted when it exits, as by a supervisor.
type instance struct {
	testing.TB
	name  string
	addr  string
	args  []string
	ready string // the ready file
	log   *os.File

	mu       sync.Mutex
	cmd      *exec.Cmd
	ended    chan struct{} // of cmd
	wanted   bool
	byItself int // unexpected exits
	ends     []absence
	keeping  sync.WaitGroup
}

// programs holds the server's program, built once for all tests.
var programs struct {
	mu  sync.Mutex
	dir string
}

func removePrograms() {
	if programs.dir != "" {
		os.RemoveAll(programs.dir)
	}
}

// build returns the path of the server's program.
func build(t testing.TB) string {
	t.Helper()
	programs.mu.Lock()
	defer programs.mu.Unlock()
	program := filepath.Join(programs.dir, "deviceaccess-server")
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "chaos-program-") //nolint:usetesting // kept for other tests
		if err != nil {
			t.Fatal(err)
		}
		programs.dir = dir
		if program = filepath.Join(dir, "deviceaccess-server"); os.Rename(buildIn(t, "."), program) != nil {
			t.Fatal("the program cannot be moved")
		}
	}
	return program
}

// buildIn builds the server from the sources of a directory. The binary does not contain the path, so the build cache
// is used.
func buildIn(t testing.TB, dir string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "deviceaccess-server")
	cmd := exec.CommandContext(
		t.Context(),
		"go",
		"build",
		"-trimpath",
		"-o",
		program,
		"github.com/deviceaccess/terraform-provider-deviceaccess/server/cmd/deviceaccess-server",
	)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	return program
}

// freeAddress returns an address without a listener.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// newInstance keeps "program args… --listen addr" running until the test ends.
func newInstance(t testing.TB, name string, args ...string) *instance {
	t.Helper()
	dir := t.TempDir()
	i := &instance{
		TB:     t,
		name:   name,
		addr:   freeAddress(t),
		ready:  filepath.Join(dir, "ready.json"),
		wanted: true,
	}
	i.args = append(args, "--listen", i.addr)
	var err error
	if i.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	i.spawn()
	i.keeping.Go(i.keep)
	t.Cleanup(func() {
		i.mu.Lock()
		i.wanted = false
		_ = i.cmd.Process.Kill()
		i.mu.Unlock()
		i.keeping.Wait()
		i.log.Close()
		if b, _ := os.ReadFile(i.log.Name()); t.Failed() {
			t.Logf("the log of %s ends with\n%s", name, b[max(0, len(b)-3000):])
		}
	})
	return i
}

func (i *instance) spawn() {
	cmd := exec.Command(i.args[0], i.args[1:]...)
	cmd.Stdout, cmd.Stderr = i.log, i.log
	if err := cmd.Start(); err != nil {
		i.Errorf("start the server: %v", err)
	}
	i.cmd, i.ended = cmd, make(chan struct{})
}

// keep restarts the program whenever it exits.
func (i *instance) keep() {
	for {
		err := i.cmd.Wait()
		i.mu.Lock()
		close(i.ended)
		if !i.wanted {
			i.mu.Unlock()
			return
		}
		if exit, ok := err.(*exec.ExitError); ok && //nolint:errorlint,forcetypeassert // Wait returns it unwrapped
			!exit.Sys().(syscall.WaitStatus).Signaled() {
			i.byItself++
			<-time.After(200 * time.Millisecond) // like supervisors
		}
		i.spawn()
		i.mu.Unlock()
	}
}

// signal sends a signal to the current process.
func (i *instance) signal(s syscall.Signal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_ = i.cmd.Process.Signal(s) // it may have just exited
}

// pid returns the id of the current process.
func (i *instance) pid() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cmd.Process.Pid
}

// end ends the process with a signal and waits for its exit. keep then starts another one.
func (i *instance) end(s syscall.Signal) {
	begun := time.Now()
	i.mu.Lock()
	ended := i.ended
	_ = i.cmd.Process.Signal(s)
	i.mu.Unlock()
	<-ended
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ends = append(i.ends, absence{i.name, begun, time.Now()})
}

// credentials returns the API key and the workspace from the ready file, once it exists.
func (i *instance) credentials() (key, workspace string) {
	var ready struct {
		Key       string `json:"api_key"`
		Workspace string `json:"workspace_id"`
	}
	until(i, "the server is ready", func() bool {
		b, err := os.ReadFile(i.ready)
		return err == nil && json.Unmarshal(b, &ready) == nil
	})
	return ready.Key, ready.Workspace
}
