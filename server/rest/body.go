package rest

import (
	"errors"
	"io"
	"slices"
	"sync"
)

const (
	usual = 4 << 10  // bytes that there is room for at once: what is announced need not come
	block = 64 << 10 // of a body that is long
)

// blocks are used again: a client that sends long bodies as fast as it can would have as many collected.
var blocks = sync.Pool{New: func() any { return new([block]byte) }}

// readWhole reads a body; size is how long it says to be, or below zero. One that is short is asked for once, not again
// for its end: each time the request gives its turn to others. A long one is kept in blocks until all of it has come:
// a buffer that grows has room for twice as much as was sent, and there may be hundreds that are never sent to their end.
func readWhole(body io.Reader, size int64) ([]byte, error) {
	if 0 < size && size <= usual {
		whole := make([]byte, size)
		_, err := io.ReadFull(body, whole)
		return whole, err
	}
	begin := make([]byte, usual)
	n, err := fill(body, begin)
	if err != nil {
		return begin[:n], unlessEnd(err)
	}
	return readLong(body, begin)
}

// readLong reads the rest of a body.
func readLong(body io.Reader, begin []byte) (whole []byte, err error) {
	var long []*[block]byte
	defer func() {
		for _, b := range long {
			blocks.Put(b)
		}
	}()
	parts, n := [][]byte{begin}, 0
	for size := usual; err == nil; size = min(2*size, block) {
		var room []byte
		if size == block {
			b := blocks.Get().(*[block]byte)
			long = append(long, b)
			room = b[:]
		} else {
			room = make([]byte, size)
		}
		n, err = fill(body, room)
		parts = append(parts, room[:n])
	}
	if err = unlessEnd(err); err != nil && !errors.Is(err, errExcess) {
		return nil, err
	}
	return slices.Concat(parts...), err
}

// fill reads until b is full; io.EOF is the end of what there is to read.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}

func unlessEnd(err error) error {
	if err == io.EOF { //nolint:errorlint // readers return it as it is
		return nil
	}
	return err
}
