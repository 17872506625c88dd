package rest

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/google/uuid"
)

// keyRepeats counts the requests per Idempotency-Key. Clients repeat a request a few times. Without a limit, endless
// repeats would cause lookups and waits for known results.
type keyRepeats struct {
	now  func() time.Time
	seed maphash.Seed

	mu     sync.Mutex
	turned time.Time
	// current counts the requests of the current span, previous those of the previous span.
	current, previous map[uint64]int
}

const (
	// maxRepeats bounds the requests of one key in two spans.
	maxRepeats    = 20
	repeatsWindow = 10 * time.Second
	// maxRepeatedKeys bounds the keys in a span. A span ends early if there are more.
	maxRepeatedKeys = 50_000
)

// keyRequest identifies a key like access.KeyedRequest: by sender, workspace and operation, and for publishable keys by
// content.
type keyRequest struct{ sender, workspaceID, operation, key, content string }

func newRepeats() *keyRepeats {
	return &keyRepeats{now: time.Now, seed: maphash.MakeSeed()}
}

// admit counts a request with a key, or returns how long it must wait. Requests that must wait do not count, and
// calling unanswered uncounts one.
func (c *keyRepeats) admit(r keyRequest) (after time.Duration, unanswered func()) {
	name := maphash.Comparable(c.seed, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	switch span := now.Sub(c.turned); {
	case span >= 2*repeatsWindow:
		c.turned, c.current, c.previous = now, map[uint64]int{}, nil
	case span >= repeatsWindow: // the next span starts where the previous one ended
		c.turned, c.current, c.previous = c.turned.Add(repeatsWindow), map[uint64]int{}, c.current
	case len(c.current) >= maxRepeatedKeys:
		c.turned, c.current, c.previous = now, map[uint64]int{}, c.current
	}
	rest := c.turned.Add(repeatsWindow).Sub(now)
	switch {
	case c.current[name] >= maxRepeats:
		return rest + repeatsWindow, nil
	case c.current[name]+c.previous[name] >= maxRepeats:
		return rest, nil
	}
	c.current[name]++
	return 0, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, span := range []map[uint64]int{c.current, c.previous} {
			if span[name] > 0 {
				span[name]--
				return
			}
		}
	}
}

// countRepeat counts a request if it has a key.
func (e *edge) countRepeat(x *exchange, sender, workspaceID, content string) error {
	key := x.request.Header.Get(keyHeader)
	if !x.operation.keyed || key == "" {
		return nil
	}
	if id, err := uuid.Parse(workspaceID); err == nil { // normalize the spelling
		workspaceID = id.String()
	}
	after, unanswered := e.repeats.admit(keyRequest{sender, workspaceID, x.operation.path, key, content})
	if x.unanswered = unanswered; after > 0 {
		return rateLimited(after, fmt.Sprintf("More than %d requests with this %s within a few seconds; "+
			"send it again, with the same key, after the time in the header Retry-After", maxRepeats, keyHeader))
	}
	return nil
}
