package rest

import (
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
)

// Limits bound what callers may ask of one instance. A zero field is no limit.
type Limits struct {
	// FailuresPerMinute is how many requests of one address with credentials that are not good are looked into; twice
	// as many at once. Credentials that were good from there go on. Logins on connect pages that fail count, too.
	FailuresPerMinute int
	// RequestsPerSecond is how many requests of one credential are answered; twice as many at once.
	RequestsPerSecond int
	// PagesPerSecond is how many requests of one address for pages to log in on are answered; ten times as many at once.
	PagesPerSecond int
	// WorkspacesPerMinute is how many workspaces one credential makes or resets, and as many at once.
	WorkspacesPerMinute int
}

// WorkspacesPerMinute is what a server has Limits.WorkspacesPerMinute at unless it is told otherwise.
const WorkspacesPerMinute = 20

// callers counts what is asked, by address and by credential. It forgets the quietest when there are too many.
type callers struct {
	limits Limits
	now    func() time.Time

	mu     sync.Mutex
	known  map[string]*caller
	pruned time.Time
}

type caller struct {
	bucket *rate.Limiter
	seen   time.Time
	good   map[[sha256.Size]byte]time.Time // credentials that were good from this address, and when
	trying map[[sha256.Size]byte]int       // those that are being looked into, and for how many requests
}

const (
	mostCallers  = 20_000
	mostGood     = 100 // credentials of one address
	goodFor      = time.Hour
	prunedAfter  = time.Minute // at the earliest, unless there are too many
	quietFor     = 10 * time.Minute
	failureRoom  = 2 // minutes' worth of failures at once
	requestsRoom = 2 // seconds' worth of requests at once
	pagesRoom    = 10
)

func newCallers(l Limits) *callers {
	return &callers{limits: l, now: time.Now, known: map[string]*caller{}}
}

// get finds a caller; the lock is held.
func (c *callers) get(name string, per rate.Limit, room int) *caller {
	now := c.now()
	if len(c.known) >= mostCallers || now.Sub(c.pruned) > prunedAfter {
		c.prune(now)
	}
	k := c.known[name]
	if k == nil {
		k = &caller{bucket: rate.NewLimiter(per, room), good: map[[sha256.Size]byte]time.Time{}, trying: map[[sha256.Size]byte]int{}}
		c.known[name] = k
	}
	k.seen = now
	return k
}

// prune forgets who has been quiet for so long that his bucket is full again. When that leaves too many it forgets a
// quarter of them, whoever they are: it costs as much as there are, and must not be for each that is new.
func (c *callers) prune(now time.Time) {
	c.pruned = now
	for name, k := range c.known {
		if now.Sub(k.seen) > quietFor {
			delete(c.known, name)
		}
	}
	if len(c.known) < mostCallers {
		return
	}
	for name := range c.known {
		if len(c.known) <= mostCallers*3/4 {
			return
		}
		delete(c.known, name)
	}
}

// admit says how long an address has to wait before a credential of it is looked into; 0 is not at all, and tried is
// called then. Until that, the credential counts as one that is not good: many at once are no more than one after another.
func (c *callers) admit(address, token string) time.Duration {
	if c.limits.FailuresPerMinute == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.address(address)
	hash := sha256.Sum256([]byte(token))
	if at, ok := k.good[hash]; ok && c.now().Sub(at) < goodFor {
		return 0
	}
	others := len(k.trying)
	if k.trying[hash] > 0 { // the same once more is no other guess
		others--
	}
	if after := wait(k.bucket.TokensAt(c.now())-float64(others), c.failureRate()); after > 0 {
		return after
	}
	k.trying[hash]++
	return 0
}

func (c *callers) failureRate() rate.Limit {
	return rate.Limit(float64(c.limits.FailuresPerMinute) / 60)
}

func (c *callers) address(address string) *caller {
	return c.get("address/"+address, c.failureRate(), failureRoom*c.limits.FailuresPerMinute)
}

// verdict is what was found out about a credential.
type verdict int

const (
	undecided verdict = iota // it could not be looked into
	isBad
	isGood
)

