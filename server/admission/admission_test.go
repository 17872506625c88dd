package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a server with admission control.
type bed struct {
	testing.TB
	crowd *Controller
	addr  string
}

func serve(t *testing.T, l Limits, h http.HandlerFunc) *bed {
	t.Helper()
	c := New(l)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: c.Limit(h), ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- c.Serve(s, listener) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return &bed{t, c, listener.Addr().String()}
}

// dial connects from a loopback address.
func (b *bed) dial(from string) net.Conn {
	b.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", b.addr)
	if err != nil {
		b.Skipf("no address %s on this machine: %v", from, err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

func (b *bed) until(what string, ok func() bool) {
	b.Helper()
	testenv.Until(b.TB, what, ok)
}

// open returns the number of open connections of an address.
func (b *bed) open(from string) int {
	b.crowd.mu.Lock()
	defer b.crowd.mu.Unlock()
	if p := b.crowd.origins[from]; p != nil {
		return len(p.conns)
	}
	return 0
}

func asks(t testing.TB, c net.Conn) error {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(testenv.Timeout(testenv.WaitTimeout)))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	answer := make([]byte, 15)
	_, err := io.ReadFull(c, answer)
	return err
}

func TestConnections_LargestClientIsShedLongestIdleFirst(t *testing.T) {
	t.Parallel()
	b := serve(t, Limits{Connections: 32}, func(http.ResponseWriter, *http.Request) {})
	healthy := b.dial("127.0.0.1")
	if err := asks(t, healthy); err != nil {
		t.Fatal(err)
	}
	var first net.Conn
	for n := range 200 {
		c := b.dial("127.0.0.9")
		if n == 0 {
			first = c
		}
		b.until(
			"the connection was received",
			func() bool { return b.open("127.0.0.9") > min(n, 14) || b.crowd.Shed() > 0 },
		)
	}
	b.until(
		"the surplus connections were shed",
		func() bool { return b.open("127.0.0.9") <= 16 && b.crowd.Shed() >= 184 },
	)
	_ = first.SetDeadline(time.Now().Add(testenv.Timeout(testenv.WaitTimeout)))
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && err == nil {
		t.Error("the longest idle connection is still open")
	}
	if err := asks(t, healthy); err != nil {
		t.Errorf("the other client was disconnected: %v", err)
	}
	if err := asks(t, b.dial("127.0.0.2")); err != nil {
		t.Errorf("a new client: %v", err)
	}
}

func TestConnections_ManyAddressesDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	b := serve(t, Limits{Connections: 32}, func(http.ResponseWriter, *http.Request) {})
	for n := range 200 {
		b.dial(fmt.Sprintf("127.0.2.%d", 1+n%8))
	}
	b.until("the connections were received", func() bool { return b.crowd.Shed() >= 168 })
	healthy := b.dial("127.0.0.1")
	for range 3 {
		if err := asks(t, healthy); err != nil {
			t.Fatalf("a new client: %v", err)
		}
	}
}

func anyProxy(net.Addr) bool { return true }

func TestConnections_ProxiesHaveNoShare(t *testing.T) {
	t.Parallel()
	b := serve(t, Limits{Connections: 32, IsProxy: anyProxy}, func(http.ResponseWriter, *http.Request) {})
	for range 30 {
		b.dial("127.0.0.1")
	}
	b.until("all connections are open", func() bool { return b.open("127.0.0.1") == 30 })
	if b.crowd.Shed() > 0 {
		t.Errorf("%d were shed", b.crowd.Shed())
	}
}

func TestConnections_RunningRequestsStay(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	var working sync.WaitGroup
	working.Add(16)
	b := serve(t, Limits{Connections: 32}, func(http.ResponseWriter, *http.Request) { working.Done(); <-hold })
	var all []net.Conn
	for range 16 {
		c := b.dial("127.0.0.9")
		all = append(all, c)
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	working.Wait()
	late := b.dial("127.0.0.9")
	_ = late.SetDeadline(time.Now().Add(testenv.Timeout(testenv.WaitTimeout)))
	if _, err := late.Read(make([]byte, 1)); err == nil {
		t.Error("a connection above the limit was accepted")
	}
	close(hold)
	for _, c := range all {
		_ = c.SetDeadline(time.Now().Add(testenv.Timeout(testenv.WaitTimeout)))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("a running request got no response: %v", err)
		}
	}
}

func TestIncompleteBodiesAreShed(t *testing.T) {
	t.Parallel()
	b := serve(t, Limits{HeldBytes: 1 << 20}, func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		io.WriteString(w, "done")
	})
	half := strings.Repeat("a", 100_000)
	for n := range 30 {
		c := b.dial(fmt.Sprintf("127.0.0.%d", 9+n/2))
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n%s", half)
	}
	b.until("some connections were shed", func() bool { return b.crowd.Shed() >= 15 })
	b.until("held bytes are below the limit", func() bool {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		return b.crowd.held <= 1<<20
	})
	res, err := http.Post("http://"+b.addr, "text/plain", strings.NewReader(half)) // from another address
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != "done" {
		t.Errorf("a complete body: %q %v", got, err)
	}
}

