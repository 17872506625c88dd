package access

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each request that waits for others with its key waits once, however many there are: the end of one wakes one.
func TestRequestsWithOneKeyAreAnsweredInALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 100
		var u underWay
		var waits, at atomic.Int32
		aside := func(_ context.Context, wait func() error) error {
			waits.Add(1)
			return wait()
		}
		var all sync.WaitGroup
		for range most {
			all.Go(func() {
				leave, err := u.enter(t.Context(), "a", time.Hour, aside)
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				if n := at.Add(1); n > 1 {
					t.Errorf("%d are answered at once", n)
				}
				<-time.After(time.Second)
				at.Add(-1)
			})
		}
		all.Wait()
		if n := waits.Load(); n != most-1 {
			t.Errorf("%d requests wait %d times", most-1, n)
		}
		if len(u.names) > 0 {
			t.Errorf("%d names are remembered", len(u.names))
		}
	})
}

// Who gives up, or gets no turn any more, keeps the key from nobody.
func TestWhoLeavesTheLineOfAKeyHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u underWay
		first, err := u.enter(t.Context(), "a", time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		var e *Error
		if _, err := u.enter(t.Context(), "a", time.Second, nil); !errors.As(err, &e) || e.Type != KeyInUse {
			t.Errorf("who waits for too long is told %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := u.enter(gone, "a", time.Second, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("who is gone is told %v", err)
		}
		busy := errors.New("no turn")
		done := make(chan error)
		go func() {
			_, err := u.enter(t.Context(), "a", time.Second, func(_ context.Context, wait func() error) error { return errors.Join(wait(), busy) })
			done <- err
		}()
		synctest.Wait()
		first()
		if err := <-done; !errors.Is(err, busy) {
			t.Errorf("who gets no turn is told %v", err)
		}
		last, err := u.enter(t.Context(), "a", time.Second, nil)
		if err != nil {
			t.Fatalf("the next one is told %v", err)
		}
		last()
		if len(u.names) > 0 {
			t.Errorf("%d names are remembered", len(u.names))
		}
	})
}
