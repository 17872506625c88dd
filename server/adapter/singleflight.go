package adapter

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
)

// SingleFlight runs one function at a time per id, such as opening the adapter of an account, and shares its error
// with concurrent callers. The zero value is ready to use. It differs from golang.org/x/sync/singleflight: waiting
// callers return when their own context ends, a waiting caller runs its own function when the first caller's context
// has ended, and a panic stays in the goroutine of its caller.
type SingleFlight struct {
	mu    sync.Mutex
	calls map[uuid.UUID]*flightCall
}

var errAbandoned = errors.New("the call in progress was abandoned")

type flightCall struct {
	// done is closed when err is set.
	done chan struct{}
	err  error
}

// Do calls do, unless a call for the same id is in progress. In that case it waits for that call and returns its
// error. It reports whether it called do. If the first call fails because its context ended, one of the waiting
// callers calls its own do.
func (f *SingleFlight) Do(ctx context.Context, id uuid.UUID, do func() error) (did bool, err error) {
	for {
		f.mu.Lock()
		first, flies := f.calls[id]
		if !flies {
			break
		}
		f.mu.Unlock()
		select {
		case <-first.done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if !errors.Is(first.err, errAbandoned) {
			return false, first.err
		}
	}
	// err stays errAbandoned if do panics.
	mine := &flightCall{done: make(chan struct{}), err: errAbandoned}
	if f.calls == nil {
		f.calls = map[uuid.UUID]*flightCall{}
	}
	f.calls[id] = mine
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.calls, id)
		f.mu.Unlock()
		close(mine.done)
	}()
	if err = do(); err == nil || ctx.Err() == nil {
		mine.err = err
	}
	return true, err
}
