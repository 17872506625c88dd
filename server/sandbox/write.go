package sandbox

import (
	"slices"
	"strings"
	"time"
)

// op is an accepted change of a code that has not reached the lock yet.
type op struct {
	kind    opKind
	code    stored // the code after the change
	gated   bool   // holds the lock's gate
	dropped bool   // will have no effect
	broken  bool   // will fail
	parked  bool   // waits until the lock is online
}

type opKind string

const (
	opCreate opKind = "created"
	opUpdate opKind = "updated"
	opDelete opKind = "deleted"
)

// change is a PATCH: nil keeps a value, and a time that points to nil is cleared.
type change struct {
	name, pin        *string
	startsAt, endsAt **time.Time
}

func (ch change) apply(c *stored) {
	if ch.name != nil {
		c.Name = *ch.name
	}
	if ch.pin != nil {
		c.PIN = *ch.pin
	}
	if ch.startsAt != nil {
		c.StartsAt = *ch.startsAt
	}
	if ch.endsAt != nil {
		c.EndsAt = *ch.endsAt
	}
}

// create accepts a code, or returns the earlier one with the same custom_id.
func (l *lock) create(c stored, fault fault) (code *listed, created bool, p *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, p := l.repeated(c.CustomID); known != nil || p != nil {
		return known, false, p
	}
	if l.prof.ProviderPIN {
		if c.PIN != "" {
			return nil, false, refuse(invalidPIN, "The vendor chooses the PIN of this lock.")
		}
		c.PIN = l.prof.newPIN(l.rng, l.intended())
	}
	if p := l.check(c, window{}, l.intended()); p != nil {
		return nil, false, p
	}
	c.Origin = fromAPI
	if p := l.commit(func(m *memory) *problem { c.ID = l.codeID(m); return nil }); p != nil {
		return nil, false, p
	}
	if len(l.intended())+l.faults.SlotsTaken >= l.prof.MaxCodes {
		return nil, false, refuse(deviceFull, "The lock has no room for another code.")
	}
	o, p := l.accept(opCreate, fault)
	if p != nil {
		return nil, false, p
	}
	for id, f := range l.failed {
		if f.code != nil && f.code.CustomID == c.CustomID && c.CustomID != "" {
			delete(l.failed, id)
		}
	}
	o.code = c
	l.schedule(o)
	return &listed{stored: c, Status: statusPending}, true, nil
}

// repeated returns the code with the custom_id, or nil. While that code is being deleted, it fails with DEVICE_BUSY.
func (l *lock) repeated(customID string) (*listed, *problem) {
	codes := l.intended()
	i := slices.IndexFunc(codes, func(c stored) bool { return c.CustomID == customID })
	if customID == "" || i < 0 {
		return nil, nil
	}
	known := &listed{stored: codes[i], Status: statusActive}
	for _, o := range l.ops {
		switch {
		case o.code.ID != known.ID:
		case o.kind == opDelete:
			return nil, l.busy("The access code is being deleted.")
		default:
			known.Status = statusPending
		}
	}
	return known, nil
}

// update accepts a change to the code.
func (l *lock) update(id string, ch change, fault fault) (*listed, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.latest(id)
	if !ok {
		return nil, refuse(codeNotFound, "There is no such access code.")
	}
	was := c.window
	if ch.pin != nil && l.prof.ProviderPIN {
		return nil, refuse(invalidPIN, "The vendor chooses the PIN of this lock.")
	}
	if l.prof.PatchDropsTime {
		c.window = window{}
	}
	ch.apply(&c)
	if p := l.check(c, was, l.intended()); p != nil {
		return nil, p
	}
	o, p := l.accept(opUpdate, fault)
	if p != nil {
		return nil, p
	}
	o.code = c
	l.schedule(o)
	return &listed{stored: c, Status: statusPending}, nil
}

// removeCode accepts the deletion of the code. A failed creation is removed immediately.
func (l *lock) removeCode(id string, fault fault) (status, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.failed[id]; f != nil && f.code != nil {
		delete(l.failed, id)
		return statusDeleted, nil
	}
	if i := slices.IndexFunc(l.ops, func(o *op) bool { return o.kind == opDelete && o.code.ID == id }); i >= 0 {
		return statusDeleting, nil
	}
	c, ok := l.latest(id)
	if !ok {
		return "", refuse(codeNotFound, "There is no such access code.")
	}
	o, p := l.accept(opDelete, fault)
	if p != nil {
		return "", p
	}
	o.code = c
	l.schedule(o)
	return statusDeleting, nil
}

