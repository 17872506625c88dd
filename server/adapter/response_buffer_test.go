package adapter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever writes down for long keeps others waiting no longer than who sends slowly.
func TestARoomIsGivenUpAfterAWhile(t *testing.T) {
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
			time.Sleep(time.Minute) // while it is being read it is not given up
			read()
			ctx, cancel := context.WithTimeout(t.Context(), LargeWithin+time.Second)
			defer cancel()
			begin := time.Now()
			leave, err := enter(ctx, room)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin); waited != LargeWithin {
				t.Errorf("it is given up after %s", waited)
			}
			leave()
		}
	})
}

// A vendor has not fallen silent where it was us who did not read.
func TestAnswerThatHasWaitedForOthersTooLong(t *testing.T) {
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
					t.Errorf("the failure of reading further is %v", err)
				}
				if err := a.failure(ErrLarge); errors.Is(err, ErrCrowded) {
					t.Error("an answer that is too large is, whoever waits")
				}
				if a.cut = true; errors.Is(a.failure(broken), ErrCrowded) {
					t.Error("a vendor that has had its time is too slow, whoever waits")
				}
			})
		})
	}
}
