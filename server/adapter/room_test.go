package adapter

import (
	"context"
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
