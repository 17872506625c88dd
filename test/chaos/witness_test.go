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

// request is what a server asked of something, and when, as is seen where it was asked.
type request struct {
	server     string // "": a process that had ended when it was looked for
	of         string // such as "lock:<reference>", "account:<token>" or "endpoint:<path>"; "": nothing that has a lease
	what       string
	begin, end time.Time
}

// witness stands before what servers work on, each at a time, and notes who asks.
type witness struct {
	mu        sync.Mutex
	seen      []request
	strangers []string // connections whose opener was not found, and why
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

// vendorTakes is how long the cloud of a vendor thinks before it answers. It has carried out by then what it was asked for,
// so one that is cut off meanwhile leaves the server in doubt.
const vendorTakes = 20 * time.Millisecond

// watchCloud passes requests on to the cloud at an address. It returns where it listens; whose tells whose a connection is by
// the address that it comes from.
func (w *witness) watchCloud(t testing.TB, addr string, whose func(string) string) string {
	t.Helper()
	cloud := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: addr}) },
		ModifyResponse: func(res *http.Response) error {
			select {
			case <-res.Request.Context().Done(): // who asked is gone
			case <-time.After(vendorTakes):
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // no answer is none here, too
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

// answered is told before the answer goes out: once it is there, who asked may be done.
type answered struct {
	http.ResponseWriter
	first func()
}

func (a *answered) WriteHeader(status int) {
	a.first()
	a.ResponseWriter.WriteHeader(status)
}

// asked is what a request to the cloud is about. Some need no lease: they do nothing twice, or what a person does at a lock.
func asked(r *http.Request) (of, what string) {
	part := strings.Split(strings.TrimPrefix(r.URL.Path, "/sandbox/cloud/"), "/")
	switch {
	case (part[0] == "locks" || part[0] == "systems") && len(part) == 1:
		return "account:" + r.Header.Get("Authorization"), r.Method + " " + part[0]
	case part[0] == "systems": // whoever its users are
		return "system:" + part[1], strings.Join(append([]string{r.Method, "system"}, part[2:min(len(part), 3)]...), " ")
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

// delivery is one that a server has begun at an endpoint.
func (w *witness) delivery(server, path string) (done func()) {
	if !origins {
		return func() {}
	}
	r := request{server: server, of: "endpoint:" + path, what: "delivery", begin: time.Now()}
	return func() { w.note(r) }
}

// openers remember whose connections are that go on to one place. To another there may be some from the same addresses.
type openers struct{ by sync.Map }

// gate knows whose the connections are that come.
func (o *openers) gate(t testing.TB, addr string, whose func(net.Conn) string) *gate {
	t.Helper()
	return newToldGate(t, to(addr), func(from, on net.Conn) { o.by.Store(on.LocalAddr().String(), whose(from)) })
}

// whose is it what comes from that address.
func (o *openers) whose(address string) string {
	who, _ := o.by.Load(address)
	name, _ := who.(string)
	return name
}
