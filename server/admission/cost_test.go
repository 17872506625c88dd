package admission

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// callers returns a Controller and a function that creates requests without a network.
func callers(l Limits) (*Controller, func(from, path string) *request) {
	l.ClientAddress = func(r *http.Request) string { return r.Header.Get("From") }
	c := New(l)
	return c, func(from, path string) *request {
		return c.newRequest(&http.Request{URL: &url.URL{Path: path}, Header: http.Header{"From": {from}}})
	}
}

// ended returns a canceled context, so that nothing waits.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestHeavyRequestsLeaveProcessorsToOthers(t *testing.T) {
	t.Parallel()
	_, comes := callers(Limits{Slots: 8})
	turns := func() (n int) {
		var all []*request
		for i := range 8 {
			v := comes(fmt.Sprint("greedy", i), "/")
			all = append(all, v)
			v.received(largeBytes + 1)
			if v.acquire(ended()) == nil {
				n++
			}
		}
		for _, v := range all {
			v.end()
		}
		return n
	}
	if n := turns(); n != 4 {
		t.Errorf("of eight slots %d go to large bodies without other callers", n)
	}
	modest := comes("modest", "/")
	if err := modest.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	modest.end()
	if n, most := turns(), max(1, min(4, processors()/2)); n != most {
		t.Errorf("of eight slots %d go to large bodies with another caller, want %d", n, most)
	}
}

// A caller's own light requests do not slow down its heavy ones.
func TestHeavyRequestsContinueWithOwnLightOnes(t *testing.T) {
	t.Parallel()
	_, comes := callers(Limits{Slots: 8})
	small := comes("one", "/")
	if err := small.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		v := comes("one", "/")
		v.received(largeBytes + 1)
		if err := v.acquire(ended()); err != nil {
			t.Error(err)
		}
	}
}

func TestPathWithLongResponseIsHeavyNextTime(t *testing.T) {
	t.Parallel()
	c, comes := callers(Limits{})
	h := c.Limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, map[string]int{"/long": largeBytes + 1, "/short": largeBytes}[r.URL.Path]))
	}))
	asks := func(path string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("From", "one")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	asks("/long")
	asks("/short")
	for _, test := range []struct {
		from, path string
		want       kind
	}{{"one", "/long", heavy}, {"one", "/short", light}, {"another", "/long", light}} {
		v := comes(test.from, test.path)
		if v.kind != test.want {
			t.Errorf("%s of %s is of kind %d, want %d", test.path, test.from, v.kind, test.want)
		}
		v.end()
	}
}

// Also requests that wait already change their kind.
func TestWaitingRequestsBecomeHeavy(t *testing.T) {
	t.Parallel()
	c, comes := callers(Limits{Slots: 1})
	first, second := comes("one", "/long"), comes("one", "/long")
	if err := first.acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken := make(chan error)
	go func() { taken <- second.acquire(t.Context()) }()
	queued := func(of kind) bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.callers["one"].queues[of]) == 1 }
	testenv.Until(t, "the request waits as a light one", func() bool { return queued(light) })
	first.sends(largeBytes + 1)
	if !queued(heavy) || queued(light) {
		t.Error("the request still counts as light, although the response is long")
	}
	first.end()
	if err := <-taken; err != nil {
		t.Error(err)
	}
	second.end()
}

// Light requests do not starve heavy ones.
func TestHeavyRequestsAreNotStarved(t *testing.T) {
	t.Parallel()
	c, comes := callers(Limits{Slots: 2})
	first, second := comes("a", "/"), comes("b", "/")
	for _, v := range []*request{first, second} {
		if err := v.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	large1, small := comes("c", "/"), comes("d", "/")
	large1.received(largeBytes + 1)
	given := make(chan string, 2)
	wait := func(what string, v *request) {
		if v.acquire(t.Context()) == nil {
			given <- what
		}
	}
	go wait("small", small)
	testenv.Until(
		t,
		"the light request waits",
		func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.callers["d"].queues[light]) == 1 },
	)
	go wait("large", large1)
	testenv.Until(
		t,
		"the heavy request waits",
		func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.callers["c"].queues[heavy]) == 1 },
	)
	first.end()
	if got := <-given; got != "large" {
		t.Errorf("the first slot goes to the %s one", got)
	}
	second.end()
	<-given
}

func TestLargeBodiesAreLimitedPerCaller(t *testing.T) {
	t.Parallel()
	c, comes := callers(Limits{})
	var all []*request
	for n := range maxLargeBodies + 1 {
		v := comes("one", "/")
		all = append(all, v)
		v.received(largeBytes + 1)
		if err := v.acquireBody(ended()); (err != nil) != (n == maxLargeBodies) {
			t.Errorf("body %d: %v", n, err)
		}
	}
	other := comes("another", "/")
	other.received(largeBytes + 1)
	if err := other.acquireBody(ended()); err != nil {
		t.Errorf("another caller: %v", err)
	}
	next := make(chan error)
	go func() { next <- all[maxLargeBodies].acquireBody(t.Context()) }()
	testenv.Until(
		t,
		"the body waits",
		func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.callers["one"].bodyQueue) == 1 },
	)
	all[0].end()
	if err := <-next; err != nil {
		t.Error(err)
	}
}

// A caller whose request was shed must not send it again immediately and keep the server busy for nothing.
func TestShedCallerWaits(t *testing.T) {
	t.Parallel()
	b := serve(t, Limits{HeldBytes: 1 << 20}, func(_ http.ResponseWriter, r *http.Request) { io.ReadAll(r.Body) })
	for n := range 40 {
		c := b.dial(fmt.Sprintf("127.0.0.%d", 9+n%20))
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n%s", strings.Repeat("a", 100_000))
	}
	b.until("some connections were shed", func() bool { return b.crowd.Shed() >= 20 })
	b.crowd.mu.Lock()
	defer b.crowd.mu.Unlock()
	taken, open := 0, 0
	for _, k := range b.crowd.callers {
		taken += k.largeBodies
	}
	for v := range b.crowd.holders {
		if v.hasLargeBody {
			open++
		}
	}
	if taken <= open {
		t.Errorf("%d large bodies count, and %d are being received: shed callers sent theirs again", taken, open)
	}
}
