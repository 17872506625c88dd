package provider

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// running is a command of terraform that has been started.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	said bytes.Buffer
	more chan struct{} // has an element when something was said
}

func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
	return r.said.Write(p)
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.String()
}

func (w *workspace) start(args ...string) *running {
	w.t.Helper()
	return w.startLogging("TRACE", args...)
}

func (w *workspace) startLogging(level string, args ...string) *running {
	w.t.Helper()
	r := &running{t: w.t, more: make(chan struct{}, 1), cmd: exec.CommandContext(w.t.Context(), "terraform", args...)}
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = w.dir, r, r
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.Env = append(os.Environ(), "TF_LOG="+level, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1")
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// interrupt is Ctrl-C, once terraform has seen it.
func (r *running) interrupt() {
	r.t.Helper()
	r.send(r.cmd.Process.Pid, syscall.SIGINT)
	r.noticed()
}

// terminate is what ends a job: a SIGTERM to terraform and all that it has started, once terraform has seen it.
func (r *running) terminate() {
	r.t.Helper()
	r.send(-r.cmd.Process.Pid, syscall.SIGTERM)
	r.noticed()
}

func (r *running) send(to int, signal syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(to, signal); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) noticed() {
	r.t.Helper()
	enough := time.After(testenv.Timeout(testenv.WaitTimeout))
	for !strings.Contains(r.text(), "Interrupt received") {
		select {
		case <-r.more:
		case <-enough:
			r.t.Fatalf("terraform did not notice the interrupt:\n%s", r.text())
		}
	}
}

// hold keeps the next request for an operation waiting, and says when it has come.
func (f *fake) hold(path string) (came <-chan struct{}, release func()) {
	arrived, released := make(chan struct{}), make(chan struct{})
	var once sync.Once
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			once.Do(func() { close(arrived); <-released })
		}
		f.ServeHTTP(w, r)
	})
	f.front.Store(&handler)
	return arrived, func() { close(released) }
}

func TestInterruptedApplyLeavesWhatTheNextOneFinishes(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	locksAnswer := func(answer bool) {
		f.do(func() {
			f.nextAttempt = func(a *fakeAttempt) { a.looks = 1000 }
			if answer {
				f.nextAttempt = nil
				for _, code := range f.codes {
					f.settle(code)
				}
			}
		})
	}
	w := newWorkspace(
		t,
		map[string]string{"versions.tf": required, "main.tf": f.config(accessCode(`code = "905173846251"`))},
	)

	locksAnswer(false)
	came, release := f.hold("/access_codes/create")
	apply := w.start("apply", "-auto-approve")
	<-came
	apply.interrupt()
	release()
	if err := apply.cmd.Wait(); err == nil {
		t.Errorf("an interrupted apply says it was a success:\n%s", apply.text())
	}
	if !strings.Contains(apply.text(), "interrupted while it waited for the lock") {
		t.Errorf("the interruption is not explained:\n%s", apply.text())
	}
	if state := w.read(
		"show",
		"-json",
	); !strings.Contains(state, `"status":"setting"`) ||
		strings.Contains(state, `"tainted":true`) {
		t.Errorf("the state after the interruption: %s", state)
	}
	locksAnswer(true)
	w.expect(true, "apply", "-auto-approve")
	if n := f.count("/access_codes/create"); n != 1 {
		t.Errorf("%d codes were created", n)
	}

	locksAnswer(false)
	came, release = f.hold("/access_codes/delete")
	destroy := w.start("destroy", "-auto-approve")
	<-came
	release()
	destroy.interrupt()
	if err := destroy.cmd.Wait(); err == nil || !strings.Contains(w.read("state", "list"), front) {
		t.Errorf("an interrupted destroy forgets the code (%v):\n%s", err, destroy.text())
	}
	locksAnswer(true)
	w.expect(true, "destroy", "-auto-approve")
	if len(f.codes) != 0 {
		t.Errorf("%d codes are left", len(f.codes))
	}
}
