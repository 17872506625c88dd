package rest

import (
	"errors"
	"io"
	"slices"
	"sync"
)

const (
	// initialBufferSize is the initial buffer size. Larger announced sizes are not trusted.
	initialBufferSize = 4 << 10
	// blockSize is the unit in which long bodies are read.
	blockSize = 64 << 10
)

// blocks pools the blocks of long bodies, so that clients with many long bodies cause little garbage.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// readWhole reads a body; size is its announced length, or negative. A short body needs a single read, because each
// read can release the request's slot. A long body is kept in blocks until it is complete: a growing buffer would
// reserve twice the size for hundreds of bodies that may never complete.
func readWhole(body io.Reader, size int64) ([]byte, error) {
	if 0 < size && size <= initialBufferSize {
		whole := make([]byte, size)
		_, err := io.ReadFull(body, whole)
		return whole, err
	}
	begin := make([]byte, initialBufferSize)
	n, err := fill(body, begin)
	if err != nil {
		return begin[:n], unlessEnd(err)
	}
	return readLong(body, begin)
}

// readLong reads the rest of a body.
func readLong(body io.Reader, begin []byte) (whole []byte, err error) {
	var long []*[blockSize]byte
	defer func() {
		for _, b := range long {
			blocks.Put(b)
		}
	}()
	parts, n := [][]byte{begin}, 0
	for size := initialBufferSize; err == nil; size = min(2*size, blockSize) {
		var room []byte
		if size == blockSize {
			b := blocks.Get().(*[blockSize]byte)
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

// fill reads until b is full. io.EOF means the end of the input.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}

func unlessEnd(err error) error {
	if err == io.EOF { //nolint:errorlint // readers return it unwrapped
		return nil
	}
	return err
}
