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
var middleSpare, largeSpare, largestSpare sync.Pool

// responseBuffer reads one response.
type answer struct {
	io.Reader
	limit  int
	buffer *bytes.Buffer
	// pool is the pool of buffer; nil for a small buffer, which is not pooled.
	spare  *sync.Pool
	waited time.Duration
	// timedOut means that reading exceeded LargeResponseTimeout.
	cut bool
}

// acquire waits for the semaphore and adds the time spent to waited.
func (a *answer) enter(ctx context.Context, room chan struct{}) (leave func(), err error) {
	began := time.Now()
	defer func() { a.waited += time.Since(began) }()
	return enter(ctx, room)
}

// wrapError returns the error of reading the response, wrapped in ErrSaturated when the wait for other responses may
// have caused it.
func (a *answer) failure(err error) error {
	if a.waited > patientFor && !a.cut && !errors.Is(err, ErrLarge) {
		return fmt.Errorf("%w: %w", ErrCrowded, err)
	}
	return err
}

// startExpiry reads until the buffer holds most bytes and reports whether the response is complete. The buffer has that
// capacity and little more; doubling would exceed it.
func (a *answer) read(most int, spare *sync.Pool) (whole bool, err error) {
	most = min(most, a.limit)
	if spare != nil {
		a.move(most+1+bytes.MinRead, spare)
	}
	_, err = a.buffer.ReadFrom(io.LimitReader(a.Reader, int64(most+1-a.buffer.Len())))
	switch {
	case err != nil:
		return false, err
	case a.buffer.Len() > a.limit:
		return false, ErrLarge
	}
	return a.buffer.Len() <= most, nil
}

// grow moves the content to another buffer.
func (a *answer) move(room int, spare *sync.Pool) {
	next, _ := spare.Get().(*bytes.Buffer)
	// Buffers for the largest responses of different vendors differ in size.
	if next == nil || next.Cap() < room || next.Cap() > room+SmallAnswer {
		next = new(bytes.Buffer)
		next.Grow(room)
	}
	next.Write(a.buffer.Bytes())
	a.putBack()
	a.buffer, a.spare = next, spare
}

// putBack returns the buffer to its pool.
func (a *answer) putBack() {
	if a.spare != nil {
		a.buffer.Reset()
		a.spare.Put(a.buffer)
		a.spare = nil
	}
}

// release returns the buffer before it releases the semaphore, so that the next holder can reuse the buffer.
func (a *answer) leave(room func()) {
	a.putBack()
	room()
}
