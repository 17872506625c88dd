// Package ratelimit limits how often a client may do something: send requests, guess credentials, load login pages,
// create workspaces, and repeat a request with one Idempotency-Key. It identifies clients by credential or by address.
// It must not know operations or response formats. Package admission limits concurrent work.
package ratelimit

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"
)

// Limits bound the requests to one server instance. A zero field means no limit.
type Limits struct {
	// FailuresPerMinute bounds the requests of an address with invalid credentials; the burst is twice as many.
	// Credentials that were valid from the address are not affected. Failed logins on login pages count, too.
	FailuresPerMinute int
	// RequestsPerSecond bounds the requests of a credential; the burst is twice as many.
	RequestsPerSecond int
	// SessionRequestsPerSecond bounds the requests of an address with client sessions and publishable keys; the burst is
	// ten times as many.
	SessionRequestsPerSecond int
	// PagesPerSecond bounds the requests of an address for login pages; the burst is ten times as many.
	PagesPerSecond int
	// WorkspacesPerMinute bounds how many workspaces a credential creates or resets. The burst is the same number.
	WorkspacesPerMinute int
}

const (
	// WorkspacesPerMinute is the default of Limits.WorkspacesPerMinute.
	WorkspacesPerMinute = 20
	// SessionRequestsPerSecond is the default of Limits.SessionRequestsPerSecond. All users of an app share the address
	// of a proxy that is not trusted, or of the app's own backend.
	SessionRequestsPerSecond = 50
)

// Limiter counts requests by address and by credential. It remembers a bounded number of callers and evicts idle ones.
// Its methods may be called concurrently.
type Limiter struct {
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
	sessionBurstSeconds = 10
)

// New returns a Limiter with limits.
func New(limits Limits) *Limiter {
	return &Limiter{limits: limits, now: time.Now, known: map[string]*caller{}}
}

// get returns a caller. The lock must be held.
func (l *Limiter) get(name string, per rate.Limit, room int) *caller {
	now := l.now()
	if len(l.known) >= maxCallers || now.Sub(l.pruned) > pruneInterval {
		l.prune(now)
	}
	k := l.known[name]
	if k == nil {
		k = &caller{
			bucket:   rate.NewLimiter(per, room),
			valid:    map[[sha256.Size]byte]time.Time{},
			checking: map[[sha256.Size]byte]int{},
		}
		l.known[name] = k
	}
	k.seen = now
	return k
}

// prune evicts callers that have been idle until their bucket is full. If too many remain, it evicts a quarter of
// them, so that its cost is not paid for each new caller.
func (l *Limiter) prune(now time.Time) {
	l.pruned = now
	for name, k := range l.known {
		if now.Sub(k.seen) > idleAfter {
			delete(l.known, name)
		}
	}
	if len(l.known) < maxCallers {
		return
	}
	for name := range l.known {
		if len(l.known) <= maxCallers*3/4 {
			return
		}
		delete(l.known, name)
	}
}

// Admit returns how long an address must wait before a credential is checked. If it returns 0, the caller must call
// RecordVerdict. Until then, the credential counts as invalid, so that concurrent guesses gain nothing.
func (l *Limiter) Admit(address, token string) time.Duration {
	if l.limits.FailuresPerMinute == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.address(address)
	hash := sha256.Sum256([]byte(token))
	if at, ok := k.valid[hash]; ok && l.now().Sub(at) < validCredentialTTL {
		return 0
	}
	others := len(k.checking)
	if k.checking[hash] > 0 { // repeating a credential is not another guess
		others--
	}
	if after := wait(k.bucket.TokensAt(l.now())-float64(others), l.failureRate()); after > 0 {
		return after
	}
	k.checking[hash]++
	return 0
}

func (l *Limiter) failureRate() rate.Limit {
	return rate.Limit(float64(l.limits.FailuresPerMinute) / 60)
}

func (l *Limiter) address(address string) *caller {
	return l.get("address/"+address, l.failureRate(), failureBurstMinutes*l.limits.FailuresPerMinute)
}

// Verdict is the result of checking a credential.
type Verdict int

const (
	// Undecided means that the check itself failed.
	Undecided Verdict = iota
	// Invalid means that the credential is unknown or revoked.
	Invalid
	// Valid means that the credential exists.
	Valid
)

// RecordVerdict records the verdict about a credential of an address.
func (l *Limiter) RecordVerdict(address, token string, v Verdict) {
	if l.limits.FailuresPerMinute == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.address(address)
	hash := sha256.Sum256([]byte(token))
	if k.checking[hash]--; k.checking[hash] <= 0 {
		delete(k.checking, hash)
	}
	switch v {
	case Invalid:
		k.bucket.AllowN(l.now(), 1)
		delete(k.valid, hash)
	case Valid:
		if _, known := k.valid[hash]; !known && len(k.valid) >= maxValidCredentials {
			k.evictOldest()
		}
		k.valid[hash] = l.now()
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

// Guess returns how long an address must wait before the server evaluates a possible guess. If after is 0, the caller
// must call record once with the result. Until then, the guess counts as refused.
func (l *Limiter) Guess(address string) (after time.Duration, record func(refused bool)) {
	try := uuid.NewString() // each guess counts separately; its content is not kept
	if after := l.Admit(address, try); after > 0 {
		return after, nil
	}
	return 0, func(refused bool) {
		found := Undecided // successes are not remembered, because they may be a person's password
		if refused {
			found = Invalid
		}
		l.RecordVerdict(address, try, found)
	}
}

// Page counts a request of an address for a page, or returns how long it must wait.
func (l *Limiter) Page(address string) (after time.Duration) {
	n := l.limits.PagesPerSecond
	return l.takeToken("page/"+address, rate.Limit(n), pageBurstSeconds*n)
}

// Request counts a request of a credential, or returns how long it must wait.
func (l *Limiter) Request(credential string) time.Duration {
	n := l.limits.RequestsPerSecond
	return l.takeToken("credential/"+credential, rate.Limit(n), requestBurstSeconds*n)
}

// Session counts a request of an address with a client session or a publishable key, or returns how long it must wait.
func (l *Limiter) Session(address string) time.Duration {
	n := l.limits.SessionRequestsPerSecond
	return l.takeToken("session/"+address, rate.Limit(n), sessionBurstSeconds*n)
}

// Workspace counts a workspace that a credential creates or resets, or returns how long it must wait.
func (l *Limiter) Workspace(credential string) time.Duration {
	n := l.limits.WorkspacesPerMinute
	return l.takeToken("workspaces/"+credential, rate.Limit(n)/60, n)
}

// takeToken takes a token from a caller's bucket, or returns how long the caller must wait. 0 per means no limit.
func (l *Limiter) takeToken(name string, per rate.Limit, room int) time.Duration {
	if per == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.get(name, per, room)
	if k.bucket.AllowN(l.now(), 1) {
		return 0
	}
	return wait(k.bucket.TokensAt(l.now()), per)
}

// wait returns how long a bucket needs until it has a token.
func wait(tokens float64, per rate.Limit) time.Duration {
	if tokens >= 1 {
		return 0
	}
	return time.Duration((1 - tokens) / float64(per) * float64(time.Second))
}
