package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// lossyProxy is a proxy in front of a server that has lost the server's action attempts.
type lossyProxy struct {
	*httptest.Server

	// swallow is a path whose requests the proxy answers instead of the server.
	swallow atomic.Value
	// cut is whether the proxy answers with bare 404s after the next swallowed one.
	cut, dead atomic.Bool
}

func newLossyProxy(t *testing.T, server string) *lossyProxy {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	p := &lossyProxy{}
	p.swallow.Store("")
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/action_attempts/get":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"ok":false,"error":{"type":"route_not_found","message":"No"}}`)
		case p.dead.Load():
			http.Error(w, "<h1>404</h1>", http.StatusNotFound)
		case r.URL.Path == p.swallow.Load():
			p.dead.Store(p.cut.Load())
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"ok":true,"action_attempt":{"action_attempt_id":"00000000-0000-7000-8000-000000000000",`+
				`"action_type":"LOST","status":"pending","result":null,"error":null}}`)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// Commands that wait for a device succeed only if the server knows the attempt, or shows the change.
func TestAwait_OutcomeUnknown(t *testing.T) {
	t.Parallel()
	s := newProgram(t)
	r, _ := s.serve("--sandbox-speed", "20")
	proxy := newLossyProxy(t, r.URL)
	r.URL = proxy.URL
	p := s.remote(r)
	lock := p.frontDoor()
	unknown := func(show string, args ...string) {
		t.Helper()
		code, out := p.exits(append(args, "--timeout", "1500ms")...)
		if code != exitFailed || !strings.Contains(out, "the outcome is unknown") ||
			!strings.Contains(out, "run `deviceaccess-server "+show) {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}

	for _, act := range []string{"unlock", "lock"} {
		if out := p.shown("devices", act, lock); !strings.Contains(out, "is "+act+"ed") {
			t.Errorf("%s: %s", act, out)
		}
	}
	proxy.swallow.Store("/locks/unlock_door")
	unknown("devices get "+lock, "devices", "unlock", lock)

	id := p.ok("codes", "create", "--device", lock, "--name", "Guest")
	proxy.swallow.Store("/access_codes/delete")
	unknown("codes get "+id, "codes", "delete", id)
	proxy.swallow.Store("")
	p.shown("codes", "delete", id)
	if code, out := p.exits("codes", "get", id); code != exitNotFound {
		t.Errorf("a deleted code: %d: %s", code, out)
	}

	proxy.cut.Store(true)
	proxy.swallow.Store("/locks/lock_door")
	unknown("devices get "+lock, "devices", "lock", lock)
}
