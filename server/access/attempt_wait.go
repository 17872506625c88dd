package access

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// waiting are the requests of this process that wait for action attempts to end.
type waiting struct {
	mu    sync.Mutex
	rooms map[uuid.UUID]*room
}

type room struct {
	ended chan struct{}
	here  int
}

// enter waits for an attempt: ended is closed when it ends. Whoever enters leaves.
func (w *waiting) enter(id uuid.UUID) (ended <-chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rooms[id]
	if r == nil {
		r = &room{ended: make(chan struct{})}
		if w.rooms == nil {
			w.rooms = map[uuid.UUID]*room{}
		}
		w.rooms[id] = r
	}
	r.here++
	return r.ended, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.here--; r.here == 0 && w.rooms[id] == r {
			delete(w.rooms, id)
		}
	}
}

func (w *waiting) wake(id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.rooms[id]; r != nil {
		close(r.ended)
		delete(w.rooms, id)
	}
}

// AwaitAttempt waits until an attempt has ended, but not longer than within: then it is returned as it stands. What
// ends it in this process wakes those who wait; that another instance has ended it is seen by looking now and then.
// It fails with NotFound, with Unauthorized when the credential is not good any more by then, and when ctx ends.
func (s *Service) AwaitAttempt(ctx context.Context, p Principal, a Attempt, within time.Duration) (Attempt, error) {
	if a.Status != Pending {
		return a, nil
	}
	if err := s.Checkpoint(ctx, a); err != nil {
		return a, err
	}
	ended, leave := s.waiting.enter(a.ID)
	defer leave()
	enough := time.NewTimer(within)
	defer enough.Stop()
	look := time.NewTicker(s.opt.AttemptEvery)
	defer look.Stop()
	for waited := false; ; waited = true {
		if waited {
			if err := s.stillGood(ctx, p); err != nil {
				return a, err
			}
		}
		got, err := s.GetAttempt(ctx, p, a.ID.String()) // it may have ended before anybody waited
		if err != nil || got.Status != Pending {
			return got, err
		}
		select {
		case <-ended:
		case <-look.C:
		case <-enough.C:
			return got, s.stillGood(ctx, p)
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}
