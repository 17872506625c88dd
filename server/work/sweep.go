package work

import (
	"math/rand/v2"
	"time"
)

const (
	batch       = 1000 // keys that one look of a sweep finds
	sweepRounds = 20   // of one sweep, each past the owners of whom the one before has found too many
)

// sweep finds the keys that are due and that nobody has been told of, or that there was no room for.
func (e *Engine) sweep() {
	for next := time.After(e.pause()); ; {
		select {
		case <-e.sweeping.Done():
			return
		case lane := <-e.hungry:
			e.sweepLane(lane)
			continue
		case <-next:
			next = time.After(e.pause())
		}
		ended, err := e.db.EndStandstills(e.sweeping)
		if err != nil && e.sweeping.Err() == nil {
			e.opt.Log.Error("sweep failed; it is repeated", "error", err)
		}
		if ended > 0 {
			e.opt.Log.Warn("ended sessions of the database that have stood still in a transaction", "sessions", ended)
		}
		good := err == nil
		for name := range e.lanes {
			good = e.sweepLane(name) && good
		}
		if good {
			e.swept.Store(time.Now().UnixNano())
		}
	}
}

// pause is that between two sweeps, which keeps instances out of step.
func (e *Engine) pause() time.Duration { return e.opt.Sweep/2 + rand.N(e.opt.Sweep) }

// refill has a lane swept before its time.
func (e *Engine) refill(lane string) {
	select {
	case e.hungry <- lane:
	default: // the next sweep will do
	}
}

// sweepLane looks for keys of a lane that are due: past those of whose owners too many are, as these would hide the others.
func (e *Engine) sweepLane(name string) (good bool) {
	lane, s := e.lanes[name], e.shares[name]
	crowds := s.crowds()
	for range sweepRounds {
		limit := batch + e.pauses.count(name) // those that rest do not keep others out
		ids, err := lane.Sweep(e.sweeping, limit, crowds)
		if err == nil {
			err = s.learn(e.sweeping, ids)
		}
		if err != nil {
			if e.sweeping.Err() == nil {
				e.opt.Log.Error("sweep failed; it is repeated", "lane", name, "error", err)
				e.pauses.end(name) // what has failed may have failed for the same reason, and is tried when that is over
			}
			return false
		}
		known := crowds.count()
		for _, id := range ids {
			e.found(wakeUp{name, id}, &crowds)
		}
		if crowds.count() == known || len(ids) < int(limit) {
			break
		}
	}
	return true
}

// found has a key looked at that the sweep has found, unless that is being done or it rests, or its owner has too many in
// hand: that one is added to crowds.
func (e *Engine) found(w wakeUp, crowds *Crowds) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.looking[w]; ok || e.sweeping.Err() != nil || e.inHand[w.Lane] >= e.mostInHand || e.pauses.rests(w) {
		return
	}
	c, ok := e.shares[w.Lane].claim(w.ID, false, false)
	if !ok {
		crowds.add(c.owners)
		return
	}
	e.begin(w, c)
}
