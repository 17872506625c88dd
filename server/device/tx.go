package device

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// deviceTx is a transaction on one device, its codes, and its pending attempts. Callers change the code rows in place;
// the transaction writes changed rows at its end.
type deviceTx struct {
	s       *Service
	tx      store.Tx
	d       dbsqlc.Device
	caps    capability.Set
	codes   []*dbsqlc.AccessCode
	before  map[uuid.UUID]dbsqlc.AccessCode
	pending []dbsqlc.ActionAttempt
	now     time.Time
	// pinIndex caches the result of codesByPIN.
	pinIndex pinIndex
	// named lists the codes by the names that the device may have, in lower case; nil before listNames.
	named map[string][]*dbsqlc.AccessCode
	// moment is now by the database's clock, to which the deadlines of attempts refer.
	moment time.Time
}

// onDevice runs f in a transaction that locks a device and checks the fence. doing describes f in errors.
func (s *Service) onDevice(
	ctx context.Context,
	h domain.Fence,
	id uuid.UUID,
	doing string,
	f func(*deviceTx) error,
) error {
	return s.onLockedDevice(ctx, id, doing, func(tx store.Tx) (store.LockedDevice, error) {
		l, err := tx.LockDeviceWithCodes(ctx, id)
		if err != nil {
			return l, err
		}
		return l, h.Check(ctx, tx)
	}, f)
}

// onLockedDevice is onDevice with its own lock function.
func (s *Service) onLockedDevice(
	ctx context.Context, id uuid.UUID, doing string,
	lock func(store.Tx) (store.LockedDevice, error), f func(*deviceTx) error,
) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		l, err := lock(tx)
		if err != nil {
			return err
		}
		t := &deviceTx{
			s:       s,
			tx:      tx,
			d:       l.Device,
			caps:    capabilities(l.Device),
			before:  map[uuid.UUID]dbsqlc.AccessCode{},
			pending: l.Pending,
			now:     s.opt.Now().UTC(),
			moment:  l.Moment,
		}
		for _, r := range l.Codes {
			t.before[r.AccessCodeID] = r
			for _, at := range []**time.Time{&r.WriteAt, &r.AppliedAt} {
				if *at != nil && (*at).After(t.now) { // the clock was stepped back
					*at = &t.now
				}
			}
			t.codes = append(t.codes, &r)
		}
		if err := f(t); err != nil {
			return err
		}
		var changed []*dbsqlc.AccessCode
		for _, c := range t.codes {
			if !reflect.DeepEqual(t.before[c.AccessCodeID], *c) {
				changed = append(changed, c)
			}
		}
		return store.Each(
			ctx,
			tx,
			changed,
			func(tx store.Tx, c *dbsqlc.AccessCode) error { return saveCode(ctx, tx, *c) },
		)
	})
	if err != nil {
		return fmt.Errorf("%s of device %s: %w", doing, id, err)
	}
	return nil
}

// pastDeadline reports whether the deadline of an attempt has passed.
func (t *deviceTx) pastDeadline(a dbsqlc.ActionAttempt) bool { return !a.DeadlineAt.After(t.moment) }

func (t *deviceTx) code(id uuid.UUID) *dbsqlc.AccessCode {
	for _, c := range t.codes {
		if c.AccessCodeID == id {
			return c
		}
	}
	return nil
}

// deleteCode deletes the row of a code that has left the device.
func (t *deviceTx) deleteCode(ctx context.Context, c *dbsqlc.AccessCode) error {
	for i, other := range t.codes {
		if other == c {
			t.codes = append(t.codes[:i:i], t.codes[i+1:]...)
			break
		}
	}
	for _, other := range t.codes {
		if domain.Value(other.PulledBackupCodeID) == c.AccessCodeID {
			other.PulledBackupCodeID = nil
		}
	}
	t.pending = without(t.pending, c.AccessCodeID)
	return t.s.deleteCode(ctx, t.tx, t.d, *c)
}

func without(attempts []dbsqlc.ActionAttempt, code uuid.UUID) (out []dbsqlc.ActionAttempt) {
	for _, a := range attempts {
		if domain.Value(a.AccessCodeID) != code {
			out = append(out, a)
		}
	}
	return out
}

