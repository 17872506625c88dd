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
// Whoever has waited is told what he sees by then. It fails like StandsNow; with NotFound, as the request that began the attempt would
// if it came now; and when ctx ends.
func (s *Service) AwaitAttempt(ctx context.Context, p Principal, a Attempt, within time.Duration) (Attempt, error) {
	if a.Status != Pending {
		return a, nil
	}
	if err := s.Checkpoint(ctx, a.ID); err != nil {
		return a, err
	}
	ended, leave := s.waiting.enter(a.ID)
	defer leave()
	enough := time.NewTimer(within)
	defer enough.Stop()
	look := time.NewTicker(s.opt.AttemptEvery)
	defer look.Stop()
	for waited, last := false, false; ; waited = true {
		if waited {
			var err error
			if p, err = s.StandsNow(ctx, p); err != nil {
				return a, err
			}
		}
		got, err := s.GetAttempt(ctx, p, a.ID.String()) // it may have ended before anybody waited
		if e, ok := AsError(err); ok && e.Kind == NotFound {
			err = a.absent()
		}
		if err != nil || got.Status != Pending || last {
			return got, err
		}
		select {
		case <-ended:
		case <-look.C:
		case <-enough.C:
			last = true
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}

// absent is what the request that began an attempt fails with where what it named is not there, or is out of reach.
func (a Attempt) absent() error {
	switch a.Type {
	case UpdateAccessCode, DeleteAccessCode, ConvertAccessCode, DeleteUnmanagedAccessCode:
		return codeNotFound(a.CodeID.String())
	}
	return deviceNotFound("device_id", a.DeviceID.String())
}
