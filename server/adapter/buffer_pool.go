package adapter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The pools reuse the buffers of large responses, one pool per size class. Without them, a vendor that repeatedly
// sends megabytes would create as much garbage.
var mediumBuffers, largeBuffers, largestBuffers sync.Pool

// responseBuffer reads one response.
type responseBuffer struct {
	io.Reader
	limit  int
	buffer *bytes.Buffer
	// pool is the pool of buffer; nil for a small buffer, which is not pooled.
	pool   *sync.Pool
	waited time.Duration
	// timedOut means that reading exceeded LargeResponseTimeout.
	timedOut bool
}

// acquire waits for the semaphore and adds the time spent to waited.
func (a *responseBuffer) acquire(ctx context.Context, room chan struct{}) (leave func(), err error) {
	began := time.Now()
	defer func() { a.waited += time.Since(began) }()
	return acquire(ctx, room)
}

// wrapError returns the error of reading the response, wrapped in ErrSaturated when the wait for other responses may
// have caused it.
func (a *responseBuffer) wrapError(err error) error {
	if a.waited > waitTolerance && !a.timedOut && !errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%w: %w", ErrSaturated, err)
	}
	return err
}

// startExpiry reads until the buffer holds most bytes and reports whether the response is complete. The buffer has that
// capacity and little more; doubling would exceed it.
func (a *responseBuffer) read(most int, spare *sync.Pool) (whole bool, err error) {
	most = min(most, a.limit)
	if spare != nil {
		a.grow(most+1+bytes.MinRead, spare)
	}
	_, err = a.buffer.ReadFrom(io.LimitReader(a.Reader, int64(most+1-a.buffer.Len())))
	switch {
	case err != nil:
		return false, err
	case a.buffer.Len() > a.limit:
		return false, ErrTooLarge
	}
	return a.buffer.Len() <= most, nil
}

// grow moves the content to another buffer.
func (a *responseBuffer) grow(room int, spare *sync.Pool) {
	next, _ := spare.Get().(*bytes.Buffer)
	// Buffers for the largest responses of different vendors differ in size.
	if next == nil || next.Cap() < room || next.Cap() > room+SmallResponse {
		next = new(bytes.Buffer)
		next.Grow(room)
	}
	next.Write(a.buffer.Bytes())
	a.putBack()
	a.buffer, a.pool = next, spare
}

// putBack returns the buffer to its pool.
func (a *responseBuffer) putBack() {
	if a.pool != nil {
		a.buffer.Reset()
		a.pool.Put(a.buffer)
		a.pool = nil
	}
}

// release returns the buffer before it releases the semaphore, so that the next holder can reuse the buffer.
func (a *responseBuffer) release(room func()) {
	a.putBack()
	room()
}
