package lockstate

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// NewStatus returns the status of a new code, which may be programmed later: when it starts, or after the codes of the
// same PIN among the others.
func NewStatus(c *Code, caps capability.Set, others []Occupant, now time.Time) Status {
	if when := ProgramAt(c, caps); when != nil && when.After(now) || WaitsForEarlier(others, c.Occupant()) {
		return StatusUnset
	}
	return StatusSetting
}

// Create adds a managed code with its identifier, PIN, name, and time frame to the others, and returns the attempt to
// program it. A code that is programmed later has an attempt that already succeeded, because only the time must pass.
// It fails with Conflict and Invalid, like CheckPIN and CheckRoom.
func (l *Lock) Create(c Code, others []Occupant) (Requested, error) {
	c.Managed, c.DesiredGen, c.DesiredAt = true, 1, l.Now
	c.Status = NewStatus(&c, l.caps(), others, l.Now)
	if err := CheckRoom(l.caps(), others, c.Occupant(), l.Now); err != nil {
		return Requested{}, err
	}
	if err := CheckPIN(others, c.Occupant()); err != nil {
		return Requested{}, err
	}
	if c.UsesBackupPool {
		l.Device.Pool.Enabled = true
	}
	l.add(&c)
	l.emit(Event{Type: "access_code.created"}, &c)
	mutation, status := "creating", Pending
	if c.Status == StatusUnset {
		mutation, status = "deferring_creation", Succeeded
	}
	l.emit(Event{Type: MutationsRequested, Mutation: mutation}, &c)
	l.wake(false)
	return l.request(&c, domain.CreateAccessCode, status, nil), nil
}

// Change is a requested change of a managed code. The caller has checked its values against the rules of the device.
type Change struct {
	// Name is nil and PIN is empty where they stay.
	Name *string
	PIN  PIN
	// StartsAt and EndsAt are the time frame after the change.
	StartsAt, EndsAt            *time.Time
	ExternalModificationAllowed *bool
	// HasFields is true if the request names a field that the device stores, even with its current value.
	HasFields bool
}

// Update changes a managed code, and returns the attempt to program the change, which has already succeeded where the
// device is not affected. A repeated request returns another attempt with the same result, and retries what the device
// has rejected. It fails with Conflict, Invalid, and TooMany.
func (l *Lock) Update(c *Code, ch Change) (Requested, error) {
	undo := l.allow(c, ch.ExternalModificationAllowed)
	changes, err := l.applyChange(c, ch)
	if err != nil {
		return Requested{}, err
	}
	if retry := undo || ch.HasFields && c.isRefused(); len(changes) == 0 && !retry {
		return l.answerUnchanged(c, ch)
	}
	l.requestWrite(c)
	if c.AppliedGen == 0 { // not on the device yet: the new time frame determines its status
		if c.Status = NewStatus(c, l.caps(), l.Occupants(), l.Now); c.Status == StatusUnset {
			c.Error = nil
		}
	}
	if len(changes) > 0 { // otherwise the change was already announced
		l.emit(Event{Type: MutationsRequested, Requested: changes}, c)
		l.emit(Event{Type: "access_code.changed", Requested: changes}, c)
	}
	if err := l.alignBackup(c); err != nil {
		return Requested{}, err
	}
	l.wake(false)
	return l.newAttempt(c, domain.UpdateAccessCode, nil)
}

// applyChange applies a change, and returns what changes on the device.
func (l *Lock) applyChange(c *Code, ch Change) ([]FieldChange, error) {
	was, before := c.State(), c.Occupant()
	if ch.Name != nil {
		c.Name = ch.Name
	}
	if ch.PIN != "" {
		c.setPIN(ch.PIN)
	}
	moved := !sameTime(ch.StartsAt, c.StartsAt) || !sameTime(ch.EndsAt, c.EndsAt)
	c.StartsAt, c.EndsAt = ch.StartsAt, ch.EndsAt
	if was.PIN != c.PIN || moved {
		others := l.Occupants()
		if was.PIN == c.PIN {
			others = inTurnWith(others, before)
		}
		if err := CheckPIN(others, c.Occupant()); err != nil {
			return nil, err
		}
	}
	if moved {
		if err := checkMoreRoom(l.caps(), l.Occupants(), before, c.Occupant(), l.Now); err != nil {
			return nil, err
		}
	}
	return was.ChangesTo(c.State()), nil
}

