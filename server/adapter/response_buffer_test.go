package adapter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A caller that stores a response slowly blocks others no longer than a vendor that sends slowly.
func TestMemoryPermit_Expires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := make(chan struct{}, 1)
		held, release := WithMemoryPermit(t.Context())
		defer release()
		for range 2 {
			read, err := acquire(held, room)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // the permit does not expire while the response is read
			read()
			ctx, cancel := context.WithTimeout(t.Context(), LargeResponseTimeout+time.Second)
			defer cancel()
			begin := time.Now()
			leave, err := acquire(ctx, room)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin); waited != LargeResponseTimeout {
				t.Errorf("the permit expires after %s", waited)
			}
			leave()
		}
	})
}

// A wait for other responses is not the vendor's failure.
func TestWaitForOthersIsSaturated(t *testing.T) {
	t.Parallel()
	broken := errors.New("the time bound of the call")
	for name, c := range map[string]struct {
		waited time.Duration
		want   bool
	}{"for long": {waitTolerance + 1, true}, "hardly": {waitTolerance, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				room, began := make(chan struct{}, 1), time.Now()
				room <- struct{}{}
				time.AfterFunc(c.waited, func() { <-room })
				var a responseBuffer
				leave, err := a.acquire(t.Context(), room)
				if err != nil || time.Since(began) != c.waited {
					t.Fatalf("waited for %s: %v", time.Since(began), err)
				}
				leave()
				if err := a.wrapError(broken); errors.Is(err, ErrSaturated) != c.want || !errors.Is(err, broken) {
					t.Errorf("the error of the read is %v", err)
				}
				if err := a.wrapError(ErrTooLarge); errors.Is(err, ErrSaturated) {
					t.Error("a response that is too large counts as saturated")
				}
				if a.timedOut = true; errors.Is(a.wrapError(broken), ErrSaturated) {
					t.Error("a slow vendor counts as saturated")
				}
			})
		})
	}
}
