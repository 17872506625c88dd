package chaos_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// askAndKill sends requests and returns when the server is dead.
func (k *keyed) askAndKill(t *testing.T, requests []*keyedRequest) {
	t.Helper()
	w := newWire(t, k.dsn)
	v := k.victim(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asking, going sync.WaitGroup
	trips := make([]*trip, len(requests))
	for i, r := range requests {
		trip, answered := w.expect(r.credential, r.at), make(chan struct{})
		trips[i] = trip
		going.Go(func() {
			defer close(answered)
			if a, err := ask(
				ctx,
				v.url,
				r.token,
				r.path,
				r.key,
				r.body,
			); err == nil &&
				a.status != http.StatusServiceUnavailable { // this means that it is not done yet
				r.given = &a
			}
		})
		asking.Go(func() {
			select {
			case <-answered:
			case <-trip.held:
				r.stopped = true
			case <-time.After(r.at.patience()):
			}
		})
	}
	asking.Wait()
	v.kill()
	w.end()
	going.Wait()
	for i, r := range requests {
		switch trip := w.look(trips[i]); {
		case !r.stopped && r.at.patience() == within && !r.at.isAnswer():
			t.Errorf("%s: it was not stopped, after %d statements and %d commits", r, trip.statements, trip.commits)
		case r.given != nil && r.given.status != http.StatusOK, r.given == nil && r.at.isAnswer():
			t.Errorf("%s: the answer is %v", r, r.given)
		case r.at.isAnswer():
			k.mu.Lock()
			k.seen[r.kind] = trip
			k.mu.Unlock()
		}
	}
}

// victim is a server that can be killed.
type victim struct {
	cmd   *exec.Cmd
	ended chan struct{}
	url   string
}

func (v *victim) kill() {
	_ = v.cmd.Process.Kill()
	<-v.ended
}

func (k *keyed) victim(t *testing.T, w *wire) *victim {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "ready.json")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{
		ended: make(chan struct{}),
		cmd: exec.CommandContext(
			t.Context(),
			k.program,
			"serve",
			"--sandbox",
			"--sandbox-url",
			strings.TrimSuffix(k.CloudURL(), "/sandbox/cloud"),
			"--listen",
			"127.0.0.1:0",
			"--ready-file",
			file,
			"--data-dir",
			k.data,
			"--database-url",
			w.dsn(k.dsn),
			"--allow-webhook-prefix",
			"127.0.0.0/8",
			"--database-connections",
			"80",
		),
	}
	v.cmd.Stdout, v.cmd.Stderr = log, log
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = v.cmd.Wait()
		close(v.ended)
	}()
	t.Cleanup(func() {
		v.kill()
		log.Close()
		if b, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the log of the server that was killed ends with\n%s", b[max(0, len(b)-3000):])
		}
	})
	var ready struct{ URL string }
	until(t, "the server is ready", func() bool {
		select {
		case <-v.ended:
			t.Fatal("it has ended")
		default:
		}
		b, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(b, &ready) == nil
	})
	v.url = ready.URL
	return v
}