// allow sets whether changes of a code at its device are kept. If a kept change loses its permission, the device is
// read. undo reports that the server must set the code again, because it was deleted or disabled there.
func (l *Lock) allow(c *Code, allowed *bool) (undo bool) {
	if allowed == nil {
		return false
	}
	forbidden := c.ExternalModificationAllowed && !*allowed
	c.ExternalModificationAllowed = *allowed
	if !forbidden || !c.hasWarning(domain.WarnExternal) {
		return false
	}
	undo = c.staysOff() || c.disabledWithPermission()
	c.Warning = nil
	l.wake(true)
	return undo
}

// requestWrite starts a new generation of the code, so that the device is programmed again.
func (l *Lock) requestWrite(c *Code) {
	if c.staysOff() || c.warnsOfDelay() {
		c.Warning = nil
	}
	c.DesiredGen++
	c.DesiredAt, c.Attempts, c.NextAttemptAt = l.Now, 0, nil
}

// isRefused reports whether the device has refused the desired state of a code, so that the server does not retry.
func (c *Code) isRefused() bool {
	return c.AppliedGen < c.DesiredGen && c.BlockedGen >= c.DesiredGen && !c.staysOff()
}

// staysOff reports whether a code was deleted at its device with permission and has not been changed since.
func (c *Code) staysOff() bool {
	return c.AppliedGen == 0 && c.BlockedGen >= c.DesiredGen && c.Error == nil && c.hasWarning(domain.WarnExternal)
}

// answerUnchanged answers a change without differences. Its attempt ends when the device has confirmed the desired
// state, or immediately if no write is pending.
func (l *Lock) answerUnchanged(c *Code, ch Change) (Requested, error) {
	if !ch.HasFields || c.AppliedGen >= c.DesiredGen || c.staysOff() || l.waitsForStart(c) {
		return l.request(c, domain.UpdateAccessCode, Succeeded, nil), nil
	}
	l.wake(false)
	return l.newAttempt(c, domain.UpdateAccessCode, nil)
}

// waitsForStart reports whether the only thing left for a code is to wait for its programming time.
func (l *Lock) waitsForStart(c *Code) bool {
	when := ProgramAt(c, l.caps())
	return !l.Device.Removed && !c.mayBeOnDevice() && when != nil && when.After(l.Now)
}

// Unmanage leaves a code on its device and makes it unmanaged. It fails with Invalid, and with Conflict where another
// code has the PIN afterwards.
func (l *Lock) Unmanage(c *Code) (Requested, error) {
	if c.Ref == "" || c.AppliedGen != c.DesiredGen || l.leaving(c) {
		return Requested{}, domain.Invalidf(
			"is_managed",
			"The device has not confirmed the code yet. Wait until its status is set, or delete it.",
		)
	}
	if err := checkNextStay(l.Occupants(), c.Occupant()); err != nil {
		return Requested{}, err
	}
	for _, other := range l.Codes {
		if other.PulledBackup == c.ID {
			other.PulledBackup = uuid.Nil
		}
	}
	c.Status = StatusSet // also before it starts, as with all unmanaged codes
	c.Managed, c.IsBackup = false, false
	c.Error, c.Warning, c.CommonCodeKey, c.PulledBackup = nil, nil, "", uuid.Nil
	l.emit(Event{Type: "access_code.unmanaged.created"}, c)
	return l.request(c, domain.UpdateAccessCode, Succeeded, nil), nil
}

// Remove marks a managed code for removal. It is deleted when the device confirms, or immediately if it never reached
// the device. A repeated request returns another attempt of the same removal, of which there are at most twenty.
func (l *Lock) Remove(c *Code) (Requested, error) { return l.remove(c, domain.DeleteAccessCode) }

