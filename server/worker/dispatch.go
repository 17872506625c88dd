package worker

import (
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// here has a key looked at in this process. Whatever is committed before it is called will be seen. Woken: somebody may wait
// for it.
func (e *Engine) here(w wakeUp, cause traces.Cause, woken bool) {
	if _, ok := e.lanes[w.Lane]; !ok {
		return // of a version of the program that had it
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sweeping.Err() != nil {
		return
	}
	if _, ok := e.looking[w]; ok {
		e.looking[w] = true
		e.because(w, cause)
		e.judge(w)
		return
	}
	if e.inHand[w.Lane] < 2*e.mostInHand {
		e.because(w, cause)
		e.begin(w, nil, woken)
	}
}

// because remembers why a key is looked at; with e.mu held.
func (e *Engine) because(w wakeUp, cause traces.Cause) {
	if cause.Is() && len(e.causes[w]) < mostCauses {
		e.causes[w] = append(e.causes[w], cause)
	}
}

// begin looks at a key that is claimed, or, where c is nil, has yet to be; with e.mu held.
func (e *Engine) begin(w wakeUp, c *claim, woken bool) {
	e.looking[w] = false
	e.inHand[w.Lane]++
	e.running.Go(func() {
		for again := true; again; c = nil {
			again, woken = e.inTurn(w, c, woken)
		}
	})
}

// inTurn waits for a slot and looks at a key. It says whether to do so again, and whether as one that was woken.
func (e *Engine) inTurn(w wakeUp, c *claim, woken bool) (again, asWoken bool) {
	if c == nil {
		c = e.claim(w, woken)
	}
	if c != nil {
		defer c.leave()
	}
	ok, anew := c != nil, false
	if ok && c.shares != nil {
		e.await(w, c)
		ok, anew = c.enter(e.working)
		e.await(w, nil)
	}
	if !ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		if anew {
			return true, woken
		}
		e.letGo(w)
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
	more := e.traced(c.with(e.working), w, c, causes)
	e.mu.Lock()
	defer e.mu.Unlock()
	if (more || e.looking[w]) && e.sweeping.Err() == nil {
		return true, woken || e.looking[w]
	}
	e.letGo(w)
	return false, false
}

// await notes that a claim waits for its turn; nil: no more.
func (e *Engine) await(w wakeUp, c *claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c == nil {
		delete(e.waiting, w)
	} else {
		e.waiting[w] = c
	}
}

// judge has a key that waits for its turn claimed anew, where more is known of it by now; with e.mu held.
func (e *Engine) judge(w wakeUp) {
	if c := e.waiting[w]; c != nil && c.stale(w.ID) {
		c.judge()
	}
}

// claim takes a key in hand; nil: there are too many. Where the database fails it has no owners: whoever looks at it will see.
func (e *Engine) claim(w wakeUp, woken bool) *claim {
	s := e.shares[w.Lane]
	all, err := s.of(store.Within(e.working, answer), []uuid.UUID{w.ID})
	of := all[w.ID]
	if err != nil {
		of = newClaimants(Owners{}, s.doubts(w.ID))
	}
	e.mu.Lock()
	crowded := e.inHand[w.Lane] > e.mostInHand
	e.mu.Unlock()
	c, _ := s.claim(of, woken, crowded)
	return c
}

// letGo looks no longer at a key; with e.mu held. Where it is due, the sweep finds it.
func (e *Engine) letGo(w wakeUp) {
	delete(e.looking, w)
	delete(e.causes, w)
	e.inHand[w.Lane]--
}
