package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// Repeats counts the requests per Idempotency-Key. Clients repeat a request a few times. Without a limit, endless
// repeats would cause lookups and waits for known results.
type Repeats struct {
	now  func() time.Time
	seed maphash.Seed

	mu     sync.Mutex
	turned time.Time
	// current counts the requests of the current span, previous those of the previous span.
	current, previous map[uint64]int
}

const (
	// MaxRepeats bounds the requests of one key in two spans of RepeatsWindow.
	MaxRepeats = 20
	// RepeatsWindow is the length of a span.
	RepeatsWindow = 10 * time.Second
	// maxRepeatedKeys bounds the keys in a span. A span ends early if there are more.
	maxRepeatedKeys = 50_000
)

// KeyRequest identifies an Idempotency-Key like idempotency.KeyedRequest: by sender, workspace and operation, and for
// publishable keys by content.
type KeyRequest struct{ Sender, WorkspaceID, Operation, Key, Content string }

// NewRepeats returns a Repeats without requests.
func NewRepeats() *Repeats {
	return &Repeats{now: time.Now, seed: maphash.MakeSeed()}
}

// Admit counts a request with a key, or returns how long it must wait. Requests that must wait do not count, and
// calling unanswered uncounts one.
func (c *Repeats) Admit(r KeyRequest) (after time.Duration, unanswered func()) {
	name := maphash.Comparable(c.seed, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	switch span := now.Sub(c.turned); {
	case span >= 2*RepeatsWindow:
		c.turned, c.current, c.previous = now, map[uint64]int{}, nil
	case span >= RepeatsWindow: // the next span starts where the previous one ended
		c.turned, c.current, c.previous = c.turned.Add(RepeatsWindow), map[uint64]int{}, c.current
	case len(c.current) >= maxRepeatedKeys:
		c.turned, c.current, c.previous = now, map[uint64]int{}, c.current
	}
	rest := c.turned.Add(RepeatsWindow).Sub(now)
	switch {
	case c.current[name] >= MaxRepeats:
		return rest + RepeatsWindow, nil
	case c.current[name]+c.previous[name] >= MaxRepeats:
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
