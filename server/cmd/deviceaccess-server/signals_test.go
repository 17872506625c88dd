package main

import (
	"net/http"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// A command that waits for input can be interrupted.
func TestSignals_CommandWaitingForInput(t *testing.T) {
	t.Parallel()
	p := newPrivate(t) // commands on it log when they have started the database
	p.ok("workspaces", "create", "Home")
	url, token := cloud(t)
	account := p.ok("accounts", "connect", "devicecloud", "--url", url, "--token-file", p.file("token", token))
	for waits, args := range map[string][]string{
		"Type yes to continue": {"accounts", "disconnect", account},
		"database started":     {"accounts", "update", account, "--token-file", "-"},
	} {
		cmd := p.command(args...)
		var out said
		cmd.Stdout, cmd.Stderr = &out, &out
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		p.until("it says "+waits, func() bool { return strings.Contains(out.String(), waits) })
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if !ends(cmd) {
			t.Fatalf("%v goes on: %s", args, out.String())
		}
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() || cmd.ProcessState.Success() {
			t.Errorf("%v ends with %v: %s", args, cmd.ProcessState, out.String())
		}
		in.Close()
	}
	if list := p.ok("accounts", "list"); !strings.Contains(list, account) {
		t.Errorf("the account was disconnected: %s", list)
	}
}

// ends waits for the exit of a process and reports whether it has exited.
func ends(cmd *exec.Cmd) bool {
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		return false
	}
}

// A second SIGTERM ends the server immediately and loses nothing. A second SIGHUP does not.
func TestSignals_SecondEndsServer(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string][]syscall.Signal{
		"SIGTERM": {syscall.SIGTERM, syscall.SIGTERM},
		"SIGHUP":  {syscall.SIGHUP, syscall.SIGHUP, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(signals[0]) {
				t.Skip("the tests are run with nohup")
			}
			p := newPrivate(t)
			r, cmd := p.serve("--shutdown-delay", "1h")
			for i, s := range signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					p.until("it stops", func() bool {
						return p.post(r, r.APIKey, "/health", "{}", nil) == http.StatusServiceUnavailable
					})
				}
			}
			if !ends(cmd) {
				t.Fatal("it goes on")
			}
			// The kernel delivers the lower of two pending signals first: an effective second SIGHUP would have ended the
			// process.
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() ||
				status.Signal() != syscall.SIGTERM {
				t.Errorf("it ends with %v", cmd.ProcessState)
			}
			again, cmd := p.serve()
			if again.Workspace != r.Workspace {
				t.Errorf("it is workspace %s, was %s", again.Workspace, r.Workspace)
			}
			p.stop(cmd)
		})
	}
}
