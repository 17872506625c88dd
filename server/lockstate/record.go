package lockstate

import (
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Start records that the server is about to send an operation to the device, so that after a crash the next lease
// holder knows that it may have arrived. It reports whether the code still needs the operation.
func (l *Lock) Start(op Operation) bool {
	c := l.Code(op.Code)
	if c == nil || l.Device.Removed || !l.Device.Managed && !c.InPool {
		return false
	}
	switch op.Action {
	case Put:
		return l.startPut(c, op)
	case Find:
		if !l.leaving(c) || !c.canRepeatCreate(l.caps()) {
			return false
		}
		c.WriteAt = new(l.Now)
		return true
	case Delete:
		return l.startDelete(c)
	case Issue:
		return c.AppliedGen < op.Gen
	}
	return false
}

func (l *Lock) startPut(c *Code, op Operation) bool {
	if c.RemovingSince != nil || !c.Managed || c.DesiredGen != op.Gen || !l.Device.Managed || l.waitsForTurn(c) {
		return false
	}
	if !l.anotherPIN(c) { // an uncertain earlier PIN stays recorded
		c.WritePIN = c.PIN
	}
	if !l.vacated(c) { // the slot stays vacated until it has the new PIN
		c.WriteRef = ""
	}
	c.WriteGen, c.WriteAt, c.WriteAccepted = op.Gen, new(l.Now), false
	c.Status, c.VendorName = StatusSetting, &op.Name
	return true
}

// startDelete records the start of a temporary removal (the code steps aside, is recreated, or is postponed), so that
// the missing code is not mistaken for one deleted at the device.
func (l *Lock) startDelete(c *Code) bool {
	recreate := l.needsRecreate(c)
	if !l.leaving(c) && !recreate {
		return false
	}
	if c.Managed && c.RemovingSince == nil {
		if recreate || l.yieldsPIN(c) {
			c.Status = StatusSetting
		}
		c.WriteGen, c.WriteAt, c.WriteAccepted = 0, new(l.Now), false
	}
	return true
}

// anotherPIN reports whether an uncertain creation was sent with a PIN that differs from the desired one, on a device
// that hides PINs. A vendor that recognizes a repeated creation by its key answers with the first one's code. A vendor
// that receives a slot for each write does not.
func (l *Lock) anotherPIN(c *Code) bool {
	if l.caps().PINVisible || l.caps().ProviderPIN || c.Ref != "" || c.WriteGen == 0 || c.WriteRef != "" {
		return false
	}
	return c.WritePIN != "" && c.WritePIN != c.PIN
}

// RecordPlace records the reference (slot) of the following write of a code, which is free or will be vacated first.
// After a crash, the reference identifies the code if the device hides its PIN. It reports whether the write is still
// wanted.
func (l *Lock) RecordPlace(op Operation, ref string) bool {
	c := l.Code(op.Code)
	if c == nil || c.WriteGen != op.Gen || c.RemovingSince != nil || l.Device.Removed || !l.Device.Managed {
		return false
	}
	// The slot was just free, so the codes that it was recorded for are not there.
	for _, other := range l.Codes {
		if other.WriteRef == ref {
			if other != c && l.vacated(other) && other.RemovingSince == nil {
				l.recreateVacated(other)
			}
			other.WriteRef = ""
		}
		// The previous code of the slot has left, although no read has shown it yet.
		if (!other.Managed || other.RemovingSince != nil) && other.Ref == ref {
			l.deleteCode(other)
		}
	}
	c.WriteRef, c.WriteAt = ref, new(l.Now) // the search for a slot may have taken long
	return true
}

// Outcome is the outcome of an operation.
type Outcome struct {
	// Ref is the code on the device. Together with a Failure, it is a created code that differs from the desired state.
	Ref string
	// PIN is chosen by the vendor; empty otherwise.
	PIN PIN
	// Confirmed is true if the device itself confirmed the operation.
	Confirmed bool
	// Unsent is true if, according to the vendor, nothing was sent to a device that lists no codes.
	Unsent  bool
	Failure *Failure
}

// check turns a write with an invalid reference, under which the server could not remove the code, into a failure.
func (o *Outcome) check() {
	if o.Failure != nil && !domain.ValidRef(o.Ref) {
		o.Ref = ""
	}
	if o.Failure == nil && o.Ref != "" && !domain.ValidRef(o.Ref) {
		*o = Outcome{Failure: &Failure{
			Class: FailedUnsupported,
			Message: "The vendor has answered with a reference that cannot be stored. " +
				"Check whether the code is on the lock: only the vendor's app can remove it.",
			Unsure: true,
		}}
	}
}

// Record records the outcome of an operation.
func (l *Lock) Record(op Operation, o Outcome) {
	c := l.Code(op.Code)
	if c == nil {
		return
	}
	switch {
	case o.Unsent:
		l.recordUnsent(c, op)
	case op.Action == Put:
		o.check()
		l.recordPut(c, op, o)
	case op.Action == Find:
		o.check()
		l.recordFound(c, o)
	case op.Action == Issue:
		o.check()
		l.recordIssued(c, op, o)
	case op.Action == Delete:
		l.recordDelete(c, o)
	}
}

func (l *Lock) recordPut(c *Code, op Operation, o Outcome) {
	other := o.Ref != "" && c.Ref != o.Ref
	// found is true for a created code that differs from the desired state.
	found := other && o.Failure != nil && c.Ref == ""
	if found || other && o.Failure == nil {
		l.claim(o.Ref)
		c.Ref = o.Ref
	}
	switch {
	case o.Failure != nil && l.hasPIN(c, *o.Failure):
		o = Outcome{Ref: c.Ref, Confirmed: !l.caps().ListCodes}
	case found:
		l.recordMismatch(c, op.Gen, *o.Failure)
		return
	case o.Failure != nil:
		l.recordPutFailure(c, op, *o.Failure)
		return
	}
	if o.PIN != "" && (c.PIN == "" || l.caps().ProviderPIN) {
		c.setPIN(o.PIN)
		op.State.PIN = o.PIN
	}
	if c.RemovingSince != nil {
		c.clearWrite()
		return
	}
	// The code has one PIN or the other, so it is overwritten or recreated.
	if op.OtherPIN && c.WriteRef == "" {
		c.WriteGen, c.WriteAt, c.WriteAccepted, c.WritePIN = op.Gen-1, new(l.Now), false, ""
		return
	}
	c.WriteAccepted = true
	if o.Confirmed {
		l.recordApplied(c, op.Gen, &op.State)
	}
}

// recordPutFailure records that a write has failed.
func (l *Lock) recordPutFailure(c *Code, op Operation, f Failure) {
	f.Unsure = f.Unsure || op.WriteUncertain
	switch {
	case c.RemovingSince != nil && (f.Class == FailedForNow || f.Unsure): // may have arrived: a read will show
		c.WriteAccepted = false
	case c.RemovingSince != nil: // no code to remove
		c.clearWrite()
		if c.Ref == "" {
			l.deleteCode(c)
		}
	case f.Absent && c.Ref == op.Ref:
		l.recordAbsent(c, op.Gen, f)
	default:
		l.recordFailure(c, op.Gen, f)
	}
}

// recordMismatch records that a creation returned a code that differs from the desired state. The code is overwritten,
// recreated, or removed.
func (l *Lock) recordMismatch(c *Code, gen int64, f Failure) {
	c.WriteGen, c.WriteAt, c.WriteAccepted, c.WritePIN = gen-1, new(l.Now), false, ""
	if c.WriteGen == 0 || c.RemovingSince != nil {
		c.WriteGen, c.WriteAt = 0, nil
	}
	if c.RemovingSince == nil {
		l.recordFailure(c, gen, f)
	}
}

// recordAbsent records that a change failed because the code is not on its device. The next attempt recreates it.
func (l *Lock) recordAbsent(c *Code, gen int64, f Failure) {
	was := c.AppliedGen > 0
	l.onExternalDelete(c)
	// A vendor that keeps returning references to nothing is asked with growing backoff.
	if !was {
		l.recordFailure(c, gen, f)
	}
}

// claim ensures that no other code has the reference of the code that was just set. An unmanaged one is that same code,
// which a read between the write and its response could not match. A managed one has lost its slot.
func (l *Lock) claim(ref string) {
	for _, c := range l.Codes {
		switch {
		case c.Ref != ref:
			continue
		case !c.Managed || c.RemovingSince != nil:
			l.deleteCode(c)
		case c.removalSent(): // a temporary removal has arrived
			l.markRemoved(c)
		default:
			l.onExternalDelete(c)
		}
		return
	}
}

// recordApplied records that the device has the code's state of gen. as is that state if it may differ from the desired
// one; nil means unknown.
func (l *Lock) recordApplied(c *Code, gen int64, as *State) {
	changed := c.AppliedGen > 0 && c.AppliedGen < gen // its previous PIN may be free
	c.AppliedGen, c.AppliedAt = gen, new(l.Now)
	c.clearWrite()
	c.WriteRef = ""
	c.Attempts, c.NextAttemptAt = 0, nil
	c.Error, c.Warning = nil, nil
	l.settle(c, gen, Succeeded, "", "")
	if changed {
		l.unblock()
	}
	switch {
	case gen != c.DesiredGen && as == nil: // changed meanwhile
		c.Applied = nil // unknown: neither the desired nor the previous state
		return
	case gen != c.DesiredGen:
		l.recordConfirmedAs(c, *as, changedByRequest)
		return
	}
	c.BlockedGen = 0 // if the device loses the code, the server restores it
	l.recordConfirmed(c, changedByRequest)
	event := "access_code.set_on_device"
	if c.Status = c.statusOn(l.Now); c.Status == StatusUnset {
		event = "access_code.scheduled_on_device"
	}
	l.emitWithPIN(event, c, c.PIN)
}

// recordDelete records the outcome of a removal. On a device that lists codes, a read confirms the removal; otherwise
// the vendor's confirmation suffices.
func (l *Lock) recordDelete(c *Code, o Outcome) {
	switch {
	case !l.leaving(c):
		return
	case o.Failure != nil:
		l.failedToRemove(c, *o.Failure)
		return
	case o.Confirmed && !l.caps().ListCodes:
		if c.RemovingSince == nil {
			l.markRemoved(c)
		} else {
			l.deleteCode(c)
		}
		l.unblock()
	default:
		c.WriteGen, c.WriteAccepted, c.WriteAt = 0, true, new(l.Now)
	}
	// Other codes may have waited for the removal.
	l.wake(true)
}

// failedToRemove records that a removal failed. The server retries it, unless the vendor does not support the removal
// of unmanaged codes.
func (l *Lock) failedToRemove(c *Code, f Failure) {
	if f.Unsure && l.yieldsPIN(c) { // the recorded start shows that this removal may have succeeded
		c.WriteAccepted = false
	} else {
		c.clearWrite()
	}
	if f.Class == FailedUnsupported && !c.Managed {
		c.RemovingSince, c.Status = nil, StatusSet
		l.endAll(func(a Attempt) bool {
			return a.CodeID == c.ID && a.Type == domain.DeleteUnmanagedAccessCode
		}, Failed, "cannot_delete_unmanaged_access_code", f.Message)
		return
	}
	l.retryLater(c, f.RetryAfter)
	event, failure := "access_code.failed_to_remove_from_device", domain.ErrFailedToRemove
	if c.Managed && c.RemovingSince != nil && c.EndsAt != nil && !c.EndsAt.After(*c.RemovingSince) {
		event, failure = "access_code.failed_to_expire", domain.ErrFailedToExpire
	}
	if c.Attempts < failureThreshold || c.hasError(failure) {
		return
	}
	l.setError(c, failure, f.Message+" The server keeps retrying: until then the code may still open.", uuid.Nil)
	if c.Managed {
		l.emitProblem(event, c)
	}
}

// recordUnsent records that a write was not sent to a device that lists no codes. It does not make its code uncertain.
func (l *Lock) recordUnsent(c *Code, op Operation) {
	if l.caps().ListCodes || op.WriteUncertain || c.Ref != "" || c.WriteRef != "" || c.WriteGen != op.Gen {
		return
	}
	c.clearWrite()
	c.WritePIN, c.VendorName = "", nil
	if c.RemovingSince != nil {
		l.deleteCode(c)
	}
}
