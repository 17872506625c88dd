package health

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// defaultTTL is how long counts are cached.
	defaultTTL = 30 * time.Second
	// failureTTL is how long a failure to count is cached.
	failureTTL = 5 * time.Second
)

// cache holds the last result of read. Concurrent callers share one call of read.
type cache[T any] struct {
	ttl  time.Duration
	read func(context.Context) (T, error)
	// reading is held by the caller that reads. It is a channel, so that others stop waiting when their context ends.
	reading chan struct{}

	mu   sync.Mutex
	at   time.Time // when last was read; zero: never
	last T
	err  error
}

func newCache[T any](ttl time.Duration, read func(context.Context) (T, error)) *cache[T] {
	return &cache[T]{ttl: cmp.Or(ttl, defaultTTL), read: read, reading: make(chan struct{}, 1)}
}

// get returns the last result, or reads a new one if the last one is too old.
func (c *cache[T]) get(ctx context.Context) (T, error) {
	if last, valid, err := c.result(); valid {
		return last, err
	}
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("wait for the counts: %w", ctx.Err())
	}
	last, valid, err := c.result()
	if !valid {
		last, err = c.read(ctx)
		c.store(last, err)
	}
	return last, err
}

// peek is get for callers that wait only shortly. It returns no result if the read takes longer or fails. The read
// continues in the background, for at most timeout.
func (c *cache[T]) peek(wait, timeout time.Duration) (_ T, known bool) {
	last, valid, err := c.result()
	if !valid && len(c.reading) == 0 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_, _ = c.get(ctx) // a later peek returns it
		}()
		select {
		case <-done:
		case <-time.After(wait):
		}
		last, valid, err = c.result()
	}
	return last, valid && err == nil
}

// result returns the last result, and whether it is still valid.
func (c *cache[T]) result() (_ T, valid bool, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ttl := c.ttl
	if c.err != nil {
		ttl = min(ttl, failureTTL)
	}
	return c.last, !c.at.IsZero() && time.Since(c.at) < ttl, c.err
}

func (c *cache[T]) store(result T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.last, c.err = time.Now(), result, err
}