// settle ends the attempts that wait for the code to reach gen.
func (t *deviceTx) settle(
	ctx context.Context, c *dbsqlc.AccessCode, gen int64, status AttemptStatus, errorType, message string,
) error {
	return t.end(ctx, func(a dbsqlc.ActionAttempt) bool {
		return domain.Value(a.AccessCodeID) == c.AccessCodeID && a.DesiredGen <= gen &&
			(a.ActionType == domain.CreateAccessCode ||
				a.ActionType == domain.UpdateAccessCode)
	}, status, errorType, message)
}

// end finishes the pending attempts that match.
func (t *deviceTx) end(
	ctx context.Context, match func(dbsqlc.ActionAttempt) bool, status AttemptStatus, errorType, message string,
) error {
	var rest []dbsqlc.ActionAttempt
	for _, a := range t.pending {
		if !match(a) {
			rest = append(rest, a)
			continue
		}
		if err := t.s.finishWithEvent(ctx, t.tx, t.d, a, status, errorType, message); err != nil {
			return err
		}
	}
	t.pending = rest
	return nil
}

// recordApplied records that the device has the code's state of gen.
func (t *deviceTx) recordApplied(ctx context.Context, c *dbsqlc.AccessCode, gen int64) error {
	return t.recordAppliedAs(ctx, c, gen, nil)
}

// recordAppliedAs is recordApplied with the state of gen, which may differ from the desired one; nil means unknown.
func (t *deviceTx) recordAppliedAs(ctx context.Context, c *dbsqlc.AccessCode, gen int64, as *codeState) error {
	changed := c.AppliedGen > 0 && c.AppliedGen < gen // its previous PIN may be free
	c.AppliedGen, c.AppliedAt = gen, &t.now
	c.WriteGen, c.WriteAt, c.WriteAccepted, c.WriteRef = 0, nil, false, nil
	c.Attempts, c.NextAttemptAt = 0, nil
	clearError(c)
	clearWarning(c)
	if err := t.settle(ctx, c, gen, Succeeded, "", ""); err != nil {
		return err
	}
	if changed {
		t.unblock()
	}
	switch {
	case gen != c.DesiredGen && as == nil: // changed meanwhile
		c.AppliedSealed = nil // unknown: neither the desired nor the previous state
		return nil
	case gen != c.DesiredGen:
		return t.recordConfirmedAs(ctx, c, *as, changedByRequest)
	}
	c.BlockedGen = 0 // if the device loses the code, the server restores it
	if err := t.recordConfirmed(ctx, c, changedByRequest); err != nil {
		return err
	}
	event := "access_code.set_on_device"
	if c.Status = string(statusOn(*c, t.now)); c.Status == string(StatusUnset) {
		event = "access_code.scheduled_on_device"
	}
	return t.emitWithPIN(ctx, event, c)
}

func (t *deviceTx) emitWithPIN(ctx context.Context, event string, c *dbsqlc.AccessCode) error {
	a, err := t.s.aboutWithPIN(t.d, *c)
	if err != nil {
		return err
	}
	return t.s.events.Emit(ctx, t.tx, event, a)
}

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
func (t *deviceTx) recordFailure(ctx context.Context, c *dbsqlc.AccessCode, gen int64, f Failure) error {
	// The write may have arrived. WriteGen stays, so that a read recognizes the code.
	c.WriteAccepted = false
	event, failure := "access_code.failed_to_set_on_device", domain.ErrFailedToSet
	if c.AppliedGen > 0 { // the device keeps the previous state
		event, failure = "access_code.failed_to_update", domain.ErrFailedToUpdate
	}
	if offline(*c) {
		event, failure = "access_code.failed_to_issue", domain.ErrFailedToIssue
	}
	switch {
	case f.Class == FailedDuplicate && t.givesUpPIN(c, f.ConflictRef):
		f.Class = FailedForNow
	case f.Class == FailedDuplicate && t.unseenConflict(c, f.ConflictRef):
		f.Class, f.RetryAfter = FailedForNow, max(f.RetryAfter, t.s.opt.ReadLag/2)
	}
	permanent := map[FailureClass]string{
		FailedDuplicate:   domain.ErrDuplicate,
		FailedFull:        domain.ErrNoSpace,
		FailedInvalid:     domain.ErrConstraints,
		FailedUnsupported: failure,
	}
	if c.ErrorAt != nil && c.ErrorAt.Before(c.DesiredAt) { // of an earlier desired state
		clearError(c)
	}
	if code, ok := permanent[f.Class]; ok {
		if !f.Unsure || c.VendorRef != nil {
			c.WriteGen, c.WriteAt = 0, nil
		}
		if err := t.settle(ctx, c, gen, Failed, code, f.Message); err != nil {
			return err
		}
		if gen < c.DesiredGen { // the current desired state has not been refused
			return nil
		}
		c.BlockedGen = gen
		if err := t.setFallbackStatus(c); err != nil {
			return err
		}
		first := domain.Value(c.ErrorCode) != code
		other := t.codeByRef(f.ConflictRef)
		if other == c.AccessCodeID {
			other = uuid.Nil
		}
		t.setError(c, code, f.Message, other)
		return t.emitProblemOnce(ctx, first, event, c)
	}
	c.Attempts++
	next := t.now.Add(max(backoff(int(c.Attempts)), f.RetryAfter))
	c.NextAttemptAt = &next
	if c.Attempts < failureThreshold {
		return nil
	}
	first := domain.Value(c.ErrorCode) != failure
	t.setError(c, failure, f.Message+domain.RetriedSuffix, uuid.Nil)
	return t.emitProblemOnce(ctx, first, event, c)
}

