package adapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of the responses that the server reads concurrently from all vendors. Small responses are not limited.
const (
	mediumResponse = 1 << 20
	// largeBufferSize is the first buffer size of a larger response.
	largeBufferSize = 4 << 20
	// maxObjects limits the objects of a response: each takes some hundred bytes after decoding.
	maxObjects = 100_000
	// maxCommas limits the commas of a response: each value takes some thirty bytes after decoding.
	maxCommas = 1_000_000
)

var (
	mediumSem = make(chan struct{}, 8)
	largeSem  = make(chan struct{}, 1)
)

// SmallResponse is the number of bytes that a vendor may send without waiting for other large responses.
const SmallResponse = 64 << 10

// LargeResponseTimeout is the maximum time to receive the rest of a larger response while others wait.
const LargeResponseTimeout = 10 * time.Second

// MaxResponseHeader is the maximum size of a response header in bytes.
const MaxResponseHeader = 32 << 10

// ErrTooLarge is returned for a response that exceeds its size limit.
var ErrTooLarge = errors.New("the answer is too large")

// ErrSaturated is returned for a response that has waited more than waitTolerance for other large responses. The
// vendor, or the timeout of the call, may have ended it meanwhile. It says nothing about the vendor, unless the
// vendor has had LargeResponseTimeout.
var ErrSaturated = errors.New("other large responses were being read")

// waitTolerance is the longest wait for other responses that cannot have caused a failure.
const waitTolerance = time.Second

// ReadResponse reads a response of at most limit bytes and calls decode before other responses of its size class are
// read. A vendor that sends much therefore blocks others no longer than the timeout, and the server's memory stays
// bounded. decode must not retain its argument. It fails with ErrTooLarge, ErrSaturated, the error of r, the error of
// ctx, or the error of decode.
func ReadResponse(ctx context.Context, r io.Reader, limit int, decode func([]byte) error) error {
	a := &responseBuffer{Reader: r, limit: limit, buffer: new(bytes.Buffer)}
	whole, err := a.read(SmallResponse, nil)
	if err == nil && !whole {
		var done func()
		if done, err = a.acquire(ctx, mediumSem); err != nil {
			return a.wrapError(err)
		}
		defer a.release(done)
		ends := closeAfter(r, LargeResponseTimeout)
		if whole, err = a.read(mediumResponse, &mediumBuffers); err == nil && !whole {
			a.timedOut = ends()
			if done, err = a.acquire(ctx, largeSem); err != nil {
				return a.wrapError(err)
			}
			defer a.release(done)
			ends = closeAfter(r, LargeResponseTimeout)
			if whole, err = a.read(largeBufferSize, &largeBuffers); err == nil && !whole {
				_, err = a.read(limit, &largestBuffers)
			}
		}
		a.timedOut = ends() || a.timedOut
	}
	if err != nil {
		return a.wrapError(err)
	}
	if bytes.Count(a.buffer.Bytes(), []byte("{")) > maxObjects ||
		bytes.Count(a.buffer.Bytes(), []byte(",")) > maxCommas {
		return ErrTooLarge
	}
	return decode(a.buffer.Bytes())
}

// AcquireMemory waits until size bytes, which are known to arrive, may be received in addition to those of others. It
// fails when ctx ends.
func AcquireMemory(ctx context.Context, size int) (leave func(), err error) {
	switch {
	case size <= SmallResponse:
		return func() {}, nil
	case size <= mediumResponse:
		return acquire(ctx, mediumSem)
	default:
		return acquire(ctx, largeSem)
	}
}

func acquire(ctx context.Context, room chan struct{}) (leave func(), err error) {
	h := memoryPermitOf(ctx)
	if h.holds(room) {
		return func() {}, nil
	}
	inside := func() (func(), error) {
		if h.adopt(room) {
			return h.startExpiry, nil
		}
		return func() { <-room }, nil
	}
	select {
	case room <- struct{}{}: // even if ctx has just ended
		return inside()
	default:
	}
	select {
	case room <- struct{}{}:
		return inside()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other large responses: %w", ctx.Err())
	}
}

// closeAfter closes r, if it is an io.Closer, unless stop is called within d. stop reports whether it was too late.
func closeAfter(r io.Reader, d time.Duration) (stop func() (late bool)) {
	c, ok := r.(io.Closer)
	if !ok {
		return func() bool { return false }
	}
	// The reader gets the error of a closed connection.
	t := time.AfterFunc(d, func() { c.Close() })
	return func() bool { return !t.Stop() }
}

// List is a JSON array with a bounded number of elements: an element takes more memory than the few bytes that encode
// it.
type List[T any] []T

// MaxListElements is the maximum number of elements of a List.
const MaxListElements = 50_000

// UnmarshalJSON implements json.Unmarshaler. It fails for a list that is too long or contains null.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	d := json.NewDecoder(bytes.NewReader(data))
	begin, err := d.Token()
	if err != nil || begin == nil {
		return err
	}
	if begin != json.Delim('[') {
		return &json.UnmarshalTypeError{Value: "value", Offset: d.InputOffset()}
	}
	*l = List[T]{}
	for d.More() {
		if len(*l) == MaxListElements {
			return fmt.Errorf("the list has more than %d elements", MaxListElements)
		}
		var v *T
		if err := d.Decode(&v); err != nil {
			return err
		}
		if v == nil {
			return errors.New("the list has an element that is null")
		}
		*l = append(*l, *v)
	}
	return nil
}
