package zwavejs

import (
	"context"
	"time"
)

// duplicateReport is the last report of the lock that a PIN is a duplicate. Adapter.mu guards it.
type duplicateReport struct {
	at     time.Time
	slot   int           // slot that has the PIN; 0 if unknown
	waiter chan struct{} // closed by the next report
}

func (r *duplicateReport) report(slot int) {
	r.at, r.slot = time.Now(), slot
	if r.waiter != nil {
		close(r.waiter)
		r.waiter = nil
	}
}

// refusedSince reports whether the lock has reported a duplicate PIN since a time.
func (a *Adapter) refusedSince(n *node, since time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return n.refused.at.After(since)
}

// refusalTimeout is how long after the response to a write the lock may report a duplicate PIN.
const refusalTimeout = 750 * time.Millisecond

// duplicate waits for a report of a duplicate PIN since a time, and returns the slot in the report.
func (a *Adapter) duplicate(ctx context.Context, n *node, since time.Time) (slot int, reported bool) {
	late := time.NewTimer(refusalTimeout)
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
