package access

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
		ended, leave := w.enter(one)
		woken.Go(func() { <-ended; leave() })
	}
	_, leave := w.enter(other)
	w.wake(uuid.New()) // without waiters
	w.wake(one)
	woken.Wait()
	w.wake(one)
	if len(w.rooms) != 1 {
		t.Errorf("%d attempts have waiters", len(w.rooms))
	}
	again, leaveAgain := w.enter(one)
	select {
	case <-again:
		t.Error("an earlier end wakes a new waiter")
	default:
	}
	leaveAgain()
	if leave(); len(w.rooms) != 0 {
		t.Errorf("%d attempts are left", len(w.rooms))
	}
}
