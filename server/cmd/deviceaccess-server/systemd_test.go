package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// listenAsSystemd returns the path of a socket, and the states that are sent to it.
func listenAsSystemd(t *testing.T) (path string, states <-chan string) {
	t.Helper()
	path = filepath.Join(storetest.Dir(t), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	all := make(chan string, 1<<16)
	go func() {
		buf := make([]byte, 256)
		for {
			n, err := socket.Read(buf)
			if err != nil {
				return
			}
			all <- string(buf[:n])
		}
	}()
	return path, all
}

// receiveState waits for the next state.
func receiveState(t *testing.T, states <-chan string) string {
	t.Helper()
	select {
	case state := <-states:
		return state
	case <-time.After(testenv.Timeout(time.Minute)):
		t.Fatal("systemd receives no state")
		return ""
	}
}

// The server tells systemd that it is ready, that it makes progress if there is a watchdog, and that it stops.
func TestServe_NotifiesSystemd(t *testing.T) {
	t.Parallel()
	for name, watchdog := range map[string][]string{"watchdog": {"WATCHDOG_USEC=30000"}, "no watchdog": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t)
			path, states := listenAsSystemd(t)
			p.env = append([]string{"NOTIFY_SOCKET=" + path}, watchdog...)
			_, cmd := p.serve()
			if state := receiveState(t, states); state != "READY=1" {
				t.Fatalf("first, systemd receives %q", state)
			}
			for range 2 * len(watchdog) {
				if state := receiveState(t, states); state != "WATCHDOG=1" {
					t.Errorf("systemd receives %q in place of a sign of life", state)
				}
			}
			p.stop(cmd)
			state := receiveState(t, states)
			for state == "WATCHDOG=1" && watchdog != nil {
				state = receiveState(t, states)
			}
			if state != "STOPPING=1" {
				t.Errorf("at the end, systemd receives %q", state)
			}
		})
	}
}

// trouble is a server that gets ready at the third question, and then is stuck from time to time.
type trouble struct {
	asked atomic.Int32
	stuck chan error
}

func (s *trouble) Ready(context.Context) bool { return s.asked.Add(1) == 3 }

func (s *trouble) Stuck() error { return <-s.stuck }

// A server that is not healthy yet is not ready, and one that is stuck gives no sign of life.
func TestNotifySystemd_WithholdsStates(t *testing.T) {
	path, states := listenAsSystemd(t)
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "3000")
	s := &trouble{stuck: make(chan error)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); notifySystemd(ctx, s, slog.New(slog.DiscardHandler)) }()
	if state := receiveState(t, states); state != "READY=1" || s.asked.Load() != 3 {
		t.Errorf("systemd receives %q after %d checks", state, s.asked.Load())
	}
	for range 5 {
		s.stuck <- errors.New("stuck")
	}
	if len(states) > 0 {
		t.Errorf("a server that is stuck sends %q", <-states)
	}
	s.stuck <- nil
	if state := receiveState(t, states); state != "WATCHDOG=1" {
		t.Errorf("a server that is no longer stuck sends %q", state)
	}
	cancel()
	go func() { // ends a check that has begun
		select {
		case s.stuck <- errors.New("stuck"):
		case <-done:
		}
	}()
	<-done
}

// The unit does not restart a server with a wrong setting, which ends with 2. A server that hangs or crashes ends with a
// signal, so it is restarted.
func TestUnit_RestartsCrashedServer(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile(packaging + "systemd/deviceaccess-server.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Restart=on-failure", "RestartPreventExitStatus=2", "LimitCORE=0"} {
		if !slices.Contains(strings.Split(string(unit), "\n"), line) {
			t.Errorf("the unit has no line %s", line)
		}
	}
	p := newProgram(t)
	for _, found := range regexp.MustCompile(`(?m)^Environment=(GO\w+=.*)$`).FindAllStringSubmatch(string(unit), -1) {
		p.env = append(p.env, found[1])
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil { // as LimitCORE
		t.Fatal(err)
	}
	_, cmd := p.serve()
	for _, s := range []os.Signal{syscall.SIGSTOP, syscall.SIGABRT, syscall.SIGCONT} { // as the watchdog ends a frozen server
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("after the signal of the watchdog, the server ends with %s", cmd.ProcessState)
	}
}
