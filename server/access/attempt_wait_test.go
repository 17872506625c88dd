package access

import (
	"sync"
	"testing"

	"github.com/google/uuid"
)

// Whoever waits is woken once, and nobody who has left is kept.
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
	w.wake(uuid.New()) // nobody waits for it
	w.wake(one)
	woken.Wait()
	w.wake(one)
	if len(w.rooms) != 1 {
		t.Errorf("%d are waited for", len(w.rooms))
	}
	again, leaveAgain := w.enter(one)
	select {
	case <-again:
		t.Error("it is woken by what was before")
	default:
	}
	leaveAgain()
	if leave(); len(w.rooms) != 0 {
		t.Errorf("%d are kept", len(w.rooms))
	}
}
