package device

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// waiting are the requests of this process that wait for action attempts to end.
type waiting struct {
	mu      sync.Mutex
	waiters map[uuid.UUID]*room
}

type room struct {
	ended chan struct{}
	users int
}

// subscribe returns a channel that is closed when an attempt ends. The caller must call leave.
func (w *waiting) subscribe(id uuid.UUID) (ended <-chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.waiters[id]
	if r == nil {
		r = &room{ended: make(chan struct{})}
		if w.waiters == nil {
			w.waiters = map[uuid.UUID]*room{}
		}
		w.waiters[id] = r
	}
	r.users++
	return r.ended, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.users--; r.users == 0 && w.waiters[id] == r {
			delete(w.waiters, id)
		}
	}
}

func (w *waiting) notify(id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.waiters[id]; r != nil {
		close(r.ended)
		delete(w.waiters, id)
	}
}

// AwaitAttempt waits until an attempt ends, at most within, and returns its current state. An end in this
// process wakes the request immediately; polling notices the end in another instance. The result reflects the
// caller's current scope. It fails like Recheck, with NotFound as the request that started the attempt would
// now, and when ctx ends.
func (s *Service) AwaitAttempt(
	ctx context.Context,
	p domain.Principal,
	a Attempt,
	within time.Duration,
) (Attempt, error) {
	if a.Status != Pending {
		return a, nil
	}
	if err := s.idempotency.Checkpoint(ctx, a.ID); err != nil {
		return a, err
	}
	ended, leave := s.waiting.subscribe(a.ID)
	defer leave()
	expired := time.NewTimer(within)
	defer expired.Stop()
	poll := time.NewTicker(s.opt.AttemptPollInterval)
	defer poll.Stop()
	for waited, last := false, false; ; waited = true {
		if waited {
			var err error
			if p, err = s.auth.Recheck(ctx, p); err != nil {
				return a, err
			}
		}
		got, err := s.GetAttempt(ctx, p, a.ID.String()) // it may have ended before the subscription
		if e, ok := domain.AsError(err); ok && e.Kind == domain.NotFound {
			err = a.notFoundError()
		}
		if err != nil || got.Status != Pending || last {
			return got, err
		}
		select {
		case <-ended:
		case <-poll.C:
		case <-expired.C:
			last = true
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}

// notFoundError returns the error of the request that started an attempt, where its resource is absent or out
// of scope.
func (a Attempt) notFoundError() error {
	switch a.Type {
	case domain.UpdateAccessCode, domain.DeleteAccessCode, domain.ConvertAccessCode, domain.DeleteUnmanagedAccessCode:
		return codeNotFound(a.CodeID.String())
	}
	return deviceNotFound("device_id", a.DeviceID.String())
}
