package zigbee2mqtt

import (
	"context"
	"errors"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// readAgainAfter is how old the reading of a slot in use may be before something is written: some locks do not
// tell what is done at their keypad.
const readAgainAfter = 10 * time.Minute

// Codes implements adapter.Adapter.
func (a *Adapter) Codes(ctx context.Context, device adapter.DeviceRef, fresh bool) (adapter.Codes, error) {
	l, err := a.speak(ctx, device)
	if err != nil {
		return adapter.Codes{}, err
	}
	if fresh {
		release, err := l.begin(ctx)
		if err != nil {
			return adapter.Codes{}, err
		}
		defer release()
		if err := a.readAll(ctx, l); err != nil {
			return adapter.Codes{}, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out := adapter.Codes{Stale: !l.online()}
	for n := 1; n < l.slots; n++ {
		r, ok := l.read[n]
		out.Stale = out.Stale || !ok
		if r.taken() {
			out.Codes = append(out.Codes, adapter.Code{Ref: refOf(n), PIN: r.PIN, State: adapter.Confirmed, Disabled: r.Status == disabled})
		}
	}
	return out, nil
}

// speak finds a lock whose codes can be managed.
func (a *Adapter) speak(ctx context.Context, device adapter.DeviceRef) (*lock, error) {
	l, err := a.find(ctx, device)
	if err != nil {
		return nil, err
	}
	a.learn(ctx, l)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !l.codes() {
		return nil, adapter.Errorf(adapter.NotSupported, "codes of this lock cannot be managed through Zigbee2MQTT")
	}
	return l, nil
}

// errUnsteady is what a lock comes to that would be read for ever.
var errUnsteady = adapter.Errorf(adapter.Transient, "the codes of the lock have to be read again and again: Zigbee2MQTT restarts, or the lock comes and goes or is programmed, before all are read")

// readAll reads those slots that nobody knows, or knows no more, also those of which that becomes true meanwhile. What
// it has read before it fails need not be read again. It is called in turn.
func (a *Adapter) readAll(ctx context.Context, l *lock) error {
	for reads := 0; ; reads++ {
		a.mu.Lock()
		n, most := l.unread(), 2*l.slots
		a.mu.Unlock()
		switch {
		case n == 0:
			return nil
		case reads >= most:
			return errUnsteady
		}
		switch _, err := a.readSlot(ctx, l, n); {
		case err == nil:
		case adapter.ClassOf(err) == adapter.Full: // it has fewer than it is taken to have
			a.mu.Lock()
			l.slots, l.ends, l.told = n, n, false
			a.mu.Unlock()
		default:
			return err
		}
	}
}

// unread is the first slot that is to be read, 0 where there is none.
func (l *lock) unread() int {
	for n := 1; n < l.slots; n++ {
		if r, known := l.read[n]; !known || (r.taken() && time.Since(r.at) >= readAgainAfter) {
			return n
		}
	}
	return 0
}

// readSlot asks the lock for one slot. It is called in turn. That there is none is believed when it is said once more:
// Zigbee2MQTT logs neither whose command was about a slot that is none, nor which that was.
func (a *Adapter) readSlot(ctx context.Context, l *lock, n int) (slot, error) {
	got, err := a.askSlot(ctx, l, n)
	if adapter.ClassOf(err) == adapter.Full {
		got, err = a.askSlot(ctx, l, n)
	}
	return got, err
}

func (a *Adapter) askSlot(ctx context.Context, l *lock, n int) (got slot, err error) {
	err = a.command(ctx, l, "get", map[string]any{"pin_code": map[string]any{"user": n}}, answerWithin, func(w, before *wireState) verdict {
		s, ok := w.slot(n, l.visible)
		if !ok {
			return isNone
		}
		got = s
		// It is noted here and not when the command ends: what is heard after it counts more. The word of a change is
		// published with what the slot was before.
		if !programmed(w.Action) {
			l.read[n] = reading{s, time.Now()}
		}
		var was slot
		known := false
		if before != nil {
			was, known = before.slot(n, l.visible)
		}
		switch {
		case !known || was != s: // nothing but an answer changes it
			return isAnswer
		case w.tellsOfMore(before):
			return mayBe
		}
		return isAnswer
	})
	if err != nil && got.Status != "" { // it was none, or nobody knows
		a.mu.Lock()
		delete(l.read, n)
		a.mu.Unlock()
	}
	switch {
	case errors.Is(err, errNoAnswer):
		if err := a.alive(ctx); err != nil {
			return got, err
		}
		a.heardNothing(ctx, l)
		return got, late(ctx, err, adapter.Offline)
	case err != nil && adapter.ClassOf(err) == adapter.Unconfirmed: // nothing was to be done
		return got, lost(ctx, adapter.Transient, adapter.AsError(err).Message)
	case err != nil:
		return got, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !got.taken() {
		l.empty(n)
	}
	if masked := got.PIN == ""; got.Status == enabled && l.visible && l.masked != masked {
		l.masked = masked
		a.hints.Send(adapter.Event{Kind: adapter.StatusChanged, Device: l.ref})
	}
	return got, nil
}

// PutCode implements adapter.Adapter.
func (a *Adapter) PutCode(ctx context.Context, device adapter.DeviceRef, spec adapter.CodeSpec) (adapter.PutResult, error) {
	l, err := a.speak(ctx, device)
	if err != nil {
		return adapter.PutResult{}, err
	}
	if err := a.fits(l, spec); err != nil {
		return adapter.PutResult{}, err
	}
	release, err := l.begin(ctx)
	if err != nil {
		return adapter.PutResult{}, err
	}
	defer release()
	if err := a.readAll(ctx, l); err != nil {
		return adapter.PutResult{}, err
	}
	for tries := 0; ; tries++ {
		n, err := a.place(l, spec)
		if err != nil {
			return adapter.PutResult{}, err
		}
		a.mu.Lock()
		most := l.slots
		a.mu.Unlock()
		if tries >= most {
			return adapter.PutResult{}, errUnsteady
		}
		// Somebody else may have just put a code there.
		now, err := a.readExactly(ctx, l, n)
		if err != nil {
			return adapter.PutResult{}, err
		}
		if now.taken() && !a.isOurs(l, spec, n, now) {
			continue
		}
		if !now.taken() {
			if err := spec.TellPlace(ctx, refOf(n)); err != nil {
				return adapter.PutResult{}, err
			}
		}
		if err := a.write(ctx, l, n, spec, now); err != nil {
			return adapter.PutResult{}, err
		}
		return adapter.PutResult{Ref: refOf(n), State: adapter.Confirmed}, nil
	}
}

// fits says why such a lock cannot be given the code.
func (a *Adapter) fits(l *lock, spec adapter.CodeSpec) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case spec.StartsAt != nil || spec.EndsAt != nil:
		return adapter.Errorf(adapter.NotSupported, "the lock keeps no time frames")
	case !digits.MatchString(spec.PIN):
		return adapter.Errorf(adapter.Invalid, "the PIN must be of digits")
	case len(spec.PIN) < l.minPIN || len(spec.PIN) > l.maxPIN:
		return adapter.Errorf(adapter.Invalid, "the lock takes PINs of %d to %d digits", l.minPIN, l.maxPIN)
	}
	return nil
}

// place is the slot for a code: the one it has, or the lowest that is free. It fails with NotFound, Duplicate and Full.
func (a *Adapter) place(l *lock, spec adapter.CodeSpec) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	own := l.keys[spec.Key].slot
	if !l.has(spec.Key, own, l.read[own].slot) {
		own = 0
	}
	if spec.Ref != "" {
		own = l.slotOf(spec.Ref)
		if own == 0 || !l.read[own].taken() {
			return 0, adapter.Errorf(adapter.NotFound, "the lock has no such code any more")
		}
	}
	free := 0
	for n := l.slots - 1; n >= 1; n-- {
		r := l.read[n]
		if r.free() {
			free = n
		}
		same := r.PIN == spec.PIN || (r.PIN == "" && l.put[n] == l.fingerprint(spec.PIN))
		if n != own && r.taken() && same {
			return 0, &adapter.Error{Class: adapter.Duplicate, Message: "the PIN is on the lock already", Conflict: refOf(n)}
		}
	}
	switch {
	case own != 0:
		return own, nil
	case free == 0:
		return 0, adapter.Errorf(adapter.Full, "all %d places of the lock are in use", l.slots-1)
	}
	return free, nil
}

// The lock has as long to do what it was told until it is asked, and is asked so often.
const settleWithin = 300 * time.Millisecond

var askAgainAfter = []time.Duration{0, 700 * time.Millisecond, 2 * time.Second}

// write has the lock take a PIN in a slot that was just read, and makes sure that it has.
func (a *Adapter) write(ctx context.Context, l *lock, n int, spec adapter.CodeSpec, now slot) error {
	pin := spec.PIN
	a.mu.Lock()
	same := now.Status == enabled && (now.PIN == pin || (now.PIN == "" && l.put[n] == l.fingerprint(pin)))
	hidden := !l.visible || (now.taken() && now.PIN == "")
	a.mu.Unlock()
	if same {
		return nil
	}
	if now.taken() && hidden {
		if err := spec.TellPlace(ctx, refOf(n)); err != nil {
			return err
		}
		if err := a.clear(ctx, l, n); err != nil {
			return err
		}
	}
	a.mu.Lock()
	l.note(spec.Key, n, now.PIN, pin)
	a.mu.Unlock()
	if err := a.set(ctx, l, n, pin); err != nil {
		return unsure(ctx, err)
	}
	took, err := a.shows(ctx, l, n, func(s slot) bool { return s.Status == enabled && (s.PIN == pin || s.PIN == "") })
	if err != nil {
		return unsure(ctx, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	mark := l.fingerprint(pin)
	if took {
		l.put[n] = mark
		delete(l.refused, mark)
		return nil
	}
	if l.read[n].free() { // whoever is there next is somebody else
		l.forgetKeys(n)
	}
	if !l.refuses(pin) {
		return adapter.Errorf(adapter.Unconfirmed, "the lock answers, but has not taken the PIN")
	}
	return adapter.Errorf(adapter.Duplicate, "the lock answers, but does not take the PIN: most likely it has it already, be it as its master code")
}

// refuses notes that a lock has not taken a PIN, and says whether it had not before; with Adapter.mu held.
func (l *lock) refuses(pin string) (again bool) {
	mark := l.fingerprint(pin)
	again = l.refused[mark]
	if !again && len(l.refused) >= mostRefused {
		clear(l.refused)
	}
	l.refused[mark] = true
	return again
}

// set tells the lock what to have in a slot, nil: nothing. That nothing is heard of it is no error, nor that somebody's
// command was about a slot that is none: whose it was shows when the slot is asked for.
func (a *Adapter) set(ctx context.Context, l *lock, n int, pin any) error {
	a.mu.Lock()
	l.ours[n] = time.Now()
	delete(l.read, n)
	delete(l.put, n)
	a.mu.Unlock()
	err := a.command(ctx, l, "set", map[string]any{"pin_code": map[string]any{"user": n, "user_type": "unrestricted", "user_enabled": true, "pin_code": pin}},
		settleWithin, func(w, _ *wireState) verdict {
			if programmed(w.Action) && w.ActionUser != nil && *w.ActionUser == n {
				return isAnswer
			}
			return isNone
		})
	if (errors.Is(err, errNoAnswer) || adapter.ClassOf(err) == adapter.Full) && ctx.Err() == nil {
		return nil
	}
	return late(ctx, err, adapter.Unconfirmed)
}

// shows asks for a slot until it is as it should be.
func (a *Adapter) shows(ctx context.Context, l *lock, n int, right func(slot) bool) (bool, error) {
	for _, pause := range askAgainAfter {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false, lost(ctx, adapter.Unconfirmed, "the lock has not shown it yet")
		}
		now, err := a.readSlot(ctx, l, n)
		if err != nil || right(now) {
			return err == nil, err
		}
	}
	return false, nil
}

func (a *Adapter) clear(ctx context.Context, l *lock, n int) error {
	if err := a.set(ctx, l, n, nil); err != nil {
		return unsure(ctx, err)
	}
	gone, err := a.shows(ctx, l, n, slot.free)
	if err != nil {
		return unsure(ctx, err)
	}
	if !gone {
		return adapter.Errorf(adapter.Unconfirmed, "the lock answers, but still has the code")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l.forgetKeys(n)
	return nil
}

// DeleteCode implements adapter.Adapter.
func (a *Adapter) DeleteCode(ctx context.Context, device adapter.DeviceRef, code adapter.CodeRef) (adapter.State, error) {
	l, err := a.speak(ctx, device)
	if err != nil {
		return "", err
	}
	release, err := l.begin(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	a.mu.Lock()
	n := numberOf(code)
	absent := l.lacks(n)
	a.mu.Unlock()
	if absent {
		return adapter.Confirmed, nil
	}
	if err := a.clear(ctx, l, n); err != nil && adapter.ClassOf(err) != adapter.Full { // then it has no such place
		return "", err
	}
	return adapter.Confirmed, nil
}
