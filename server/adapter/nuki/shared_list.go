package nuki

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// sharedList is a list of the whole account, which concurrent readers share for a short time.
type sharedList[T any] struct {
	fetch  func(ctx context.Context) ([]T, error)
	flight adapter.SingleFlight

	mu   sync.Mutex
	list []T
	// asked is when the list was requested; zero: there is none.
	asked time.Time
	// generation counts the changes that make older lists invalid.
	generation int
}

// read returns a list that was requested at most maxAge before this call, and after the last forget. The caller must
// not change it.
func (s *sharedList[T]) read(ctx context.Context, maxAge time.Duration) (list []T, err error) {
	since := time.Now().Add(-maxAge)
	for {
		s.mu.Lock()
		list, asked := s.list, s.asked
		s.mu.Unlock()
		if !asked.IsZero() && !asked.Before(since) {
			return list, nil
		}
		var own []T
		did, err := s.flight.Do(ctx, uuid.Nil, func() (err error) {
			own, err = s.request(ctx)
			return err
		})
		switch {
		case did:
			return own, err
		case ctx.Err() != nil || err != nil && adapter.AsError(err) != nil:
			return nil, joined(ctx, err)
		}
	}
}

// joined returns the error of a call that waited for another's.
func joined(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", adapter.Errorf(adapter.Transient, "no response in time"), ctx.Err())
}

func (s *sharedList[T]) request(ctx context.Context) ([]T, error) {
	s.mu.Lock()
	generation := s.generation
	s.mu.Unlock()
	asked := time.Now()
	list, err := s.fetch(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation == s.generation {
		s.list, s.asked = list, asked
	}
	return list, nil
}

// forget makes lists invalid that were requested before this call.
func (s *sharedList[T]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.list, s.asked = nil, time.Time{}
}
