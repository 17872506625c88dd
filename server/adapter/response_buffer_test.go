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
		held, release := Hold(t.Context())
		defer release()
		for range 2 {
			read, err := enter(held, room)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // the permit does not expire while the response is read
			read()
			ctx, cancel := context.WithTimeout(t.Context(), LargeWithin+time.Second)
			defer cancel()
			begin := time.Now()
			leave, err := enter(ctx, room)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin); waited != LargeWithin {
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
	}{"for long": {patientFor + 1, true}, "hardly": {patientFor, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				room, began := make(chan struct{}, 1), time.Now()
				room <- struct{}{}
				time.AfterFunc(c.waited, func() { <-room })
				var a answer
				leave, err := a.enter(t.Context(), room)
				if err != nil || time.Since(began) != c.waited {
					t.Fatalf("waited for %s: %v", time.Since(began), err)
				}
				leave()
				if err := a.failure(broken); errors.Is(err, ErrCrowded) != c.want || !errors.Is(err, broken) {
					t.Errorf("the error of the read is %v", err)
				}
				if err := a.failure(ErrLarge); errors.Is(err, ErrCrowded) {
					t.Error("a response that is too large counts as saturated")
				}
				if a.cut = true; errors.Is(a.failure(broken), ErrCrowded) {
					t.Error("a slow vendor counts as saturated")
				}
			})
		})
	}
}
