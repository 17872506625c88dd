package api

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// dropping loses all packets while it is down: a connection is given up after ten seconds. After that it answers.
type dropping struct {
	down  atomic.Bool
	takes time.Duration // until a connection is given up
	tries atomic.Int32
}

func (d *dropping) RoundTrip(req *http.Request) (*http.Response, error) {
	d.tries.Add(1)
	if d.down.Load() {
		if !sleep(req.Context(), d.takes) {
			return nil, req.Context().Err()
		}
		return nil, &net.OpError{Op: "dial", Err: errors.New("i/o timeout")}
	}
	return goodRead(req)
}

func (d *dropping) client(t *testing.T) (ask func() error) {
	t.Helper()
	client := clientOver(t, Config{}, d.RoundTrip)
	return func() error { return read(t.Context(), client) }
}

// A run that reads a hundred codes makes some two hundred requests, ten at a time.
func TestUnreachableServerFailsRequestsTogether(t *testing.T) {
	for name, takes := range map[string]time.Duration{"packets are dropped": 10 * time.Second, "connections are refused": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &dropping{takes: takes}
				d.down.Store(true)
				ask, start := d.client(t), time.Now()
				var workers sync.WaitGroup
				for range 10 {
					workers.Go(func() {
						for range 20 {
							if err := ask(); !IsNotConnected(err) {
								t.Error(err)
							}
						}
					})
				}
				workers.Wait()
				if took := time.Since(start); took > 5*time.Minute {
					t.Errorf("it took %s", took)
				}
				if n := d.tries.Load(); n > 10*(7*maxTries+20) {
					t.Errorf("%d tries", n)
				}
			})
		})
	}
}

func TestRestartAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dropping{takes: time.Millisecond}
		ask := d.client(t)
		restarts := func(when string, after time.Duration, survives bool) {
			t.Helper()
			d.down.Store(true)
			time.AfterFunc(after, func() { d.down.Store(false) })
			var requests sync.WaitGroup
			for range 5 {
				requests.Go(func() {
					if err := ask(); (err == nil) != survives {
						t.Errorf("%s: %v", when, err)
					}
				})
			}
			requests.Wait()
			time.Sleep(after)
		}
		restarts("short", 3*time.Second, true)
		restarts("long", 20*time.Second, false)
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		var hiccup sync.WaitGroup
		d.down.Store(true)
		time.AfterFunc(12*time.Second, func() { d.down.Store(false) })
		hiccup.Go(func() { // such as one that asks how far a lock is, and goes on asking
			if err := ask(); err == nil {
				t.Error("it was no hiccup")
			}
		})
		time.Sleep(9 * time.Second)
		if err := ask(); err != nil {
			t.Errorf("what was begun later: %v", err)
		}
		hiccup.Wait()
		restarts("short again", 3*time.Second, true)
		restarts("long again", 20*time.Second, false)
		time.Sleep(time.Minute) // no requests, so the outage is unknown
		restarts("short, and the first that is heard of it", 3*time.Second, true)
	})
}
