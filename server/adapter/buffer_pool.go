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

// What has been read of large answers is used again by the next of their size: a vendor that sends megabytes again and
// again would otherwise have as many collected.
var middleSpare, largeSpare, largestSpare sync.Pool

// answer is what is being read.
type answer struct {
	io.Reader
	limit  int
	buffer *bytes.Buffer
	spare  *sync.Pool // of its buffer; nil: it is small
	waited time.Duration
	cut    bool // its time was over
}

// enter waits for the room.
func (a *answer) enter(ctx context.Context, room chan struct{}) (leave func(), err error) {
	began := time.Now()
	defer func() { a.waited += time.Since(began) }()
	return enter(ctx, room)
}

// failure is that of reading the answer.
func (a *answer) failure(err error) error {
	if a.waited > patientFor && !a.cut && !errors.Is(err, ErrLarge) {
		return fmt.Errorf("%w: %w", ErrCrowded, err)
	}
	return err
}

// read reads on until there are most bytes, in a buffer that has room for so much and hardly more, which doubling would pass.
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

// move goes on in another buffer.
func (a *answer) move(room int, spare *sync.Pool) {
	next, _ := spare.Get().(*bytes.Buffer)
	if next == nil || next.Cap() < room || next.Cap() > room+SmallAnswer { // the largest of one vendor are not those of another
		next = new(bytes.Buffer)
		next.Grow(room)
	}
	next.Write(a.buffer.Bytes())
	a.putBack()
	a.buffer, a.spare = next, spare
}

func (a *answer) putBack() {
	if a.spare != nil {
		a.buffer.Reset()
		a.spare.Put(a.buffer)
		a.spare = nil
	}
}

// leave gives up a room. Whoever is next in it finds the buffer.
func (a *answer) leave(room func()) {
	a.putBack()
	room()
}
