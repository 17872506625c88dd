package zwavejs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// PutCode implements adapter.Adapter. It does not write a code that is already on the lock.
func (a *Adapter) PutCode(ctx context.Context, device adapter.DeviceRef,
	spec adapter.CodeSpec,
) (adapter.PutResult, error) {
	s, n, err := a.find(ctx, device)
	if err != nil {
		return adapter.PutResult{}, beforeWrite(err)
	}
	if err := a.checkSpec(s, n, spec); err != nil {
		return adapter.PutResult{}, err
	}
	release, err := a.acquire(ctx, n)
	if err != nil {
		return adapter.PutResult{}, beforeWrite(err)
	}
	defer release()
	if err := a.ensureAwake(ctx, s, n); err != nil {
		return adapter.PutResult{}, beforeWrite(err)
	}
	for {
		slot, err := a.placeAndPut(ctx, s, n, spec)
		switch {
		case errors.Is(err, errTaken): // the next attempt chooses another slot
		case err != nil:
			return adapter.PutResult{}, err
		default:
			return adapter.PutResult{Ref: codeRef(slot), State: adapter.Confirmed}, nil
		}
	}
}

// placeAndPut writes a code to its slot, or to the first free one.
func (a *Adapter) placeAndPut(ctx context.Context, s *session, n *node, spec adapter.CodeSpec) (int, error) {
	slot, found, occupied, err := a.place(ctx, s, n, spec)
	if err != nil {
		return 0, beforeWrite(err)
	}
	if !occupied {
		if err := spec.NotifyPlace(ctx, codeRef(slot)); err != nil {
			return 0, err
		}
	}
	return slot, a.put(ctx, s, n, slot, spec, found, occupied)
}

// beforeWrite converts an error before a write like asRead, but returns Unconfirmed if the context has ended, because
// the caller cannot know the progress.
func beforeWrite(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e := adapter.AsError(err)
		if e != nil && e.Class != adapter.GatewayDown {
			return errors.Join(adapter.Errorf(adapter.Unconfirmed, "%s", e.Message), err)
		}
	}
	return asRead(err)
}

// checkSpec fails with Invalid or NotSupported if the lock does not accept the code.
func (a *Adapter) checkSpec(s *session, n *node, spec adapter.CodeSpec) error {
	if err := a.checkCodes(s, n); err != nil {
		return err
	}
	caps := a.device(n).Capabilities
	fits := false
	for _, length := range caps.CodeLengths {
		fits = fits || len(spec.PIN) == length
	}
	for _, digit := range []byte(spec.PIN) {
		fits = fits && digit >= '0' && digit <= '9'
	}
	if len(caps.CodeLengths) == 0 {
		return adapter.Errorf(adapter.NotSupported, "the lock reports no usable PIN length")
	}
	shortest, longest := caps.CodeLengths[0], caps.CodeLengths[len(caps.CodeLengths)-1]
	switch {
	case !fits && shortest == longest:
		return adapter.Errorf(adapter.Invalid, "the lock accepts PINs of %d digits", shortest)
	case !fits:
		return adapter.Errorf(adapter.Invalid, "the lock accepts PINs of %d to %d digits", shortest, longest)
	}
	return a.checkTimeFrame(n, spec)
}

// place returns the slot for the code and its content as just read from the lock. It fails with Full, and with
// NotFound if the code to overwrite does not exist.
func (a *Adapter) place(ctx context.Context, s *session, n *node, spec adapter.CodeSpec) (slot int, e entry,
	occupied bool, err error,
) {
	slots := n.traits.Load().slots
	if spec.Ref != "" {
		slot, err := strconv.Atoi(string(spec.Ref))
		if err != nil || slot < 1 || slot > slots {
			return 0, e, false, adapter.Errorf(adapter.NotFound, "the lock has no slot of that number")
		}
		e, occupied, err := a.readSlot(ctx, s, n, slot)
		if err == nil && !occupied {
			err = adapter.Errorf(adapter.NotFound, "slot %d of the lock is empty", slot)
		}
		return slot, e, occupied, err
	}
	a.mu.Lock()
	before, known := n.codes.keys[spec.Key]
	a.mu.Unlock()
	if known {
		e, occupied, err := a.readSlot(ctx, s, n, before.slot)
		if err != nil || occupied && e.shows(before.pin) {
			return before.slot, e, occupied, err
		}
	}
	for slot := 1; slot <= slots; slot++ {
		a.mu.Lock()
		taken := n.codes.taken(slot)
		a.mu.Unlock()
		if taken {
			continue
		}
		e, _, err := a.readSlot(ctx, s, n, slot)
		a.mu.Lock()
		taken = n.codes.taken(slot)
		a.mu.Unlock()
		if err != nil || !taken {
			return slot, e, false, err
		}
	}
	return 0, e, false, adapter.Errorf(adapter.Full, "all %d slots of the lock are taken", slots)
}

