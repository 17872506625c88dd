package worker

import (
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const (
	batch       = 1000                   // keys that one look of a sweep finds
	earlyPause  = 100 * time.Millisecond // between sweeps before their time
	sweepRounds = 20                     // of one sweep, each past the owners of whom the one before has found too many
	mostRest    = 10 * time.Second       // after one that takes long
)

// rest is for how long the database is left alone after a look for what is due took so long: where very much is of owners who have
// too many in hand, it goes past all of it.
func rest(took time.Duration) time.Duration { return min(4*took, mostRest) }

// sweep finds the keys that are due and that nobody has been told of, or that there was no room for.
func (e *Engine) sweep() {
	next, hungry := time.After(e.pause()), e.hungry
	for rested := (<-chan time.Time)(nil); ; {
		select {
		case <-e.sweeping.Done():
			return
		case lane := <-hungry:
			begun := time.Now()
			e.sweepLane(lane)
			hungry, rested = nil, time.After(max(earlyPause, rest(time.Since(begun))))
			continue
		case <-rested:
			hungry, rested = e.hungry, nil
			continue
		case <-next:
		}
		begun := time.Now()
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
		took := time.Since(begun)
		next = time.After(max(e.pause()-took, rest(took)))
	}
}

// pause is that between two sweeps, which keeps instances out of step.
func (e *Engine) pause() time.Duration { return e.opt.Sweep/2 + rand.N(e.opt.Sweep) }

// refill has a lane swept before its time. It is false where that cannot be told.
func (e *Engine) refill(lane string) bool {
	select {
	case e.hungry <- lane:
		return true
	default:
		return false
	}
}

// sweepLane looks for keys of a lane that are due: past those of whose owners too many are, as these would hide the others.
func (e *Engine) sweepLane(name string) (good bool) {
	lane, s := e.lanes[name], e.shares[name]
	crowds := s.crowds()
	for range sweepRounds {
		e.mu.Lock()
		limit := batch + e.pauses.count(name) + int32(e.inHand[name]) // those that rest, or wait here, do not keep others out
		e.mu.Unlock()
		ctx := store.Within(e.sweeping, answer)
		ids, err := lane.Sweep(ctx, limit, crowds)
		var of map[uuid.UUID]claimants
		if err == nil {
			of, err = s.of(ctx, ids)
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
			e.found(wakeUp{name, id}, of[id], &crowds)
		}
		if crowds.count() == known || len(ids) < int(limit) {
			break
		}
	}
	return true
}

// found has a key looked at that the sweep has found, unless that is being done or it rests, or one of its owners has too
// many in hand, who is added to crowds.
func (e *Engine) found(w wakeUp, of claimants, crowds *Crowds) {
	e.mu.Lock()
	defer e.mu.Unlock()
	inHand := e.inHand[w.Lane]
	e.judge(w)
	if _, ok := e.looking[w]; ok || e.sweeping.Err() != nil || inHand >= 2*e.mostInHand || e.pauses.rests(w) {
		return
	}
	c, full := e.shares[w.Lane].claim(of, false, inHand >= e.mostInHand)
	if c == nil {
		crowds.add(full)
		return
	}
	e.begin(w, c, false)
}