// RemoveUnmanaged is Remove for an unmanaged code. Where the vendor does not support that, the attempt fails.
func (l *Lock) RemoveUnmanaged(c *Code) (Requested, error) {
	if l.caps().DeleteUnmanaged {
		return l.remove(c, domain.DeleteUnmanagedAccessCode)
	}
	l.wake(false)
	return l.newAttempt(c, domain.DeleteUnmanagedAccessCode, nil)
}

func (l *Lock) remove(c *Code, actionType string) (Requested, error) {
	if backup := l.pulledFor(c); backup != nil { // the removal of c revokes both
		if _, err := l.remove(backup, domain.DeleteAccessCode); err != nil {
			return Requested{}, err
		}
	}
	if !c.mayBeOnDevice() || c.Offline != "" || l.Device.Removed { // no code on the device, or no device
		done := l.request(c, actionType, Succeeded, nil)
		l.deleteCode(c)
		return done, nil
	}
	if c.RemovingSince == nil {
		l.startRemoval(c)
		c.Error = nil
		if c.Managed {
			l.emit(Event{Type: MutationsRequested, Mutation: "deleting"}, c)
		}
	}
	l.wake(false)
	return l.newAttempt(c, actionType, nil)
}

// Convert requests to make an unmanaged code managed. That happens after the next read of the device, if the code is
// still on it. allowed is whether changes at the device are kept then; nil: as before. It fails with Conflict and
// TooMany.
func (l *Lock) Convert(c *Code, allowed *bool) (Requested, error) {
	if c.RemovingSince != nil {
		return Requested{}, &domain.Error{
			Kind:    domain.Conflict,
			Type:    "access_code_being_deleted",
			Message: "The access code is being removed from its device and cannot be converted.",
		}
	}
	l.wake(true)
	return l.newAttempt(c, domain.ConvertAccessCode, allowed)
}

// maxWaiting is how many attempts of one type may wait for one code, because each pass over its device reads
// them all.
const maxWaiting = 20

// newAttempt adds an attempt about a code. At the maximum of waiting attempts a removal returns the last of them.
// Anything else fails with TooMany.
func (l *Lock) newAttempt(c *Code, actionType string, allowed *bool) (Requested, error) {
	var waiting []Attempt
	for _, a := range l.Attempts {
		if a.CodeID == c.ID && a.Type == actionType {
			waiting = append(waiting, a)
		}
	}
	switch {
	case len(waiting) < maxWaiting:
		return l.request(c, actionType, Pending, allowed), nil
	case actionType == domain.DeleteAccessCode || actionType == domain.DeleteUnmanagedAccessCode:
		return Requested{Attempt: waiting[maxWaiting-1], Status: Pending}, nil
	}
	return Requested{}, &domain.Error{
		Kind: domain.TooMany,
		Type: "too_many_requests",
		Data: map[string]any{"access_code_id": c.ID},
		Message: fmt.Sprintf(
			"%d such requests already wait for the device of this access code. Try again when one of them "+
				"has ended; /action_attempts/list with its device_id shows them.",
			maxWaiting,
		),
	}
}

// request adds an attempt that is pending or has succeeded.
func (l *Lock) request(c *Code, actionType string, status AttemptStatus, allowed *bool) Requested {
	r := Requested{
		Attempt: Attempt{
			ID:                          l.Sources.NewID(),
			CodeID:                      c.ID,
			Type:                        actionType,
			Gen:                         c.DesiredGen,
			Deadline:                    l.Now.Add(l.Timeouts.Attempt),
			ExternalModificationAllowed: allowed,
		},
		Status: status,
	}
	l.changes.Requested = append(l.changes.Requested, r)
	if status == Pending {
		l.Attempts = append(l.Attempts, r.Attempt)
	}
	return r
}

