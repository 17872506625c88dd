package zigbee2mqtt

import (
	"context"
	"errors"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// rereadAfter is the age at which a used slot is read again before a write: some locks do not report changes at their
// keypad.
const rereadAfter = 10 * time.Minute

// Codes implements adapter.Adapter.
func (a *Adapter) Codes(ctx context.Context, device adapter.DeviceRef, fresh bool) (adapter.Codes, error) {
	l, err := a.findManageable(ctx, device)
	if err != nil {
		return adapter.Codes{}, err
	}
	if fresh {
		release, err := l.acquire(ctx)
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
			out.Codes = append(out.Codes, adapter.Code{
				Ref:      refOf(n),
				PIN:      r.PIN,
				State:    adapter.Confirmed,
				Disabled: r.Status == disabled,
			})
		}
	}
	return out, nil
}

// findManageable returns a lock whose codes can be managed.
func (a *Adapter) findManageable(ctx context.Context, device adapter.DeviceRef) (*lock, error) {
	l, err := a.find(ctx, device)
	if err != nil {
		return nil, err
	}
	a.readLimits(ctx, l)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !l.codes() {
		return nil, adapter.Errorf(adapter.NotSupported, "codes of this lock cannot be managed through Zigbee2MQTT")
	}
	return l, nil
}

// errUnstable is returned for a lock whose reading would never end.
var errUnstable = adapter.Errorf(adapter.Transient,
	"the codes of the lock must be read again and again: Zigbee2MQTT restarts, the lock's connection is unstable, "+
		"or the lock is being programmed")

// readAll reads the slots that are unknown or outdated, including those that become so meanwhile. Slots that were
// read before an error need not be read again. The caller holds the lock's turn.
func (a *Adapter) readAll(ctx context.Context, l *lock) error {
	for reads := 0; ; reads++ {
		a.mu.Lock()
		n, most := l.unread(), 2*l.slots
		a.mu.Unlock()
		switch {
		case n == 0:
			return nil
		case reads >= most:
			return errUnstable
		}
		switch _, err := a.readSlot(ctx, l, n); {
		case err == nil:
		case adapter.ClassOf(err) == adapter.Full: // the lock has fewer slots than assumed
			a.mu.Lock()
			l.slots, l.slotLimit, l.slotsReported = n, n, false
			a.mu.Unlock()
		default:
			return err
		}
	}
}

// unread returns the first slot that must be read, or 0.
func (l *lock) unread() int {
	for n := 1; n < l.slots; n++ {
		if r, known := l.read[n]; !known || (r.taken() && time.Since(r.at) >= rereadAfter) {
			return n
		}
	}
	return 0
}

// readSlot reads one slot from the lock. The caller holds the lock's turn. A missing slot must be reported twice,
// because the log of Zigbee2MQTT names neither the sender of the failed command nor the slot.
func (a *Adapter) readSlot(ctx context.Context, l *lock, n int) (slot, error) {
	got, err := a.askSlot(ctx, l, n)
	if adapter.ClassOf(err) == adapter.Full {
		got, err = a.askSlot(ctx, l, n)
	}
	return got, err
}

func (a *Adapter) askSlot(ctx context.Context, l *lock, n int) (got slot, err error) {
	err = a.command(ctx, l, "get", map[string]any{"pin_code": map[string]any{"user": n}}, answerTimeout,
		func(w, before *wireState) verdict {
			s, ok := w.slot(n, l.visible)
			if !ok {
				return isNone
			}
			got = s
			// Store the slot here, not when the command ends, because later messages take precedence. The message
			// about a change contains the slot before the change.
			if !programmed(w.Action) {
				l.read[n] = reading{s, time.Now()}
			}
			var was slot
			known := false
			if before != nil {
				was, known = before.slot(n, l.visible)
			}
			switch {
			case !known || was != s: // only a response changes it
				return isAnswer
			case w.reportsOther(before):
				return mayBe
			}
			return isAnswer
		})
	if err != nil && got.Status != "" { // it was not a response, or the outcome is unknown
		a.mu.Lock()
		delete(l.read, n)
		a.mu.Unlock()
	}
	switch {
	case errors.Is(err, errNoAnswer):
		if err := a.checkHealth(ctx); err != nil {
			return got, err
		}
		a.heardNothing(ctx, l)
		return got, noAnswerAs(ctx, err, adapter.Offline)
	case err != nil && adapter.ClassOf(err) == adapter.Unconfirmed: // a read has no outcome
		return got, waitError(ctx, adapter.Transient, adapter.AsError(err).Message)
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
func (a *Adapter) PutCode(ctx context.Context, device adapter.DeviceRef,
	spec adapter.CodeSpec,
) (adapter.PutResult, error) {
	l, err := a.findManageable(ctx, device)
	if err != nil {
		return adapter.PutResult{}, err
	}
	if err := a.fits(l, spec); err != nil {
		return adapter.PutResult{}, err
	}
	release, err := l.acquire(ctx)
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
			return adapter.PutResult{}, errUnstable
		}
		// Another writer may have just put a code there.
		now, err := a.readExactly(ctx, l, n)
		if err != nil {
			return adapter.PutResult{}, err
		}
		if now.taken() && !a.isOurs(l, spec, n, now) {
			continue
		}
		if !now.taken() {
			if err := spec.NotifyPlace(ctx, refOf(n)); err != nil {
				return adapter.PutResult{}, err
			}
		}
		if err := a.write(ctx, l, n, spec, now); err != nil {
			return adapter.PutResult{}, err
		}
		return adapter.PutResult{Ref: refOf(n), State: adapter.Confirmed}, nil
	}
}

