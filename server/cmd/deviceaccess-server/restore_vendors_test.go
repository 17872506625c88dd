package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// told is a JSON object.
type told map[string]any

// at follows a path of names; text is at for strings.
func (o told) at(path ...string) (v any) {
	v = map[string]any(o)
	for _, name := range path {
		inside, _ := v.(map[string]any)
		v = inside[name]
	}
	return v
}

func (o told) text(path ...string) string {
	s, _ := o.at(path...).(string)
	return s
}

// all returns the objects of a list.
func (o told) all(name string) (out []told) {
	list, _ := o.at(name).([]any)
	for _, v := range list {
		if one, is := v.(map[string]any); is {
			out = append(out, one)
		}
	}
	return out
}

// outside is what a backup does not contain: the vendors' clouds with their locks and access systems, and the receiver
// of webhooks.
type outside struct {
	box      *sandbox.Sandbox
	cloud    string // URL of the vendors
	receiver string // URL of the receiver

	mu      sync.Mutex
	taken   map[string]string        // accepted tokens, with those of the simulated cloud
	held    map[string]chan struct{} // held requests to vendors, by method and path
	reached map[string]int           // number of requests
	arrived []arrival
	shut    map[string]chan struct{} // paths of the receiver that do not answer yet
	wall    map[string]bool          // accounts whose vendor is unreachable
}

// arrival is a delivery to the receiver.
type arrival struct {
	path string
	signedBy
	event told
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{
		box:     sandbox.New(sandbox.Options{Seed: 29, Speed: 50}),
		taken:   map[string]string{},
		held:    map[string]chan struct{}{},
		reached: map[string]int{},
		shut:    map[string]chan struct{}{},
		wall:    map[string]bool{},
	}
	t.Cleanup(o.box.Close)
	cloud, receiver := httptest.NewServer(http.HandlerFunc(o.vendor)), httptest.NewServer(http.HandlerFunc(o.receive))
	t.Cleanup(cloud.Close)
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { // release what still waits
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, waiting := range []map[string]chan struct{}{o.held, o.shut} {
			for what, open := range waiting {
				close(open)
				delete(waiting, what)
			}
		}
	})
	o.cloud, o.receiver = cloud.URL, receiver.URL
	return o
}

func (o *outside) vendor(w http.ResponseWriter, r *http.Request) {
	if below, of := strings.CutPrefix(r.URL.Path, "/of/"); of { // each account has its own address
		account, path, _ := strings.Cut(below, "/")
		r.URL.Path = "/" + path
		if o.walled(account) {
			panic(http.ErrAbortHandler) // the connection breaks
		}
	}
	what := r.Method + " " + r.URL.Path
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	o.mu.Lock()
	o.reached[what]++
	held, known := o.held[what], o.taken[given]
	o.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	r.Header.Set("Authorization", "Bearer "+known)
	o.box.Handler().ServeHTTP(w, r)
}

func (o *outside) walled(account string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wall[account]
}

// reach makes the vendor of an account reachable or not.
func (o *outside) reach(account string, can bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wall[account] = !can
}

func (o *outside) receive(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var event told
	_ = json.Unmarshal(body, &event) // a body that is not JSON is no event
	content := r.Header.Get("Webhook-Id") + "." + r.Header.Get("Webhook-Timestamp") + "." + string(body)
	o.mu.Lock()
	o.arrived = append(o.arrived, arrival{r.URL.Path, signedBy{content, r.Header.Get("Webhook-Signature")}, event})
	shut := o.shut[r.URL.Path]
	o.mu.Unlock()
	if shut != nil {
		select {
		case <-shut:
		case <-r.Context().Done():
		}
	}
}

// keep holds requests until release is called.
func (o *outside) keep(of map[string]chan struct{}, what string) (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of[what] = make(chan struct{})
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		close(of[what])
		delete(of, what)
	}
}

// asked returns how often a request has reached the vendors, including held ones.
func (o *outside) asked(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reached[what]
}

// got returns the events that a path has received, of one type or all.
func (o *outside) got(path, kind string) (out []arrival) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.arrived {
		if a.path == path && (kind == "" || a.event.text("event_type") == kind) {
			out = append(out, a)
		}
	}
	return out
}

// has reports whether a path has received an event of a type that contains an id.
func (o *outside) has(path, kind, id string) bool {
	return slices.ContainsFunc(o.got(path, kind), func(a arrival) bool { return strings.Contains(a.content, id) })
}

// forget drops the deliveries received so far.
func (o *outside) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.arrived = nil
}
