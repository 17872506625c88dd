package sandbox

import "slices"

// addByHand adds a code at the keypad. The rules are those of remote writes, except that the person at the keypad
// chooses the PIN. The lock does not know pending writes yet. A repeated request returns its code.
func (l *lock) addByHand(name, pin, request string) (c stored, p *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.mem.Codes, func(c stored) bool { return c.Request == request }); i >= 0 &&
		request != "" {
		return l.mem.Codes[i], nil
	}
	c = stored{
		Name:    name,
		PIN:     pin,
		Origin:  fromKeypad,
		Request: request,
	}
	if p := l.check(c, window{}, l.mem.Codes); p != nil {
		return c, p
	}
	if len(l.mem.Codes)+l.faults.SlotsTaken >= l.prof.MaxCodes {
		return c, refuse(deviceFull, "The lock has no room for another code.")
	}
	p = l.commit(func(m *memory) *problem {
		c.ID = l.codeID(m)
		m.Codes = append(m.Codes, c)
		return nil
	})
	if p == nil {
		l.announceCode(opCreate, c, nil)
	}
	return c, p
}

// changeByHand changes the code's name or PIN at the keypad; nil keeps the value.
func (l *lock) changeByHand(id string, name, pin *string) (c stored, p *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p = l.commit(func(m *memory) *problem {
		known := m.find(id)
		if known == nil {
			return refuse(codeNotFound, "There is no such access code.")
		}
		if name != nil {
			known.Name = *name
		}
		if pin != nil {
			known.PIN = *pin
		}
		c = *known
		return l.check(c, c.window, m.Codes)
	})
	if p == nil {
		l.announceCode(opUpdate, c, nil)
	}
	return c, p
}

// deleteByHand deletes the code at the keypad.
func (l *lock) deleteByHand(id string) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c stored
	p := l.commit(func(m *memory) *problem {
		known := m.find(id)
		if known == nil {
			return refuse(codeNotFound, "There is no such access code.")
		}
		c = *known
		m.Codes = slices.DeleteFunc(m.Codes, func(c stored) bool { return c.ID == id })
		return nil
	})
	if p == nil {
		delete(l.failed, id)
		l.announceCode(opDelete, c, nil)
	}
	return p
}

// enterPIN enters a PIN at the door. The door opens for a code whose time frame contains the time of the lock's clock.
// The returned code is nil if the PIN is not accepted. It fails with LOCK_JAMMED.
func (l *lock) enterPIN(pin string) (*stored, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.mem.withPIN(pin)
	if c == nil || !c.contains(l.now()) {
		c = l.enterOffline(pin)
	}
	if c == nil {
		l.announce(event{Type: "access_code.incorrect_attempt"})
		return nil, nil
	}
	l.announce(event{Type: "access_code.used", AccessCodeID: c.ID})
	e := event{
		Type:         "lock.action_completed",
		Action:       "unlock",
		PerformedVia: "pin_code",
		AccessCodeID: c.ID,
	}
	return c, l.move(e, false)
}

// lockByHand presses the lock button of the keypad. It fails with LOCK_JAMMED.
func (l *lock) lockByHand() *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.move(event{Type: "lock.action_completed", Action: "lock", PerformedVia: "manual_turn"}, true)
}
