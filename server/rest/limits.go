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

// Limits bound the requests to one server instance. A zero field means no limit.
type Limits struct {
	// FailuresPerMinute bounds the requests of an address with invalid credentials; the burst is twice as many.
	// Credentials that were valid from the address are not affected. Failed logins on login pages count, too.
	FailuresPerMinute int
	// RequestsPerSecond bounds the requests of a credential; the burst is twice as many.
	RequestsPerSecond int
	// PagesPerSecond bounds the requests of an address for login pages; the burst is ten times as many.
	PagesPerSecond int
	// WorkspacesPerMinute bounds how many workspaces a credential creates or resets. The burst is the same number.
	WorkspacesPerMinute int
}

// WorkspacesPerMinute is the default of Limits.WorkspacesPerMinute.
const WorkspacesPerMinute = 20

// callers counts requests by address and by credential. If there are too many, it evicts the idle ones.
type callers struct {
	limits Limits
	now    func() time.Time

	mu     sync.Mutex
	known  map[string]*caller
	pruned time.Time
}

type caller struct {
	bucket   *rate.Limiter
	seen     time.Time
	valid    map[[sha256.Size]byte]time.Time // valid credentials from this address, and when
	checking map[[sha256.Size]byte]int       // credentials being checked, with the number of requests
}

const (
	maxCallers          = 20_000
	maxValidCredentials = 100 // valid credentials remembered per address
	validCredentialTTL  = time.Hour
	pruneInterval       = time.Minute // minimum between two evictions, unless there are too many callers
	idleAfter           = 10 * time.Minute
	failureBurstMinutes = 2 // burst of failures, in minutes
	requestBurstSeconds = 2 // burst of requests, in seconds
	pageBurstSeconds    = 10
)

func newCallers(l Limits) *callers {
	return &callers{limits: l, now: time.Now, known: map[string]*caller{}}
}

// get returns a caller. The lock must be held.
func (c *callers) get(name string, per rate.Limit, room int) *caller {
	now := c.now()
	if len(c.known) >= maxCallers || now.Sub(c.pruned) > pruneInterval {
		c.prune(now)
	}
	k := c.known[name]
	if k == nil {
		k = &caller{
			bucket:   rate.NewLimiter(per, room),
			valid:    map[[sha256.Size]byte]time.Time{},
			checking: map[[sha256.Size]byte]int{},
		}
		c.known[name] = k
	}
	k.seen = now
	return k
}

// prune evicts callers that have been idle until their bucket is full. If too many remain, it evicts a quarter of
// them, so that its cost is not paid for each new caller.
func (c *callers) prune(now time.Time) {
	c.pruned = now
	for name, k := range c.known {
		if now.Sub(k.seen) > idleAfter {
			delete(c.known, name)
		}
	}
	if len(c.known) < maxCallers {
		return
	}
	for name := range c.known {
		if len(c.known) <= maxCallers*3/4 {
			return
		}
		delete(c.known, name)
	}
}

// admit returns how long an address must wait before a credential is checked. If it returns 0, the caller must call
// tried. Until then, the credential counts as invalid, so that concurrent guesses gain nothing.
func (c *callers) admit(address, token string) time.Duration {
	if c.limits.FailuresPerMinute == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.address(address)
	hash := sha256.Sum256([]byte(token))
	if at, ok := k.valid[hash]; ok && c.now().Sub(at) < validCredentialTTL {
		return 0
	}
	others := len(k.checking)
	if k.checking[hash] > 0 { // repeating a credential is not another guess
		others--
	}
	if after := wait(k.bucket.TokensAt(c.now())-float64(others), c.failureRate()); after > 0 {
		return after
	}
	k.checking[hash]++
	return 0
}

func (c *callers) failureRate() rate.Limit {
	return rate.Limit(float64(c.limits.FailuresPerMinute) / 60)
}

func (c *callers) address(address string) *caller {
	return c.get("address/"+address, c.failureRate(), failureBurstMinutes*c.limits.FailuresPerMinute)
}

// verdict is the result of checking a credential.
type verdict int

