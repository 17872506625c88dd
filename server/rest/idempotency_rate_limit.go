package rest

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/google/uuid"
)

// repeats counts how often each Idempotency-Key comes. Who was not answered sends a request again a few times; whoever does
// so without an end has looked up, and waited for, what is known already.
type repeats struct {
	now  func() time.Time
	seed maphash.Seed

	mu           sync.Mutex
	turned       time.Time
	lately, once map[uint64]int // requests of this span and of the one before
}

const (
	mostRepeats  = 20 // of one key in two spans
	repeatsSpan  = 10 * time.Second
	mostRepeated = 50_000 // keys in a span, which ends early when there are more
)

// repeated is what tells keys apart, as access.KeyedRequest says: they are each sender's own, in each workspace and for each
// operation, and of a publishable key, which everybody has, for what is asked for.
type repeated struct{ sender, workspaceID, operation, key, content string }

func newRepeats() *repeats {
	return &repeats{now: time.Now, seed: maphash.MakeSeed()}
}

// come takes one request with a key, or says how long it has to wait. Those that have to wait do not count, nor those of which
// unanswered is called.
func (c *repeats) come(r repeated) (after time.Duration, unanswered func()) {
	name := maphash.Comparable(c.seed, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	switch span := now.Sub(c.turned); {
	case span >= 2*repeatsSpan:
		c.turned, c.lately, c.once = now, map[uint64]int{}, nil
	case span >= repeatsSpan: // when it ended, not when somebody came after that
		c.turned, c.lately, c.once = c.turned.Add(repeatsSpan), map[uint64]int{}, c.lately
	case len(c.lately) >= mostRepeated:
		c.turned, c.lately, c.once = now, map[uint64]int{}, c.lately
	}
	rest := c.turned.Add(repeatsSpan).Sub(now)
	switch {
	case c.lately[name] >= mostRepeats:
		return rest + repeatsSpan, nil
	case c.lately[name]+c.once[name] >= mostRepeats:
		return rest, nil
	}
	c.lately[name]++
	return 0, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, span := range []map[uint64]int{c.lately, c.once} {
			if span[name] > 0 {
				span[name]--
				return
			}
		}
	}
}

// repeat takes a request with a key, if it has one.
func (e *edge) repeat(x *exchange, sender, workspaceID, content string) error {
	key := x.request.Header.Get(keyHeader)
	if !x.operation.keyed || key == "" {
		return nil
	}
	if id, err := uuid.Parse(workspaceID); err == nil { // it can be written in several ways
		workspaceID = id.String()
	}
	after, unanswered := e.repeats.come(repeated{sender, workspaceID, x.operation.path, key, content})
	if x.unanswered = unanswered; after > 0 {
		return tooMany(after, fmt.Sprintf("More than %d requests with this %s have come within a few seconds; send it again, with the same key, after the time in the header Retry-After", mostRepeats, keyHeader))
	}
	return nil
}