func (t *deviceTx) emitProblemOnce(ctx context.Context, first bool, event string, c *dbsqlc.AccessCode) error {
	if !first {
		return nil
	}
	return t.emitProblem(ctx, event, c)
}

// givesUpPIN reports whether the reference is that of another managed code that is about to change its PIN.
func (t *deviceTx) givesUpPIN(c *dbsqlc.AccessCode, ref string) bool {
	other := t.code(t.codeByRef(ref))
	return other != nil && other != c && hasPendingChange(other)
}

// hasPIN reports whether a change was refused because the code itself has the new PIN already: an earlier write arrived
// and its response was lost. A read shows the rest. On a device that lists no codes, this needs the change right after
// the confirmed state: an earlier change may have brought the PIN, and vendors may refuse a code its own PIN.
func (t *deviceTx) hasPIN(c *dbsqlc.AccessCode, f Failure) bool {
	if f.Class != FailedDuplicate || f.ConflictRef == "" || domain.Value(c.VendorRef) != f.ConflictRef {
		return false
	}
	next := c.AppliedGen > 0 && c.DesiredGen == c.AppliedGen+1
	return (t.caps.ListCodes || next) && !t.s.keys.Match(t.macOnDevice(c), c.PinMac)
}

func (t *deviceTx) codeByRef(ref string) uuid.UUID {
	for _, c := range t.codes {
		if ref != "" && domain.Value(c.VendorRef) == ref {
			return c.AccessCodeID
		}
	}
	return uuid.Nil
}

func (t *deviceTx) setError(c *dbsqlc.AccessCode, code, message string, other uuid.UUID) {
	message = domain.Storable(message)
	if domain.Value(c.ErrorCode) != code {
		c.ErrorAt = &t.now
	}
	c.ErrorCode, c.ErrorMessage, c.ErrorCodeID = &code, &message, nil
	if other != uuid.Nil {
		c.ErrorCodeID = &other
	}
}

func clearError(c *dbsqlc.AccessCode) {
	c.ErrorCode, c.ErrorMessage, c.ErrorAt, c.ErrorCodeID = nil, nil, nil, nil
}

// emitProblem emits an event with the current errors and warnings of a code.
func (t *deviceTx) emitProblem(ctx context.Context, ev string, c *dbsqlc.AccessCode) error {
	a, err := t.s.withProblems(ctx, t.tx, event.AboutCode(t.d, *c), t.d)
	if err != nil {
		return err
	}
	var errs, warnings []domain.Problem
	if c.ErrorCode != nil {
		errs = append(errs, domain.Problem{
			Code:    *c.ErrorCode,
			Message: domain.Value(c.ErrorMessage),
			Scope:   domain.OfCode,
			At:      domain.Value(c.ErrorAt),
		})
	}
	if c.WarningCode != nil {
		warnings = append(warnings, domain.Problem{
			Code:    *c.WarningCode,
			Message: domain.Value(c.WarningMessage),
			Scope:   domain.OfCode,
			At:      domain.Value(c.WarningAt),
		})
	}
	a = a.With("access_code_errors", domain.ProblemFields("error_code", errs)).
		With("access_code_warnings", domain.ProblemFields("warning_code", warnings))
	return t.s.events.Emit(ctx, t.tx, ev, a)
}
