package device

import (
	"sync"
	"testing"

	"github.com/google/uuid"
)

// Each waiter is woken once, and those that leave are removed.
func TestWaitingForAttempts(t *testing.T) {
	t.Parallel()
	var w waiting
	one, other := uuid.New(), uuid.New()
	var woken sync.WaitGroup
	for range 10 {
		ended, leave := w.subscribe(one)
		woken.Go(func() { <-ended; leave() })
	}
	_, leave := w.subscribe(other)
	w.notify(uuid.New()) // without waiters
	w.notify(one)
	woken.Wait()
	w.notify(one)
	if len(w.waiters) != 1 {
		t.Errorf("%d attempts have waiters", len(w.waiters))
	}
	again, leaveAgain := w.subscribe(one)
	select {
	case <-again:
		t.Error("an earlier end wakes a new waiter")
	default:
	}
	leaveAgain()
	if leave(); len(w.waiters) != 0 {
		t.Errorf("%d attempts are left", len(w.waiters))
	}
}
