package adapter

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
)

// Flights has what several ask for at once, such as to open the adapter of an account, be done by the first of them. The zero value is
// ready.
type Flights struct {
	mu  sync.Mutex
	all map[uuid.UUID]*flight
}

var errGivenUp = errors.New("whoever did it has given up")

type flight struct {
	done chan struct{} // closed once err is known
	err  error
}

// Do runs do, unless somebody does for the same id: then it waits for that, and fails as that does. It says which of the two it was.
// Where the first one failed because its context ended, the next takes its place.
func (f *Flights) Do(ctx context.Context, id uuid.UUID, do func() error) (did bool, err error) {
	for {
		f.mu.Lock()
		first, flies := f.all[id]
		if !flies {
			break
		}
		f.mu.Unlock()
		select {
		case <-first.done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if !errors.Is(first.err, errGivenUp) {
			return false, first.err
		}
	}
	mine := &flight{done: make(chan struct{}), err: errGivenUp} // also where do panics
	if f.all == nil {
		f.all = map[uuid.UUID]*flight{}
	}
	f.all[id] = mine
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.all, id)
		f.mu.Unlock()
		close(mine.done)
	}()
	if err = do(); err == nil || ctx.Err() == nil {
		mine.err = err
	}
	return true, err
}
