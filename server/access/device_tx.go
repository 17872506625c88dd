package access

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Holder proves that its owner alone works on a device or an account at the moment: a lease.
type Holder interface {
	Check(ctx context.Context, tx store.Tx) error
}

// deviceTx is a transaction on one device, its codes and its pending attempts. The rows may be changed in
// place: what differs at the end is written.
type deviceTx struct {
	s       *Service
	tx      store.Tx
	d       dbsqlc.Device
	caps    Capabilities
	codes   []*dbsqlc.AccessCode
	before  map[uuid.UUID]dbsqlc.AccessCode
	pending []dbsqlc.ActionAttempt
	now     time.Time
	swap    swap      // what holders found
	moment  time.Time // the same by the database's clock, which the deadlines of attempts go by
}

func (s *Service) onDevice(ctx context.Context, h Holder, id uuid.UUID, doing string, f func(*deviceTx) error) error {
	return s.onLockedDevice(ctx, id, doing, func(tx store.Tx) (store.LockedDevice, error) {
		l, err := tx.LockDeviceWithCodes(ctx, id)
		if err != nil {
			return l, err
		}
		return l, h.Check(ctx, tx)
	}, f)
}

func (s *Service) onLockedDevice(ctx context.Context, id uuid.UUID, doing string, lock func(store.Tx) (store.LockedDevice, error), f func(*deviceTx) error) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		l, err := lock(tx)
		if err != nil {
			return err
		}
		t := &deviceTx{s: s, tx: tx, d: l.Device, caps: capabilities(l.Device), before: map[uuid.UUID]dbsqlc.AccessCode{}, pending: l.Pending, now: s.opt.Now().UTC(), moment: l.Moment}
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
		return store.Each(ctx, tx, changed, func(tx store.Tx, c *dbsqlc.AccessCode) error { return save(ctx, tx, *c) })
	})
	if err != nil {
		return fmt.Errorf("%s of device %s: %w", doing, id, err)
	}
	return nil
}

// late says whether the time of an attempt is over.
func (t *deviceTx) late(a dbsqlc.ActionAttempt) bool { return !a.DeadlineAt.After(t.moment) }

func (t *deviceTx) code(id uuid.UUID) *dbsqlc.AccessCode {
	for _, c := range t.codes {
		if c.AccessCodeID == id {
			return c
		}
	}
	return nil
}

// gone deletes a code that is no longer on the device.
func (t *deviceTx) gone(ctx context.Context, c *dbsqlc.AccessCode) error {
	for i, other := range t.codes {
		if other == c {
			t.codes = append(t.codes[:i:i], t.codes[i+1:]...)
			break
		}
	}
	for _, other := range t.codes {
		if idOf(other.PulledBackupCodeID) == c.AccessCodeID {
			other.PulledBackupCodeID = nil
		}
	}
	t.pending = without(t.pending, c.AccessCodeID)
	return t.s.gone(ctx, t.tx, t.d, *c)
}

func without(attempts []dbsqlc.ActionAttempt, code uuid.UUID) (out []dbsqlc.ActionAttempt) {
	for _, a := range attempts {
		if idOf(a.AccessCodeID) != code {
			out = append(out, a)
		}
	}
	return out
}

// settle ends the attempts that have waited for the code to reach gen.
func (t *deviceTx) settle(ctx context.Context, c *dbsqlc.AccessCode, gen int64, status AttemptStatus, errorType, message string) error {
	return t.end(ctx, func(a dbsqlc.ActionAttempt) bool {
		return idOf(a.AccessCodeID) == c.AccessCodeID && a.Gen <= gen && (a.ActionType == CreateAccessCode || a.ActionType == UpdateAccessCode)
	}, status, errorType, message)
}

// end finishes the pending attempts that match.
func (t *deviceTx) end(ctx context.Context, match func(dbsqlc.ActionAttempt) bool, status AttemptStatus, errorType, message string) error {
	var rest []dbsqlc.ActionAttempt
	for _, a := range t.pending {
		if !match(a) {
			rest = append(rest, a)
			continue
		}
		if err := t.s.finishTold(ctx, t.tx, t.d, a, status, errorType, message); err != nil {
			return err
		}
	}
	t.pending = rest
	return nil
}

// applied records that the device has the code as gen wants it.
func (t *deviceTx) applied(ctx context.Context, c *dbsqlc.AccessCode, gen int64) error {
	return t.appliedAs(ctx, c, gen, nil)
}

// appliedAs is applied where it is known what gen wants, which may not be what is wanted by now; nil: it is not.
func (t *deviceTx) appliedAs(ctx context.Context, c *dbsqlc.AccessCode, gen int64, as *codeState) error {
	changed := c.AppliedGen > 0 && c.AppliedGen < gen // the PIN it had until now may be free
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
	case gen != c.DesiredGen && as == nil: // changed again meanwhile
		c.AppliedSealed = nil // it is not known any more, and neither what is wanted nor what was before must be taken for it
		return nil
	case gen != c.DesiredGen:
		return t.confirmedAs(ctx, c, *as, changedByRequest)
	}
	c.BlockedGen = 0 // should it be lost, it is to be put back
	if err := t.confirmed(ctx, c, changedByRequest); err != nil {
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
	return t.s.emit(ctx, t.tx, event, a)
}

// Failure is why a write came to nothing.
type Failure struct {
	Class       FailureClass
	Message     string        // for people; carries no PIN
	RetryAfter  time.Duration // not before then; 0 where unknown
	ConflictRef string        // Duplicate: the code on the device that has the PIN, where known
	Unsure      bool          // nobody knows whether the device has done it
	Absent      bool          // the code that was to become another is not on the device, which nobody can read
}