// put writes spec to a slot. A slot that hides its PIN is cleared first, because a lock that rejects the new PIN
// would continue to show the asterisks of the old one.
func (a *Adapter) put(ctx context.Context, s *session, n *node, slot int, spec adapter.CodeSpec, found entry,
	occupied bool,
) error {
	wanted := entry{
		pin:    spec.PIN,
		user:   slot,
		starts: spec.StartsAt,
		ends:   spec.EndsAt,
	}
	if n.hasUsers() {
		wanted.name = truncateName(spec.Name, n.traits.Load().nameMax)
		if occupied {
			wanted.user = found.user
		}
	}
	a.mu.Lock()
	ours := n.codes.keys[spec.Key]
	// hidden, and written by this adapter
	mine := occupied && found.pin == "" && spec.Key != "" && ours == put{slot, spec.PIN}
	a.mu.Unlock()
	if !occupied || found.disabled || !mine && found.pin != spec.PIN || found.name != wanted.name {
		hidden := occupied && found.pin == "" && !n.hasUsers()
		if hidden {
			if err := spec.NotifyPlace(ctx, codeRef(slot)); err != nil {
				return err
			}
			if err := a.emptySlot(ctx, s, n, slot, found); err != nil {
				return err
			}
		}
		if err := a.write(ctx, s, n, slot, spec.Key, wanted, occupied); err != nil {
			if hidden {
				a.hints.Send(adapter.Event{Kind: adapter.CodesChanged, Device: n.ref, Code: codeRef(slot)})
			}
			return err
		}
		found = a.known(n, slot)
	}
	if err := a.writeTimeFrame(ctx, s, n, slot, found, wanted); err != nil {
		if !occupied { // without a time frame the code would never expire
			err = errors.Join(err, a.clear(context.WithoutCancel(ctx), s, n, slot))
		}
		return err
	}
	return nil
}

// known returns the last read content of a slot.
func (a *Adapter) known(n *node, slot int) entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	return n.codes.slots[slot]
}

// noteWrite writes a PIN to a slot and verifies it.
func (a *Adapter) write(ctx context.Context, s *session, n *node, slot int, key string, wanted entry,
	occupied bool,
) error {
	began := time.Now()
	a.mu.Lock()
	n.codes.noteWrite(key, slot, wanted)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		n.codes.finishWrite(slot)
		a.mu.Unlock()
	}()
	var refused bool
	var err error
	if n.hasUsers() {
		refused, err = a.setCredential(ctx, s, n, slot, wanted, occupied)
	} else {
		refused, err = a.setUserCode(ctx, s, n, slot, wanted.pin)
	}
	if err != nil {
		a.markUncertain(n, slot)
		return err
	}
	e, there, err := a.readSlot(ctx, s, n, slot)
	switch {
	case err != nil:
		return adapter.Errorf(adapter.Unconfirmed, "the code could not be read back: %s", adapter.AsError(err).Message)
	case there && !refused && !e.disabled && e.shows(wanted.pin) && (e.pin != "" || !a.refusedSince(n, began)):
		return nil
	}
	a.mu.Lock()
	n.codes.forgetKey(slot)
	a.mu.Unlock()
	if conflict, duplicate := a.duplicate(ctx, n, began); duplicate {
		e := adapter.Errorf(adapter.Duplicate, "the PIN is already on the lock")
		if conflict != slot {
			e.Conflict = a.conflict(n, conflict, wanted.pin)
		}
		return e
	}
	return adapter.Errorf(adapter.Unconfirmed, "the lock has not accepted the code, and gave no reason")
}

// markUncertain marks a slot as uncertain, so that it is read before its next use.
func (a *Adapter) markUncertain(n *node, slot int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n.codes.markUncertain(slot)
}

// conflict returns the code that has the PIN: the slot reported by the lock, or else the slot known to show the PIN.
func (a *Adapter) conflict(n *node, slot int, pin string) adapter.CodeRef {
	if slot > 0 {
		return codeRef(slot)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, slot := range n.codes.occupied() {
		if n.codes.slots[slot].pin == pin {
			return codeRef(slot)
		}
	}
	return ""
}

// DeleteCode implements adapter.Adapter.
func (a *Adapter) DeleteCode(ctx context.Context, device adapter.DeviceRef,
	code adapter.CodeRef,
) (adapter.State, error) {
	s, n, err := a.find(ctx, device)
	if err != nil {
		return "", err
	}
	if err := a.checkCodes(s, n); err != nil {
		return "", err
	}
	slot, err := strconv.Atoi(string(code))
	if err != nil || slot < 1 || slot > n.traits.Load().slots {
		return adapter.Confirmed, nil // no code can be there
	}
	release, err := a.acquire(ctx, n)
	if err != nil {
		return "", err
	}
	defer release()
	if err := a.ensureAwake(ctx, s, n); err != nil {
		return "", err
	}
	if err := a.clear(ctx, s, n, slot); err != nil {
		return "", err
	}
	return adapter.Confirmed, nil
}

// noteClear clears a slot and verifies that.
func (a *Adapter) clear(ctx context.Context, s *session, n *node, slot int) error {
	e, occupied, err := a.readSlot(ctx, s, n, slot)
	switch {
	case err != nil:
		return asRead(err)
	case !occupied:
		a.mu.Lock()
		n.codes.forgetKey(slot)
		a.mu.Unlock()
		return nil
	}
	return a.emptySlot(ctx, s, n, slot, e)
}

// emptySlot deletes the content of a slot and verifies that.
func (a *Adapter) emptySlot(ctx context.Context, s *session, n *node, slot int, e entry) (err error) {
	a.mu.Lock()
	n.codes.noteClear(slot)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		n.codes.finishWrite(slot)
		a.mu.Unlock()
	}()
	if n.hasUsers() {
		err = a.removeCredential(ctx, s, n, slot, e)
	} else {
		err = a.clearUserCode(ctx, s, n, slot)
	}
	if err != nil {
		a.markUncertain(n, slot)
		return err
	}
	_, occupied, err := a.readSlot(ctx, s, n, slot)
	switch {
	case err != nil:
		return adapter.Errorf(adapter.Unconfirmed, "the removal of the code could not be verified: %s",
			adapter.AsError(err).Message)
	case occupied:
		return adapter.Errorf(adapter.Unconfirmed, "the lock has not removed the code, and gave no reason")
	}
	a.mu.Lock()
	n.codes.forgetKey(slot)
	a.mu.Unlock()
	return nil
}