// fits returns the reason why the lock cannot accept the code.
func (a *Adapter) fits(l *lock, spec adapter.CodeSpec) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case spec.StartsAt != nil || spec.EndsAt != nil:
		return adapter.Errorf(adapter.NotSupported, "the lock does not support time frames")
	case !digits.MatchString(spec.PIN):
		return adapter.Errorf(adapter.Invalid, "the PIN must consist of digits")
	case len(spec.PIN) < l.minPIN || len(spec.PIN) > l.maxPIN:
		return adapter.Errorf(adapter.Invalid, "the lock accepts PINs of %d to %d digits", l.minPIN, l.maxPIN)
	}
	return nil
}

// place returns the slot for a code: its own, or the lowest free one. It fails with NotFound, Duplicate, and Full.
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
			return 0, adapter.Errorf(adapter.NotFound, "the lock has no such code")
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
			return 0, &adapter.Error{
				Class: adapter.Duplicate, Message: "the PIN is already on the lock",
				Conflict: refOf(n),
			}
		}
	}
	switch {
	case own != 0:
		return own, nil
	case free == 0:
		return 0, adapter.Errorf(adapter.Full, "all %d slots of the lock are in use", l.slots-1)
	}
	return free, nil
}

// settleTimeout is how long the lock may take to execute a write before it is read. rereadDelays are the delays
// before each read.
const settleTimeout = 300 * time.Millisecond

var rereadDelays = []time.Duration{0, 700 * time.Millisecond, 2 * time.Second}

// write writes a PIN to a slot that was just read, and verifies it.
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
		if err := spec.NotifyPlace(ctx, refOf(n)); err != nil {
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
		return asUnconfirmed(ctx, err)
	}
	took, err := a.shows(ctx, l, n, func(s slot) bool { return s.Status == enabled && (s.PIN == pin || s.PIN == "") })
	if err != nil {
		return asUnconfirmed(ctx, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	mark := l.fingerprint(pin)
	if took {
		l.put[n] = mark
		delete(l.refused, mark)
		return nil
	}
	if l.read[n].free() { // the next code in the slot is another one
		l.forgetKeys(n)
	}
	if !l.refuses(pin) {
		return adapter.Errorf(adapter.Unconfirmed, "the lock answers, but has not accepted the PIN")
	}
	return adapter.Errorf(adapter.Duplicate,
		"the lock answers, but does not accept the PIN: most likely the PIN is already on the lock, possibly as its "+
			"master code")
}

// refuses records that a lock has rejected a PIN, and reports whether it had done so earlier; Adapter.mu is held.
func (l *lock) refuses(pin string) (again bool) {
	mark := l.fingerprint(pin)
	again = l.refused[mark]
	if !again && len(l.refused) >= maxRefused {
		clear(l.refused)
	}
	l.refused[mark] = true
	return again
}

// set writes a PIN to a slot, or clears the slot if pin is nil. A missing response is not an error. Neither is the
// report of a missing slot, whose command is unknown: the next read shows the outcome.
func (a *Adapter) set(ctx context.Context, l *lock, n int, pin any) error {
	a.mu.Lock()
	l.ownWrites[n] = time.Now()
	delete(l.read, n)
	delete(l.put, n)
	a.mu.Unlock()
	payload := map[string]any{"pin_code": map[string]any{
		"user":         n,
		"user_type":    "unrestricted",
		"user_enabled": true,
		"pin_code":     pin,
	}}
	err := a.command(ctx, l, "set", payload, settleTimeout, func(w, _ *wireState) verdict {
		if programmed(w.Action) && w.ActionUser != nil && *w.ActionUser == n {
			return isAnswer
		}
		return isNone
	})
	if (errors.Is(err, errNoAnswer) || adapter.ClassOf(err) == adapter.Full) && ctx.Err() == nil {
		return nil
	}
	return noAnswerAs(ctx, err, adapter.Unconfirmed)
}

// shows reads a slot until right returns true.
func (a *Adapter) shows(ctx context.Context, l *lock, n int, right func(slot) bool) (bool, error) {
	for _, pause := range rereadDelays {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false, waitError(ctx, adapter.Unconfirmed, "the lock has not shown the change yet")
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
		return asUnconfirmed(ctx, err)
	}
	gone, err := a.shows(ctx, l, n, slot.free)
	if err != nil {
		return asUnconfirmed(ctx, err)
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
func (a *Adapter) DeleteCode(ctx context.Context, device adapter.DeviceRef,
	code adapter.CodeRef,
) (adapter.State, error) {
	l, err := a.findManageable(ctx, device)
	if err != nil {
		return "", err
	}
	release, err := l.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	a.mu.Lock()
	n := numberOf(code)
	absent := l.knownEmpty(n)
	a.mu.Unlock()
	if absent {
		return adapter.Confirmed, nil
	}
	if err := a.clear(ctx, l, n); err != nil && adapter.ClassOf(err) != adapter.Full { // Full: the slot does not exist
		return "", err
	}
	return adapter.Confirmed, nil
}