// PullBackup takes a code out of the device's pool to replace another one, and gives it the time frame of that one. It
// opens immediately, also on an offline device, where it has no time frame until the device confirms. So it can be
// pulled only within the time frame of the other code. A second call returns the same code.
//
// It fails with NotFound (backup_access_code_not_found) where none can be pulled. It fails with Invalid
// (access_code_not_time_bound, or access_code_inactive outside of the code's time frame), and with Conflict where the
// code is being deleted.
func (l *Lock) PullBackup(c *Code) (uuid.UUID, error) {
	switch {
	case c.RemovingSince != nil:
		return uuid.Nil, &domain.Error{
			Kind:    domain.Conflict,
			Type:    "access_code_being_deleted",
			Message: "The access code is being removed from its device, so no backup code can replace it.",
		}
	case c.StartsAt == nil:
		return uuid.Nil, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "access_code_not_time_bound",
			Field:   "access_code_id",
			Message: "Backup access codes can be pulled for time-bound access codes only. This one is ongoing.",
		}
	case !c.UsesBackupPool:
		return uuid.Nil, noBackup(
			"The access code does not use the backup pool. Create codes with use_backup_access_code_pool true.",
		)
	}
	if backup := l.pulledFor(c); backup != nil {
		return backup.ID, nil
	}
	if err := checkPullTime(c, l.Now); err != nil {
		return uuid.Nil, err
	}
	at := slices.IndexFunc(l.Codes, func(b *Code) bool { return b.isPullable() && !l.conflictsWithCode(b) })
	if at < 0 || l.Device.Removed {
		return uuid.Nil, noBackup("There is no backup access code on the device at the moment. Try again when " +
			"is_backup_access_code_available is true.")
	}
	backup := l.Codes[at]
	backup.InPool, backup.StartsAt, backup.EndsAt = false, c.StartsAt, c.EndsAt
	backup.ExternalModificationAllowed = c.ExternalModificationAllowed
	backup.Status = StatusSetting
	l.requestWrite(backup)
	c.PulledBackup = backup.ID
	l.emit(Event{Type: "access_code.backup_access_code_pulled", BackupCode: backup.ID}, c)
	l.wake(false)
	return backup.ID, nil
}

// checkPullTime fails with Invalid outside of a code's time frame.
func checkPullTime(c *Code, now time.Time) error {
	const what = "A backup access code opens when it is pulled, "
	switch {
	case !c.hasStarted(now):
		return &domain.Error{
			Kind:  domain.Invalid,
			Type:  "access_code_inactive",
			Field: "access_code_id",
			Message: what + "and this access code must not open before " +
				c.StartsAt.UTC().Format(time.RFC3339) + ". Pull one then, or set an earlier starts_at.",
		}
	case c.hasEnded(now):
		return &domain.Error{
			Kind:  domain.Invalid,
			Type:  "access_code_inactive",
			Field: "access_code_id",
			Message: what + "and this access code ended at " +
				c.EndsAt.UTC().Format(time.RFC3339) + ".",
		}
	}
	return nil
}

func noBackup(message string) *domain.Error {
	return &domain.Error{Kind: domain.NotFound, Type: "backup_access_code_not_found", Message: message}
}

// alignBackup gives the code that was pulled for c the current time frame of c. It fails with Invalid where the
// device has no room for both, and with Conflict where another code has the PIN of the pulled one in that time.
func (l *Lock) alignBackup(c *Code) error {
	backup := l.pulledFor(c)
	if backup == nil || (sameTime(backup.StartsAt, c.StartsAt) && sameTime(backup.EndsAt, c.EndsAt)) {
		return nil
	}
	before, others := backup.Occupant(), l.Occupants()
	backup.StartsAt, backup.EndsAt = c.StartsAt, c.EndsAt
	if err := CheckPIN(inTurnWith(others, before), backup.Occupant()); err != nil {
		return onBackupError(err, backup.ID)
	}
	if err := checkMoreRoom(l.caps(), others, before, backup.Occupant(), l.Now); err != nil {
		return err
	}
	l.requestWrite(backup)
	return nil
}

// onBackupError says that an error is about the code that was pulled for the code to change.
func onBackupError(err error, backup uuid.UUID) error {
	if e, ok := domain.AsError(err); ok {
		e.Message = fmt.Sprintf("Backup access code %s replaces this code and gets its times. %s", backup, e.Message)
	}
	return err
}

// pulledFor returns the managed code that was pulled for c and is not being removed, or nil.
func (l *Lock) pulledFor(c *Code) *Code {
	if c.PulledBackup == uuid.Nil {
		return nil
	}
	backup := l.Code(c.PulledBackup)
	if backup == nil || !backup.Managed || backup.RemovingSince != nil {
		return nil
	}
	return backup
}