// FailureClass sorts failures by what they mean for the code.
type FailureClass string

const (
	FailedForNow      FailureClass = "for_now"     // worth another try
	FailedDuplicate   FailureClass = "duplicate"   // the PIN is on the device
	FailedFull        FailureClass = "full"        // the device has no room
	FailedInvalid     FailureClass = "invalid"     // the device refuses the PIN, name or time frame
	FailedUnsupported FailureClass = "unsupported" // the device cannot do that at all
)

// failed records that a write of the code as gen wants it came to nothing. What cannot be helped by trying
// again stands as an error until the code is changed (or the content of the device is), the rest is tried
// again ever later. Each is told once for what is wanted.
func (t *deviceTx) failed(ctx context.Context, c *dbsqlc.AccessCode, gen int64, f Failure) error {
	c.WriteAccepted = false // whether it has arrived nobody knows: WriteGen stays, so that it is known again
	event, failure := "access_code.failed_to_set_on_device", errFailedToSet
	if c.AppliedGen > 0 { // the code is on the device, as it was before
		event, failure = "access_code.failed_to_update", errFailedToUpd
	}
	if offline(*c) {
		event, failure = "access_code.failed_to_issue", errFailedToIssue
	}
	switch {
	case f.Class == FailedDuplicate && t.givesUpPIN(c, f.ConflictRef):
		f.Class = FailedForNow
	case f.Class == FailedDuplicate && t.unseen(c, f.ConflictRef):
		f.Class, f.RetryAfter = FailedForNow, max(f.RetryAfter, t.s.opt.ListLag/2)
	}
	permanent := map[FailureClass]string{FailedDuplicate: errDuplicate, FailedFull: errNoSpace, FailedInvalid: errConstraints, FailedUnsupported: failure}
	if c.ErrorAt != nil && c.ErrorAt.Before(c.DesiredAt) { // of what was wanted before
		clearError(c)
	}
	if code, ok := permanent[f.Class]; ok {
		if !f.Unsure || c.VendorRef != nil {
			c.WriteGen, c.WriteAt = 0, nil
		}
		if err := t.settle(ctx, c, gen, Failed, code, f.Message); err != nil {
			return err
		}
		if gen < c.DesiredGen { // what is wanted now has not been refused
			return nil
		}
		c.BlockedGen = gen
		if err := t.stand(c); err != nil {
			return err
		}
		first := text(c.ErrorCode) != code
		other := t.codeByRef(f.ConflictRef)
		if other == c.AccessCodeID {
			other = uuid.Nil
		}
		t.setError(c, code, f.Message, other)
		return t.tellTrouble(ctx, first, event, c)
	}
	c.Attempts++
	next := t.now.Add(max(backoff(int(c.Attempts)), f.RetryAfter))
	c.NextAttemptAt = &next
	if c.Attempts < patience {
		return nil
	}
	first := text(c.ErrorCode) != failure
	t.setError(c, failure, f.Message+" It is tried again.", uuid.Nil)
	return t.tellTrouble(ctx, first, event, c)
}

func (t *deviceTx) tellTrouble(ctx context.Context, first bool, event string, c *dbsqlc.AccessCode) error {
	if !first {
		return nil
	}
	return t.emitTrouble(ctx, event, c)
}

// givesUpPIN says whether the code of that reference is another one of ours that is about to have another PIN.
func (t *deviceTx) givesUpPIN(c *dbsqlc.AccessCode, ref string) bool {
	other := t.code(t.codeByRef(ref))
	return other != nil && other != c && changes(other)
}

// hasPIN says whether a change was refused as the code itself has the PIN, a new one: it was made before, and its answer was lost. Reading
// shows the rest. Where nobody can look, that has to be the change after what is known to be there: what came before it may have brought the
// PIN, and the vendor may refuse each code its own.
func (t *deviceTx) hasPIN(c *dbsqlc.AccessCode, f Failure) bool {
	if f.Class != FailedDuplicate || f.ConflictRef == "" || text(c.VendorRef) != f.ConflictRef {
		return false
	}
	next := c.AppliedGen > 0 && c.DesiredGen == c.AppliedGen+1
	return (t.caps.ListCodes || next) && !encryption.Equal(t.macOnDevice(c), c.PinMac)
}

func (t *deviceTx) codeByRef(ref string) uuid.UUID {
	for _, c := range t.codes {
		if ref != "" && text(c.VendorRef) == ref {
			return c.AccessCodeID
		}
	}
	return uuid.Nil
}

func (t *deviceTx) setError(c *dbsqlc.AccessCode, code, message string, other uuid.UUID) {
	message = storable(message)
	if text(c.ErrorCode) != code {
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

// emitTrouble tells of a problem with the errors and warnings that the code has at the moment.
func (t *deviceTx) emitTrouble(ctx context.Context, event string, c *dbsqlc.AccessCode) error {
	a, err := t.s.withTrouble(ctx, t.tx, aboutCode(t.d, *c), t.d)
	if err != nil {
		return err
	}
	var errs, warnings []Problem
	if c.ErrorCode != nil {
		errs = append(errs, Problem{Code: *c.ErrorCode, Message: text(c.ErrorMessage), Scope: OfCode, At: at(c.ErrorAt)})
	}
	if c.WarningCode != nil {
		warnings = append(warnings, Problem{Code: *c.WarningCode, Message: text(c.WarningMessage), Scope: OfCode, At: at(c.WarningAt)})
	}
	return t.s.emit(ctx, t.tx, event, a.with("access_code_errors", problems("error_code", errs)).with("access_code_warnings", problems("warning_code", warnings)))
}