func TestIncompleteHeadersAreShed(t *testing.T) {
	t.Parallel()
	b := serve(t, Limits{HeldBytes: 1 << 20}, func(http.ResponseWriter, *http.Request) {})
	most := "GET / HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 60_000)
	for range 60 {
		io.WriteString(b.dial("127.0.0.9"), most)
	}
	b.until("some connections were shed", func() bool { return b.crowd.Shed() >= 30 })
	if err := asks(t, b.dial("127.0.0.1")); err != nil {
		t.Error(err)
	}
}

func TestUnreadResponses_BlockTheirCaller(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1<<20)
	inTurn := Middleware(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) }),
		http.NotFoundHandler(),
	)
	b := serve(t, Limits{HeldBytes: 8 << 20}, inTurn.ServeHTTP)
	for range 20 {
		c := b.dial("127.0.0.9")
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	b.until("the caller gets no slot", func() bool {
		b.crowd.mu.Lock()
		defer b.crowd.mu.Unlock()
		k := b.crowd.callers["127.0.0.9"]
		return k != nil && len(k.queues[light])+len(k.queues[heavy]) > 0 && k.unread > 1<<20
	})
	res, err := http.Get("http://" + b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if got, err := io.ReadAll(res.Body); err != nil || len(got) != len(long) {
		t.Errorf("a reading client gets %d bytes: %v", len(got), err)
	}
}

func TestSlotsGoToCallerWithFewest(t *testing.T) {
	t.Parallel()
	c := New(Limits{Slots: 4, ClientAddress: func(r *http.Request) string { return r.Header.Get("From") }})
	comes := func(from string) *request {
		return c.newRequest(&http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{"From": {from}}})
	}
	var greedy []*request
	for range 3 {
		v := comes("greedy")
		if err := v.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		greedy = append(greedy, v)
	}
	var waits sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 10 {
		waits.Go(func() { v := comes("greedy"); _ = v.acquire(ctx); v.end() })
	}
	queued := func(who string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.callers[who] != nil && len(c.callers[who].queues[light]) > 0
	}
	testenv.Until(t, "the greedy caller waits", func() bool { return queued("greedy") })
	one, two := comes("modest"), comes("modest")
	if err := one.acquire(ctx); err != nil { // one caller gets at most three quarters
		t.Fatal(err)
	}
	second := make(chan error)
	go func() { second <- two.acquire(ctx) }()
	testenv.Until(t, "the modest caller waits", func() bool { return queued("modest") })
	greedy[0].finish()
	if err := <-second; err != nil {
		t.Errorf("the slot went to the caller with more: %v", err)
	}
	cancel()
	waits.Wait()
	for _, v := range append(greedy, one, two) {
		v.end()
	}
	if c.freeSlots != 4 || len(c.callers) > 0 || c.held != 0 {
		t.Errorf(
			"afterwards %d slots are free, %d callers are known, %d bytes held",
			c.freeSlots,
			len(c.callers),
			c.held,
		)
	}
}

// Connections end while others are shed for new ones: neither blocks the other.
func TestConnections_EndWhileOthersAreShed(t *testing.T) {
	t.Parallel()
	c := New(Limits{Connections: 16, IsProxy: anyProxy})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				for range 3000 {
					inner, far := net.Pipe()
					if n := c.admit(inner); n != nil {
						n.Close()
					}
					far.Close()
				}
			})
		}
		all.Wait()
	}()
	select {
	case <-done:
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("new and ending connections block each other")
	}
	if c.mu.Lock(); len(c.conns)+len(c.origins) > 0 {
		t.Errorf("%d connections of %d origins remain", len(c.conns), len(c.origins))
	}
	c.mu.Unlock()
}
