package chaos_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// request is a request of a server as seen by its receiver.
type request struct {
	server     string // empty if the process had exited when it was looked up
	of         string // such as "lock:<reference>", "account:<token>", or "endpoint:<path>"; empty for objects without a lease
	what       string
	begin, end time.Time
}

// witness is in front of what servers work on and records their requests.
type witness struct {
	mu        sync.Mutex
	seen      []request
	strangers []string // connections without a known process, and why
}

func (w *witness) stranger(c net.Conn, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strangers = append(w.strangers, clock(time.Now())+" from "+c.RemoteAddr().String()+": "+why)
}

func (w *witness) note(r request) {
	r.end = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, r)
}

// vendorTakes is the latency of the vendor's cloud after it has carried out a request, so that a cut leaves the server
// in doubt.
const vendorTakes = 20 * time.Millisecond

// watchCloud forwards requests to the cloud at an address and returns its own address. whose returns the server of a
// remote address.
func (w *witness) watchCloud(t testing.TB, addr string, whose func(string) string) string {
	t.Helper()
	cloud := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: addr}) },
		ModifyResponse: func(res *http.Response) error {
			select {
			case <-res.Request.Context().Done(): // the client has exited
			case <-time.After(vendorTakes):
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // a missing response stays missing
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		r := request{server: whose(req.RemoteAddr), begin: time.Now()}
		r.of, r.what = asked(req)
		noted := sync.OnceFunc(func() { w.note(r) })
		defer noted()
		cloud.ServeHTTP(&answered{ResponseWriter: rw, first: noted}, req)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// answered is called before the response is sent: afterwards, the client may be done.
type answered struct {
	http.ResponseWriter
	first func()
}

func (a *answered) WriteHeader(status int) {
	a.first()
	a.ResponseWriter.WriteHeader(status)
}

// asked returns the object of a request to the cloud. Some requests need no lease: they have no effect if repeated, or
// are those of a person at a lock.
func asked(r *http.Request) (of, what string) {
	part := strings.Split(strings.TrimPrefix(r.URL.Path, "/sandbox/cloud/"), "/")
	switch {
	case (part[0] == "locks" || part[0] == "systems") && len(part) == 1:
		return "account:" + r.Header.Get("Authorization"), r.Method + " " + part[0]
	case part[0] == "systems": // with any of its users
		return "system:" + part[1], strings.Join(
			append([]string{r.Method, "system"}, part[2:min(len(part), 3)]...),
			" ",
		)
	case part[0] == "locks":
		return "lock:" + part[1], strings.Join(append([]string{r.Method, "lock"}, part[2:]...), " ")
	case part[0] == "access_codes" && len(part) == 2:
		lock, _, _ := strings.Cut(strings.TrimPrefix(part[1], "ac_"), "_")
		return "lock:" + lock, r.Method + " access_code"
	case part[0] == "sandbox" && len(part) > 3:
		return "", "by hand: " + strings.Join(part[3:], " ")
	default:
		return "", r.Method + " " + part[0]
	}
}

// delivery records the start of a delivery at an endpoint.
func (w *witness) delivery(server, path string) (done func()) {
	if !origins {
		return func() {}
	}
	r := request{
		server: server,
		of:     "endpoint:" + path,
		what:   "delivery",
		begin:  time.Now(),
	}
	return func() { w.note(r) }
}

// openers remember the servers of forwarded connections. Connections to another target may have the same addresses.
type openers struct{ by sync.Map }

// gate creates a gate that records the servers of its connections.
func (o *openers) gate(t testing.TB, addr string, whose func(net.Conn) string) *gate {
	t.Helper()
	return newToldGate(t, to(addr), func(from, on net.Conn) { o.by.Store(on.LocalAddr().String(), whose(from)) })
}

// whose returns the server of a remote address.
func (o *openers) whose(address string) string {
	who, _ := o.by.Load(address)
	name, _ := who.(string)
	return name
}
