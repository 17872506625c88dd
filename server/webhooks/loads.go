package webhooks

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"
)

// An event is 216 kB where its device and its account have as much metadata as they may, and is kept for as long as an endpoint
// takes to answer, of which there may be two thousand.
const (
	mostLoad   = 32 << 20     // bytes in memory of events that carry much, while they are sent
	mostOfOne  = mostLoad / 2 // of these, those of one workspace
	loadCopies = 3            // as it is read, as it is written, and what either leaves behind
)

// loads is the memory for events that carry much. Those of a workspace wait for one another first.
type loads struct {
	all *semaphore.Weighted
	mu  sync.Mutex
	of  map[uuid.UUID]*load // by workspace
}

type load struct {
	*semaphore.Weighted
	users int
}

func newLoads() *loads {
	return &loads{all: semaphore.NewWeighted(mostLoad), of: map[uuid.UUID]*load{}}
}

// take waits until there is room for an event of that size, until free is called. It fails when ctx ends.
func (l *loads) take(ctx context.Context, workspace uuid.UUID, size int) (free func(), err error) {
	weight := min(int64(size)*loadCopies, mostOfOne)
	own := l.join(workspace)
	if err := own.Acquire(ctx, weight); err != nil {
		l.leave(workspace)
		return nil, err
	}
	if err := l.all.Acquire(ctx, weight); err != nil {
		own.Release(weight)
		l.leave(workspace)
		return nil, err
	}
	return func() {
		l.all.Release(weight)
		own.Release(weight)
		l.leave(workspace)
	}, nil
}

func (l *loads) join(workspace uuid.UUID) *load {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of[workspace]
	if own == nil {
		own = &load{Weighted: semaphore.NewWeighted(mostOfOne)}
		l.of[workspace] = own
	}
	own.users++
	return own
}

func (l *loads) leave(workspace uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.of[workspace]; own.users > 1 {
		own.users--
	} else {
		delete(l.of, workspace)
	}
}