// check returns why the lock would reject the code in addition to others. was is the current time frame.
func (l *lock) check(c stored, was window, others []stored) *problem {
	if p := l.prof.checkPIN(c.PIN); p != nil {
		return p
	}
	if p := l.prof.checkName(c.Name); p != nil {
		return p
	}
	if p := l.prof.checkTime(c.window, was, l.now()); p != nil {
		return p
	}
	for _, other := range others {
		if other.PIN == c.PIN && other.ID != c.ID {
			return &problem{kind: pinConflict, message: "This PIN is already in use on the device.", conflict: other.ID}
		}
	}
	sameName := func(o stored) bool { return o.ID != c.ID && strings.EqualFold(o.Name, c.Name) }
	if slices.Contains(l.prof.Constraints, nameUnique) && slices.ContainsFunc(others, sameName) {
		return refuse(invalidName, "Another access code of the lock has the name.")
	}
	return nil
}

// intended returns the codes on the lock after the pending creations and changes. A code that is being deleted still
// counts.
func (l *lock) intended() []stored {
	codes := slices.Clone(l.mem.Codes)
	for _, o := range l.ops {
		switch o.kind {
		case opCreate:
			codes = append(codes, o.code)
		case opUpdate:
			if i := slices.IndexFunc(codes, func(c stored) bool { return c.ID == o.code.ID }); i >= 0 {
				codes[i] = o.code
			}
		}
	}
	return codes
}

// latest returns the code after all pending changes, and false if it does not exist or is being deleted.
func (l *lock) latest(id string) (stored, bool) {
	for _, o := range l.ops {
		if o.kind == opDelete && o.code.ID == id {
			return stored{}, false
		}
	}
	for _, c := range l.intended() {
		if c.ID == id {
			return c, true
		}
	}
	return stored{}, false
}

// accept starts a write, or returns why that is impossible now: SUBSCRIPTION_REQUIRED, DEVICE_OFFLINE, DEVICE_BUSY.
func (l *lock) accept(kind opKind, fault fault) (*op, *problem) {
	if l.mem.Expired {
		return nil, refuse(subscriptionRequired, "The subscription for access codes has expired.")
	}
	if !l.mem.reachable() {
		return nil, refuse(deviceOffline, "The device is offline and cannot accept the change.")
	}
	if l.gate != nil && !l.gate.taken.CompareAndSwap(false, true) {
		return nil, l.busy("The previous operation is still running.")
	}
	o := &op{kind: kind, gated: l.gate != nil, broken: fault.broken}
	if l.faults.DropNext > 0 {
		l.faults.DropNext--
		o.dropped = true
	}
	return o, nil
}

func (l *lock) busy(message string) *problem {
	return &problem{kind: deviceBusy, message: message, retryAfter: l.box.scaled(l.prof.Latency.Max)}
}

// schedule schedules the arrival of the op.
func (l *lock) schedule(o *op) {
	if !slices.Contains(l.ops, o) {
		l.ops = append(l.ops, o)
	}
	at := time.Now().Add(l.drawLatency())
	if at.Before(l.lastAt) {
		at = l.lastAt
	}
	l.lastAt = at
	l.box.sched.at(at, func() { l.arrive(o) })
}

// arrive applies an op that reaches the lock.
func (l *lock) arrive(o *op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.gated {
		l.gate.taken.Store(false)
		o.gated = false
	}
	if !l.mem.reachable() && !l.mem.Removed {
		o.parked = true
		return
	}
	l.ops = slices.DeleteFunc(l.ops, func(other *op) bool { return other == o })
	if o.dropped || l.mem.Removed {
		return
	}
	delete(l.failed, o.code.ID)
	p := l.apply(o)
	l.box.opts.Log.Debug("write to a lock", "lock", l.id, "code", o.code.ID, "kind", o.kind, "ok", p == nil)
	if p != nil {
		l.failed[o.code.ID] = &failure{problem: p}
		if o.kind == opCreate {
			l.failed[o.code.ID].code = &o.code
		}
		l.announceCode(o.kind, o.code, p)
		return
	}
	l.announceCode(o.kind, o.code, nil)
}

// apply changes the lock's memory, which may have been changed by hand since the op was accepted.
func (l *lock) apply(o *op) *problem {
	if o.broken {
		return refuse(deviceError, "The lock did not execute the change.")
	}
	return l.commit(func(m *memory) *problem {
		at := slices.IndexFunc(m.Codes, func(c stored) bool { return c.ID == o.code.ID })
		if o.kind == opDelete {
			if at >= 0 {
				m.Codes = slices.Delete(m.Codes, at, at+1)
			}
			return nil
		}
		if other := m.withPIN(o.code.PIN); other != nil && other.ID != o.code.ID {
			return &problem{kind: pinConflict, message: "This PIN is already in use on the device.", conflict: other.ID}
		}
		if o.kind == opUpdate {
			if at < 0 {
				return refuse(codeNotFound, "The access code is not on the lock.")
			}
			m.Codes[at] = o.code
			return nil
		}
		if len(m.Codes)+l.faults.SlotsTaken >= l.prof.MaxCodes {
			return refuse(deviceFull, "The lock has no room for another code.")
		}
		m.Codes = append(m.Codes, o.code)
		return nil
	})
}
