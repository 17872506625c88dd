package idempotency

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Each waiting request waits once, however many there are, because the end of one request wakes one.
func TestRequestsWithOneKeyAreAnsweredInTurn(t *testing.T) {
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
				leave, err := u.acquire(t.Context(), "a", time.Hour, aside)
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				if n := at.Add(1); n > 1 {
					t.Errorf("%d requests are answered concurrently", n)
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
			t.Errorf("%d keys are left in memory", len(u.names))
		}
	})
}

// A request that times out, is canceled, or gets no slot does not block the key.
func TestAbandonedRequestDoesNotBlockKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u underWay
		first, err := u.acquire(t.Context(), "a", time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		var e *domain.Error
		if _, err := u.acquire(t.Context(), "a", time.Second, nil); !errors.As(err, &e) || e.Type != KeyInUse {
			t.Errorf("timeout: %v", err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := u.acquire(canceled, "a", time.Second, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled request: %v", err)
		}
		busy := errors.New("no slot")
		done := make(chan error)
		go func() {
			_, err := u.acquire(
				t.Context(),
				"a",
				time.Second,
				func(_ context.Context, wait func() error) error { return errors.Join(wait(), busy) },
			)
			done <- err
		}()
		synctest.Wait()
		first()
		if err := <-done; !errors.Is(err, busy) {
			t.Errorf("request without a slot: %v", err)
		}
		last, err := u.acquire(t.Context(), "a", time.Second, nil)
		if err != nil {
			t.Fatalf("next request: %v", err)
		}
		last()
		if len(u.names) > 0 {
			t.Errorf("%d keys are left in memory", len(u.names))
		}
	})
}
