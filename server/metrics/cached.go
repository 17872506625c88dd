package metrics

import (
	"context"
	"sync"
	"time"
)

// cached caches the last result of read, so that many scrapes cost the database one query.
type cached[T any] struct {
	ttl  time.Duration
	read func(context.Context) (T, error)

	mu   sync.Mutex
	at   time.Time
	last T
	err  error
}

// get returns the last result or error. It calls read if the last call is more than ttl ago.
func (c *cached[T]) get(ctx context.Context) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= c.ttl {
		c.last, c.err = c.read(ctx)
		c.at = time.Now()
	}
	return c.last, c.err
}
