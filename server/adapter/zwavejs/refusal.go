package zwavejs

import (
	"context"
	"time"
)

// refusal is the last time that a lock has told that it has a PIN already. It is guarded by Adapter.mu.
type refusal struct {
	at     time.Time
	slot   int           // that has the PIN, where the lock names it
	waiter chan struct{} // closed when it tells
}

func (r *refusal) tell(slot int) {
	r.at, r.slot = time.Now(), slot
	if r.waiter != nil {
		close(r.waiter)
		r.waiter = nil
	}
}

// refusedSince says whether the lock has told, since a time, that it has a PIN already.
func (a *Adapter) refusedSince(n *node, since time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return n.refused.at.After(since)
}

// refusalWithin is how long after the answer to a write the lock may say that the PIN was a duplicate.
const refusalWithin = 750 * time.Millisecond

// duplicate says whether the lock has told, since a time, that a PIN was one, and the slot that it named.
func (a *Adapter) duplicate(ctx context.Context, n *node, since time.Time) (slot int, told bool) {
	late := time.NewTimer(refusalWithin)
	defer late.Stop()
	for {
		a.mu.Lock()
		r := &n.refused
		if r.at.After(since) {
			slot = r.slot
			a.mu.Unlock()
			return slot, true
		}
		if r.waiter == nil {
			r.waiter = make(chan struct{})
		}
		waiter := r.waiter
		a.mu.Unlock()
		select {
		case <-waiter:
		case <-late.C:
			return 0, false
		case <-ctx.Done():
			return 0, false
		}
	}
}
