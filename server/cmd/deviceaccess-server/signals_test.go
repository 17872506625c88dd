package main

import (
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whoever has changed his mind is not asked to type something first.
func TestACommandThatWaitsForItsInputIsStopped(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.ok("workspaces", "create", "Home")
	url, token := cloud(t)
	account := p.ok("accounts", "connect", "devicecloud", "--url", url, "--token-file", p.file("token", token))
	for waits, args := range map[string][]string{
		"Type yes to go on": {"accounts", "disconnect", account},
		"database started":  {"accounts", "update", account, "--token-file", "-"},
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
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatalf("%v goes on: %s", args, out.String())
		}
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() || cmd.ProcessState.Success() {
			t.Errorf("%v ends with %v: %s", args, cmd.ProcessState, out.String())
		}
		in.Close()
	}
	if list := p.ok("accounts", "list"); !strings.Contains(list, account) {
		t.Errorf("the account is gone: %s", list)
	}
}

// A second signal does not wait for what the first has left to do, and costs nothing but that. The end of a session is no wish.
func TestASecondSignalEndsTheServerAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		delay  string
		atOnce bool
	}{"SIGTERM": {syscall.SIGTERM, "1h", true}, "SIGHUP": {syscall.SIGHUP, "3s", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(c.signal) {
				t.Skip("the tests are run with nohup")
			}
			p := newProgram(t)
			r, cmd := p.serve("--shutdown-delay", c.delay)
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			p.until("it stops", func() bool { return p.post(r, r.APIKey, "/health", "{}", nil) == http.StatusServiceUnavailable })
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = cmd.Wait(); close(ended) }()
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				t.Fatal("it goes on")
			}
			if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() != c.atOnce {
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