// tried notes what was found out about a credential of an address.
func (c *callers) tried(address, token string, v verdict) {
	if c.limits.FailuresPerMinute == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.address(address)
	hash := sha256.Sum256([]byte(token))
	if k.trying[hash]--; k.trying[hash] <= 0 {
		delete(k.trying, hash)
	}
	switch v {
	case isBad:
		k.bucket.AllowN(c.now(), 1)
		delete(k.good, hash)
	case isGood:
		if _, known := k.good[hash]; !known && len(k.good) >= mostGood {
			k.forgetOldest()
		}
		k.good[hash] = c.now()
	}
}

// forgetOldest makes room for another credential that is good.
func (k *caller) forgetOldest() {
	var oldest [sha256.Size]byte
	var since time.Time
	for hash, at := range k.good {
		if since.IsZero() || at.Before(since) {
			oldest, since = hash, at
		}
	}
	delete(k.good, oldest)
}

// request takes one request of a credential, or says how long it has to wait.
func (c *callers) request(credential string) time.Duration {
	l := c.limits.RequestsPerSecond
	return c.take("credential/"+credential, rate.Limit(l), requestsRoom*l)
}

// workspace takes one workspace that a credential makes or resets, or says how long it has to wait.
func (c *callers) workspace(credential string) time.Duration {
	l := c.limits.WorkspacesPerMinute
	return c.take("workspaces/"+credential, rate.Limit(l)/60, l)
}

// take takes one of what a caller may have so much of a second, and so much at once, or says how long he has to wait. 0 is no limit.
func (c *callers) take(name string, per rate.Limit, room int) time.Duration {
	if per == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.get(name, per, room)
	if k.bucket.AllowN(c.now(), 1) {
		return 0
	}
	return wait(k.bucket.TokensAt(c.now()), per)
}

// wait is how long a bucket takes to have a token.
func wait(tokens float64, per rate.Limit) time.Duration {
	if tokens >= 1 {
		return 0
	}
	return time.Duration((1 - tokens) / float64(per) * float64(time.Second))
}

// tooMany is the failure of a request that comes too soon.
func tooMany(after time.Duration, message string) *failure {
	return &failure{status: http.StatusTooManyRequests, kind: "too_many_requests", message: message, retryAfter: int(math.Ceil(after.Seconds()))}
}

func tooManyFailures(after time.Duration) *failure {
	return tooMany(after, fmt.Sprintf("Too many requests with credentials that are not good have come from this address; try again in %d s, with one that is", int(math.Ceil(after.Seconds()))))
}

func tooManyRequests(after time.Duration) *failure {
	return tooMany(after, "Too many requests have come with this credential; try again after the time in the header Retry-After")
}

func tooManyWorkspaces(after time.Duration) *failure {
	return tooMany(after, "This credential makes or resets workspaces too fast; use one as it is, or try again after the time in the header Retry-After")
}

// tooBusy is for whoever has asked for so much at once that the turn of a request has not come.
func tooBusy() *failure {
	return tooMany(time.Second, "Too many requests of this address are being worked on, or their answers are not read; read them, and send fewer at once")
}

// inTurn works on requests in turn.
func (e *edge) inTurn(next http.Handler) http.Handler {
	return admission.InTurn(next, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.fail(w, r, tooBusy()) }))
}

// AddressOf is where a request comes from: the network of 64 bits where that is how addresses are given out. Behind a
// proxy of ours it is what the proxy says last, as what is before that anybody can write; and the proxy itself where it says
// nothing that can be read. Empty, as one address that all others share, where neither tells.
func AddressOf(r *http.Request, trustForwarded bool) string {
	if forwarded := r.Header.Values("X-Forwarded-For"); trustForwarded && len(forwarded) > 0 {
		last := forwarded[len(forwarded)-1]
		if network := networkOf(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); network != "" {
			return network
		}
	}
	return networkOf(r.RemoteAddr)
}

// networkOf reads an address, with or without brackets and a port; empty: it is none.
func networkOf(text string) string {
	address, err := netip.ParseAddr(text)
	if inner, is := strings.CutPrefix(text, "["); is && strings.HasSuffix(inner, "]") {
		address, err = netip.ParseAddr(strings.TrimSuffix(inner, "]"))
	}
	if err != nil {
		port, err := netip.ParseAddrPort(text)
		if err != nil {
			return ""
		}
		address = port.Addr()
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64)
		return network.String()
	}
	return address.String()
}
