package lockstate

import (
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Failure is why a write failed.
type Failure struct {
	Class FailureClass
	// Message is for people and contains no PIN.
	Message string
	// RetryAfter is the time before which a retry is pointless; 0 means unknown.
	RetryAfter time.Duration
	// ConflictRef is the code on the device that has the PIN (FailedDuplicate), if known.
	ConflictRef string
	// Unsure is true if the device may have applied the write.
	Unsure bool
	// Absent is true if the code to change is not on the device, whose codes cannot be read.
	Absent bool
}

// FailureClass sorts failures by their consequence for the code.
type FailureClass string

// The failure classes.
const (
	// FailedForNow is a failure that a retry may solve.
	FailedForNow FailureClass = "for_now"
	// FailedDuplicate means that the PIN is in use on the device.
	FailedDuplicate FailureClass = "duplicate"
	// FailedFull means that the device has no room.
	FailedFull FailureClass = "full"
	// FailedInvalid means that the device refuses the PIN, name, or time frame.
	FailedInvalid FailureClass = "invalid"
	// FailedUnsupported means that the device lacks the operation.
	FailedUnsupported FailureClass = "unsupported"
)

// recordFailure records that a write of the code's state of gen failed. A permanent failure stays as an error until the
// code, or the content of its device, changes. Other failures are retried with growing backoff. Each failure causes one
// event per desired state.
func (l *Lock) recordFailure(c *Code, gen int64, f Failure) {
	// The write may have arrived. WriteGen stays, so that a read recognizes the code.
	c.WriteAccepted = false
	event, failure := c.failureNames()
	switch {
	case f.Class == FailedDuplicate && l.willReleasePIN(c, f.ConflictRef):
		f.Class = FailedForNow
	case f.Class == FailedDuplicate && l.unseenConflict(c, f.ConflictRef):
		f.Class, f.RetryAfter = FailedForNow, max(f.RetryAfter, l.Timeouts.ReadLag/2)
	}
	if c.Error != nil && c.Error.At.Before(c.DesiredAt) { // of an earlier desired state
		c.Error = nil
	}
	permanent := map[FailureClass]string{
		FailedDuplicate:   domain.ErrDuplicate,
		FailedFull:        domain.ErrNoSpace,
		FailedInvalid:     domain.ErrConstraints,
		FailedUnsupported: failure,
	}
	if code, ok := permanent[f.Class]; ok {
		l.recordPermanentFailure(c, gen, f, code, event)
		return
	}
	l.retryLater(c, f.RetryAfter)
	if c.Attempts < failureThreshold {
		return
	}
	first := !c.hasError(failure)
	l.setError(c, failure, f.Message+domain.RetriedSuffix, uuid.Nil)
	if first {
		l.emitProblem(event, c)
	}
}

// failureNames returns the event type and the error_code of a failed write of a code.
func (c *Code) failureNames() (event, errorCode string) {
	switch {
	case c.Offline != "":
		return "access_code.failed_to_issue", domain.ErrFailedToIssue
	case c.AppliedGen > 0: // the device keeps the previous state
		return "access_code.failed_to_update", domain.ErrFailedToUpdate
	}
	return "access_code.failed_to_set_on_device", domain.ErrFailedToSet
}

// recordPermanentFailure records that the device refuses the state of gen, with an error_code and an event type.
func (l *Lock) recordPermanentFailure(c *Code, gen int64, f Failure, errorCode, event string) {
	if !f.Unsure || c.Ref != "" {
		c.WriteGen, c.WriteAt = 0, nil
	}
	l.settle(c, gen, Failed, errorCode, f.Message)
	if gen < c.DesiredGen { // the current desired state has not been refused
		return
	}
	c.BlockedGen = gen
	l.setFallbackStatus(c)
	first := !c.hasError(errorCode)
	other := uuid.Nil
	if conflict := l.CodeByRef(f.ConflictRef); conflict != nil && conflict != c {
		other = conflict.ID
	}
	l.setError(c, errorCode, f.Message, other)
	if first {
		l.emitProblem(event, c)
	}
}

// willReleasePIN reports whether the reference is that of another managed code that is about to change its PIN.
func (l *Lock) willReleasePIN(c *Code, ref string) bool {
	other := l.CodeByRef(ref)
	return other != nil && other != c && other.hasPendingChange()
}

// hasPIN reports whether a change was refused because the code itself has the new PIN already: an earlier write arrived
// and its response was lost. A read shows the rest. On a device that lists no codes, this needs the change right after
// the confirmed state: an earlier change may have brought the PIN, and vendors may refuse a code its own PIN.
func (l *Lock) hasPIN(c *Code, f Failure) bool {
	if f.Class != FailedDuplicate || f.ConflictRef == "" || c.Ref != f.ConflictRef {
		return false
	}
	next := c.AppliedGen > 0 && c.DesiredGen == c.AppliedGen+1
	has := c.pinOnDevice()
	return (l.caps().ListCodes || next) && (has == "" || has != c.PIN)
}
