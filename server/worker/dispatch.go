package worker

import (
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// enqueue starts work on a key in this process. The work sees everything that was committed before the call. Woken keys
// have priority over swept ones, because a caller may be waiting.
func (e *Engine) enqueue(w wakeUp, cause traces.Cause, woken bool) {
	if _, ok := e.lanes[w.Lane]; !ok {
		// from a version of the program with more lanes
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sweeping.Err() != nil {
		return
	}
	if _, ok := e.looking[w]; ok {
		e.looking[w] = true
		e.addCause(w, cause)
		e.reassign(w)
		return
	}
	if e.inHand[w.Lane] < 2*e.maxInHand {
		e.addCause(w, cause)
		e.startWork(w, nil, woken)
	}
}

// addCause remembers what woke a key; with e.mu held.
func (e *Engine) addCause(w wakeUp, cause traces.Cause) {
	if cause.Valid() && len(e.causes[w]) < maxCauses {
		e.causes[w] = append(e.causes[w], cause)
	}
}

// startWork starts a worker for a key that is claimed or, if c is nil, has yet to be claimed; with e.mu held.
func (e *Engine) startWork(w wakeUp, c *claim, woken bool) {
	e.looking[w] = false
	e.inHand[w.Lane]++
	e.running.Go(func() {
		for again := true; again; c = nil {
			again, woken = e.runTurn(w, c, woken)
		}
	})
}

// runTurn waits for a slot and works on a key. It reports whether to run again, and whether that run counts as woken.
func (e *Engine) runTurn(w wakeUp, c *claim, woken bool) (again, asWoken bool) {
	if c == nil {
		c = e.claim(w, woken)
	}
	if c != nil {
		defer c.releaseAll()
	}
	ok, repeated := c != nil, false
	if ok && c.shares != nil {
		e.setWaiting(w, c)
		ok, repeated = c.enter(e.working)
		e.setWaiting(w, nil)
	}
	if !ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		if repeated {
			return true, woken
		}
		e.release(w)
		return false, false
	}
	slots := e.slots[w.Lane]
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-e.working.Done():
		return false, false
	}
	e.mu.Lock()
	e.looking[w] = false
	causes := e.causes[w]
	delete(e.causes, w)
	e.mu.Unlock()
	more := e.processTraced(c.withQuotas(e.working), w, c, causes)
	e.mu.Lock()
	defer e.mu.Unlock()
	if (more || e.looking[w]) && e.sweeping.Err() == nil {
		return true, woken || e.looking[w]
	}
	e.release(w)
	return false, false
}

// setWaiting notes that a claim waits for slots; nil ends the wait.
func (e *Engine) setWaiting(w wakeUp, c *claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c == nil {
		delete(e.waiting, w)
	} else {
		e.waiting[w] = c
	}
}

// reassign makes a waiting key repeat its claim if its suspect state has changed; with e.mu held.
func (e *Engine) reassign(w wakeUp) {
	if c := e.waiting[w]; c != nil && c.outdated(w.ID) {
		c.repeat()
	}
}

// claim claims a key; nil means that too many keys are in hand. If the owners cannot be read, the key is claimed
// without owners, and its work meets the same error.
func (e *Engine) claim(w wakeUp, woken bool) *claim {
	s := e.shares[w.Lane]
	all, err := s.claimantsOf(store.WithStatementTimeout(e.working, queryTimeout), []uuid.UUID{w.ID})
	of := all[w.ID]
	if err != nil {
		of = newClaimants(Owners{}, s.isSuspect(w.ID))
	}
	e.mu.Lock()
	crowded := e.inHand[w.Lane] > e.maxInHand
	e.mu.Unlock()
	c, _ := s.claim(of, woken, crowded)
	return c
}

// release removes a key that is not being worked on; with e.mu held. If the key is due, the sweep finds it.
func (e *Engine) release(w wakeUp) {
	delete(e.looking, w)
	delete(e.causes, w)
	e.inHand[w.Lane]--
}
