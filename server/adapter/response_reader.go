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

// What all vendors together may have the server keep of answers that are being read. Small ones are free.
const (
	middleAnswer = 1 << 20
	mostOfLarge  = 4 << 20   // there is room for so much of what is larger until more has come
	mostObjects  = 100_000   // of an answer: each takes some hundred bytes once it is read
	mostParts    = 1_000_000 // commas of an answer: what is between them takes some thirty bytes
)

var (
	middles = make(chan struct{}, 8)
	larges  = make(chan struct{}, 1)
)

// SmallAnswer is how many bytes a vendor may send without waiting for others that send much.
const SmallAnswer = 64 << 10

// LargeWithin is how long the rest of what is larger may take: others wait for it.
const LargeWithin = 10 * time.Second

// AnswerHeader is how many bytes the header of an answer may have.
const AnswerHeader = 32 << 10

// ErrLarge is the failure of reading an answer that is larger than it may be.
var ErrLarge = errors.New("the answer is too large")

// ErrCrowded is the failure of reading an answer that has waited for large ones of others for more than patientFor: its vendor,
// or the time bound of the call, may have ended it meanwhile. It says nothing about the vendor, unless that has had LargeWithin.
var ErrCrowded = errors.New("others' large answers were being read")

const patientFor = time.Second

// ReadAnswer reads an answer of at most limit bytes, and has decode take it in before others of its size are read: a
// vendor that sends much keeps nobody waiting for longer than the time bound, and the memory of the server small. What
// decode is given is used again afterwards. It fails with ErrLarge, with ErrCrowded, as the reader does, as ctx does, and as decode does.
func ReadAnswer(ctx context.Context, r io.Reader, limit int, decode func([]byte) error) error {
	a := &answer{Reader: r, limit: limit, buffer: new(bytes.Buffer)}
	whole, err := a.read(SmallAnswer, nil)
	if err == nil && !whole {
		var done func()
		if done, err = a.enter(ctx, middles); err != nil {
			return a.failure(err)
		}
		defer a.leave(done)
		ends := endAfter(r, LargeWithin)
		if whole, err = a.read(middleAnswer, &middleSpare); err == nil && !whole {
			a.cut = ends()
			if done, err = a.enter(ctx, larges); err != nil {
				return a.failure(err)
			}
			defer a.leave(done)
			ends = endAfter(r, LargeWithin)
			if whole, err = a.read(mostOfLarge, &largeSpare); err == nil && !whole {
				_, err = a.read(limit, &largestSpare)
			}
		}
		a.cut = ends() || a.cut
	}
	if err != nil {
		return a.failure(err)
	}
	if bytes.Count(a.buffer.Bytes(), []byte("{")) > mostObjects || bytes.Count(a.buffer.Bytes(), []byte(",")) > mostParts {
		return ErrLarge
	}
	return decode(a.buffer.Bytes())
}

// Room waits until size bytes, which are known to come, may be received beside those of others. It fails as ctx does.
func Room(ctx context.Context, size int) (leave func(), err error) {
	switch {
	case size <= SmallAnswer:
		return func() {}, nil
	case size <= middleAnswer:
		return enter(ctx, middles)
	default:
		return enter(ctx, larges)
	}
}

func enter(ctx context.Context, room chan struct{}) (leave func(), err error) {
	h := holdOf(ctx)
	if h.has(room) {
		return func() {}, nil
	}
	inside := func() (func(), error) {
		if h.keep(room) {
			return h.read, nil
		}
		return func() { <-room }, nil
	}
	select {
	case room <- struct{}{}: // also where ctx has just ended
		return inside()
	default:
	}
	select {
	case room <- struct{}{}:
		return inside()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the large answers of others: %w", ctx.Err())
	}
}

// endAfter closes r, where that is possible, unless what it returns is called before; that says whether it was too late.
func endAfter(r io.Reader, d time.Duration) (stop func() (late bool)) {
	c, ok := r.(io.Closer)
	if !ok {
		return func() bool { return false }
	}
	t := time.AfterFunc(d, func() { c.Close() }) // whoever reads is told
	return func() bool { return !t.Stop() }
}

// List is a list in an answer with fewer elements than take much memory: each is larger in memory than the few bytes
// that it may be written with.
type List[T any] []T

// MostListed is how many elements a List has at most.
const MostListed = 50_000

// UnmarshalJSON fails for a list that is too long, and for one that holds null.
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
		if len(*l) == MostListed {
			return fmt.Errorf("the list has more than %d elements", MostListed)
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