const (
	undecided verdict = iota // the check failed
	isInvalid
	isValid
)

// recordVerdict records the verdict about a credential of an address.
func (c *callers) recordVerdict(address, token string, v verdict) {
	if c.limits.FailuresPerMinute == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.address(address)
	hash := sha256.Sum256([]byte(token))
	if k.checking[hash]--; k.checking[hash] <= 0 {
		delete(k.checking, hash)
	}
	switch v {
	case isInvalid:
		k.bucket.AllowN(c.now(), 1)
		delete(k.valid, hash)
	case isValid:
		if _, known := k.valid[hash]; !known && len(k.valid) >= maxValidCredentials {
			k.evictOldest()
		}
		k.valid[hash] = c.now()
	}
}

// evictOldest makes room for another valid credential.
func (k *caller) evictOldest() {
	var oldest [sha256.Size]byte
	var since time.Time
	for hash, at := range k.valid {
		if since.IsZero() || at.Before(since) {
			oldest, since = hash, at
		}
	}
	delete(k.valid, oldest)
}

// request counts a request of a credential, or returns how long it must wait.
func (c *callers) request(credential string) time.Duration {
	l := c.limits.RequestsPerSecond
	return c.takeToken("credential/"+credential, rate.Limit(l), requestBurstSeconds*l)
}

// workspace counts a workspace that a credential creates or resets, or returns how long it must wait.
func (c *callers) workspace(credential string) time.Duration {
	l := c.limits.WorkspacesPerMinute
	return c.takeToken("workspaces/"+credential, rate.Limit(l)/60, l)
}

// takeToken takes a token from a caller's bucket, or returns how long the caller must wait. 0 per means no limit.
func (c *callers) takeToken(name string, per rate.Limit, room int) time.Duration {
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

// wait returns how long a bucket needs until it has a token.
func wait(tokens float64, per rate.Limit) time.Duration {
	if tokens >= 1 {
		return 0
	}
	return time.Duration((1 - tokens) / float64(per) * float64(time.Second))
}

// rateLimited is the error of a rate-limited request.
func rateLimited(after time.Duration, message string) *failure {
	return &failure{
		status:     http.StatusTooManyRequests,
		kind:       "too_many_requests",
		message:    message,
		retryAfter: int(math.Ceil(after.Seconds())),
	}
}

func tooManyFailures(after time.Duration) *failure {
	return rateLimited(
		after,
		fmt.Sprintf("Too many requests with invalid credentials from this address; try again in %d s with a valid one",
			int(math.Ceil(after.Seconds()))),
	)
}

func tooManyRequests(after time.Duration) *failure {
	return rateLimited(
		after,
		"Too many requests with this credential; try again after the time in the header Retry-After",
	)
}

func tooManyWorkspaces(after time.Duration) *failure {
	return rateLimited(after, "This credential creates or resets workspaces too fast; "+
		"use an existing one, or try again after the time in the header Retry-After")
}

// tooBusy is the error of a request that got no slot, because the client has too many concurrent requests.
func tooBusy() *failure {
	return rateLimited(time.Second, "Too many concurrent requests from this address, or unread responses; "+
		"read the responses, and send fewer requests concurrently")
}

// queueFairly admits requests by fair queueing.
func (e *edge) queueFairly(next http.Handler) http.Handler {
	return admission.Middleware(
		next,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.fail(w, r, tooBusy()) }),
	)
}

// AddressOf returns the client address of a request: for IPv6, the /64 network. Behind a trusted proxy it is the last
// address in X-Forwarded-For, because clients can forge the others, or the proxy's own if the header is unreadable.
// It is empty, and thus shared, if neither is known.
func AddressOf(r *http.Request, trustForwarded bool) string {
	if forwarded := r.Header.Values("X-Forwarded-For"); trustForwarded && len(forwarded) > 0 {
		last := forwarded[len(forwarded)-1]
		if network := networkOf(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); network != "" {
			return network
		}
	}
	return networkOf(r.RemoteAddr)
}

// networkOf parses an address, with or without brackets and a port. It returns an empty string if the address is
// invalid.
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
