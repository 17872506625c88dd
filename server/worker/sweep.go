package worker

import (
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const (
	// keys that one query of a sweep finds.
	batch              = 1000
	earlySweepInterval = 100 * time.Millisecond // least interval between early sweeps
	// sweepRounds is the number of queries of one sweep. Each skips the owners that the previous ones have filled.
	sweepRounds  = 20
	maxSweepRest = 10 * time.Second // after a slow sweep
)

// restAfter returns how long the sweep pauses after a query that took so long. A query is slow if it skips many keys of
// saturated owners.
func restAfter(took time.Duration) time.Duration { return min(4*took, maxSweepRest) }

// sweep finds due keys that were not woken, or that had no room.
func (e *Engine) sweep() {
	next, hungry := time.After(e.sweepDelay()), e.sweepRequests
	for rested := (<-chan time.Time)(nil); ; {
		e.beat()
		select {
		case <-e.sweeping.Done():
			return
		case lane := <-hungry:
			begun := time.Now()
			e.sweepLane(lane)
			hungry, rested = nil, time.After(max(earlySweepInterval, restAfter(time.Since(begun))))
			continue
		case <-rested:
			hungry, rested = e.sweepRequests, nil
			continue
		case <-next:
		}
		begun := time.Now()
		ended, err := e.db.EndHungSessions(e.sweeping)
		if err != nil && e.sweeping.Err() == nil {
			e.opt.Log.Error("sweep failed; the server retries it", "error", err)
		}
		if ended > 0 {
			e.opt.Log.Warn("terminated database sessions that were idle in a transaction", "sessions", ended)
		}
		good := err == nil
		for name := range e.lanes {
			good = e.sweepLane(name) && good
		}
		if good {
			e.lastSweep.Store(time.Now().UnixNano())
		}
		took := time.Since(begun)
		next = time.After(max(e.sweepDelay()-took, restAfter(took)))
	}
}

// sweepDelay returns a random interval, which keeps instances out of step.
func (e *Engine) sweepDelay() time.Duration { return e.opt.Sweep/2 + rand.N(e.opt.Sweep) }

// requestSweep requests an early sweep of a lane. It returns false if the request was not accepted.
func (e *Engine) requestSweep(lane string) bool {
	select {
	case e.sweepRequests <- lane:
		return true
	default:
		return false
	}
}

// sweepLane finds due keys of a lane. It skips saturated owners, whose keys would hide those of others.
func (e *Engine) sweepLane(name string) (good bool) {
	lane, s := e.lanes[name], e.shares[name]
	crowds := s.saturated()
	for range sweepRounds {
		e.beat()
		e.mu.Lock()
		// Keys in backoff or in hand must not crowd out others.
		limit := batch + e.backoffs.count(name) + int32(e.inHand[name])
		e.mu.Unlock()
		ctx := store.WithStatementTimeout(e.sweeping, queryTimeout)
		ids, err := lane.Sweep(ctx, limit, crowds)
		var of map[uuid.UUID]claimants
		if err == nil {
			of, err = s.claimantsOf(ctx, ids)
		}
		if err != nil {
			if e.sweeping.Err() == nil {
				e.opt.Log.Error("sweep failed; the server retries it", "lane", name, "error", err)
				// These keys may have failed for the same reason, so they are retried once that is over.
				e.backoffs.resetLane(name)
			}
			return false
		}
		known := crowds.count()
		for _, id := range ids {
			e.dispatchFound(wakeUp{name, id}, of[id], &crowds)
		}
		if crowds.count() == known || len(ids) < int(limit) {
			break
		}
	}
	return true
}

// dispatchFound starts work on a key that the sweep has found, unless the key is in hand or in backoff. If one of its
// owners is full, it adds that owner to crowds.
func (e *Engine) dispatchFound(w wakeUp, of claimants, crowds *Saturated) {
	e.mu.Lock()
	defer e.mu.Unlock()
	inHand := e.inHand[w.Lane]
	e.reassign(w)
	if _, ok := e.looking[w]; ok || e.sweeping.Err() != nil || inHand >= 2*e.maxInHand || e.backoffs.active(w) {
		return
	}
	c, full := e.shares[w.Lane].claim(of, false, inHand >= e.maxInHand)
	if c == nil {
		crowds.add(full)
		return
	}
	e.startWork(w, c, false)
}
