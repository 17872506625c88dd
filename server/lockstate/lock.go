package lockstate

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Lock is one device with its codes and pending attempts at one moment. Its methods change the fields in place and
// collect what the caller must write (Changes).
type Lock struct {
	Device Device
	// Codes are all codes of the device, oldest first.
	Codes []*Code
	// Attempts are the pending attempts of the device, oldest first.
	Attempts []Attempt
	// Now is the time by which the rules decide.
	Now      time.Time
	Timeouts Timeouts
	Sources  Sources

	changes  Changes
	pinIndex pinIndex
	// named lists the codes by the names that the device may have, in lower case; nil before listNames.
	named map[string][]*Code
}

// Device is what the rules need to know about a device.
type Device struct {
	ID           uuid.UUID
	Capabilities capability.Set
	Managed      bool
	// Removed is true if the device left its vendor account. Its codes stay in case it returns.
	Removed bool
	// Detached is true if a removed device cannot return, because its reference belongs to another device.
	Detached bool
	Online   bool
	// SubscriptionMissing is true if the vendor sets no codes without a subscription.
	SubscriptionMissing bool
	// ReadNeeded is true if the codes of the device may have changed since the last read, or were never read.
	ReadNeeded bool
	// RereadAt is when to read the device once more before acting on its last list.
	RereadAt *time.Time
	// EmptySince is since when the device's list has been unexpectedly empty.
	EmptySince *time.Time
	Pool       BackupPool
}

// PIN identifies the digits of a PIN without containing them: equal PINs of one device have equal values, as with a
// keyed hash. The empty PIN means none, or an unknown one. The caller keeps the digits.
type PIN string

// Code is an access code: its desired state, its last observed state, and its pending operation.
type Code struct {
	ID uuid.UUID
	// Managed is false for a code that was found on the device.
	Managed bool
	Status  Status
	Name    *string
	// VendorName is the name that the device has or gets; nil: none, or not sent yet.
	VendorName *string
	PIN        PIN
	// StartsAt and EndsAt are nil for an ongoing code.
	StartsAt, EndsAt *time.Time
	// ExternalModificationAllowed means that changes at the device are kept.
	ExternalModificationAllowed bool
	// PreferNativeScheduling means that the device enforces the time frame if it can.
	PreferNativeScheduling bool
	// CommonCodeKey is shared by codes of the same PIN; empty: none.
	CommonCodeKey string
	// Offline is the kind of an offline code; empty: an online code.
	Offline OfflineKind
	// UsesBackupPool means that a backup code can be pulled for the code.
	UsesBackupPool bool
	// IsBackup means that the code was created ahead of time. InPool means that it was not pulled yet.
	IsBackup, InPool bool
	// PulledBackup is the backup code that was pulled for the code; zero: none.
	PulledBackup uuid.UUID

	// DesiredGen counts the desired states. DesiredAt is when the current one was requested.
	DesiredGen int64
	DesiredAt  time.Time
	// Ref is the vendor's reference of the code; empty before the code is on the device.
	Ref string
	// AppliedGen is the generation that the device has confirmed; 0: none.
	AppliedGen int64
	AppliedAt  *time.Time
	// Applied is the state that the device has confirmed; nil: unknown. It is replaced, never changed.
	Applied *State
	// BlockedGen is the generation that the device has refused permanently.
	BlockedGen int64
	// WriteGen is the generation of the pending write; 0: none. A removal has none, but a WriteAt.
	WriteGen int64
	WriteAt  *time.Time
	// WriteAccepted is true if the vendor accepted the pending operation, and a read will show it.
	WriteAccepted bool
	// WriteRef is the place of the pending write.
	WriteRef string
	// WritePIN is the PIN of the last write, or the one that a read showed.
	WritePIN PIN
	// Attempts counts the failures since the last success. NextAttemptAt is when the server retries.
	Attempts      int
	NextAttemptAt *time.Time
	RemovingSince *time.Time
	// DriftCount counts the recent changes at the device, the last of them at DriftedAt.
	DriftCount int
	DriftedAt  *time.Time
	// ExternalChange is the last change at the device, domain.ChangeModified or domain.ChangeRemoved.
	ExternalChange string
	Error, Warning *Problem
}

// Problem is an error or a warning of a code.
type Problem struct {
	// Code is the error_code or warning_code of the API.
	Code    string
	Message string
	At      time.Time
	// Other is the code that has the PIN, for domain.ErrDuplicate.
	Other uuid.UUID
}

// Status is the state of a code as clients see it.
type Status string

// The statuses.
const (
	// StatusUnset means that the code is not on the device, or on it but not open yet.
	StatusUnset Status = "unset"
	// StatusSetting means that the code is being set.
	StatusSetting Status = "setting"
	// StatusSet means that the code opens.
	StatusSet Status = "set"
	// StatusRemoving means that the code is being removed.
	StatusRemoving Status = "removing"
	// StatusUnknown means that the device cannot be read.
	StatusUnknown Status = "unknown"
)

// State is the part of a code that clients can change, and the name that its device got.
type State struct {
	Name             *string
	PIN              PIN
	StartsAt, EndsAt *time.Time
	// VendorName is nil in a state without a name of its own for the device, which got Name.
	VendorName *string
}

func (s State) vendorName() string { return domain.Value(cmp.Or(s.VendorName, s.Name)) }

// State returns the desired state of a code.
func (c *Code) State() State {
	return State{
		Name:       c.Name,
		PIN:        c.PIN,
		StartsAt:   c.StartsAt,
		EndsAt:     c.EndsAt,
		VendorName: c.VendorName,
	}
}

// FieldChange is one difference between two states.
type FieldChange struct {
	// Field is name, code, or time_frame.
	Field    string
	From, To State
}

// The fields of a FieldChange.
const (
	NameField      = "name"
	CodeField      = "code"
	TimeFrameField = "time_frame"
)

// ChangesTo returns the differences that lead from one state to another.
func (s State) ChangesTo(to State) (out []FieldChange) {
	if domain.Value(s.Name) != domain.Value(to.Name) {
		out = append(out, FieldChange{NameField, s, to})
	}
	if s.PIN != to.PIN {
		out = append(out, FieldChange{CodeField, s, to})
	}
	if !sameTime(s.StartsAt, to.StartsAt) || !sameTime(s.EndsAt, to.EndsAt) {
		out = append(out, FieldChange{TimeFrameField, s, to})
	}
	return out
}

// Attempt is a pending action attempt.
type Attempt struct {
	ID uuid.UUID
	// CodeID is zero for a command to the device itself.
	CodeID uuid.UUID
	// Type is an action_type of the API.
	Type string
	// Gen is the generation of the code that the attempt waits for.
	Gen       int64
	StartedAt *time.Time
	// Deadline is when the attempt fails.
	Deadline time.Time
	// ExternalModificationAllowed is set on the code that a conversion makes managed; nil: unchanged.
	ExternalModificationAllowed *bool
	// AutoLock is the setting of a CONFIGURE_AUTO_LOCK attempt.
	AutoLock *AutoLock
}

// AttemptStatus is the state of an attempt.
type AttemptStatus string

// The attempt statuses.
const (
	Pending   AttemptStatus = "pending"
	Succeeded AttemptStatus = "success"
	Failed    AttemptStatus = "error"
)

// Timeouts are the durations of the rules. All must be positive.
type Timeouts struct {
	// Confirm is how long an accepted write may stay invisible before it counts as failed.
	Confirm time.Duration
	// ReadLag is how long a device's list may lag behind what the device has confirmed.
	ReadLag time.Duration
	// EmptyListGrace is how long an unexpectedly empty list is ignored before its codes count as removed.
	EmptyListGrace time.Duration
	// DelayAfter is when a code that is not yet set, or not yet removed, is reported as late.
	DelayAfter time.Duration
	// Attempt is when a requested attempt fails.
	Attempt time.Duration
}

// Sources provide what the rules cannot derive.
type Sources struct {
	// NewID returns a new identifier.
	NewID func() uuid.UUID
	// NewPIN returns a PIN that the device accepts and that is none of the taken ones. It reports whether there is one.
	NewPIN func(taken []PIN) (PIN, bool)
	// Jitter returns a random duration below the span.
	Jitter func(span time.Duration) time.Duration
	// Admit returns how many of n changes of unmanaged codes may be recorded now.
	Admit func(n int) int
}

func (l *Lock) caps() capability.Set { return l.Device.Capabilities }

// Code returns a code by its identifier, or nil.
func (l *Lock) Code(id uuid.UUID) *Code {
	for _, c := range l.Codes {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// CodeByRef returns the code with a reference, or nil.
func (l *Lock) CodeByRef(ref string) *Code {
	for _, c := range l.Codes {
		if ref != "" && c.Ref == ref {
			return c
		}
	}
	return nil
}

// add adds a new code.
func (l *Lock) add(c *Code) {
	l.Codes = append(l.Codes, c)
	l.changes.Added = append(l.changes.Added, c)
}

// deleteCode deletes a code that has left the device, ends its attempts, and emits its events.
func (l *Lock) deleteCode(c *Code) {
	l.drop(c)
	if l.needsTombstone(c) {
		l.changes.Tombstones = append(l.changes.Tombstones, c.ID)
	}
	l.endOfDeletedCode(c)
	if !c.Managed {
		l.emit(Event{Type: "access_code.unmanaged.removed"}, c)
		return
	}
	// The code stays on a removed device and continues to open.
	if c.AppliedGen > 0 && c.Offline == "" && !l.Device.Removed {
		l.emit(Event{Type: "access_code.removed_from_device"}, c)
	}
	l.emitWithPIN("access_code.deleted", c, c.PIN)
}

// drop removes the row of a code.
func (l *Lock) drop(c *Code) {
	l.Codes = slices.DeleteFunc(slices.Clone(l.Codes), func(other *Code) bool { return other == c })
	if i := slices.Index(l.changes.Added, c); i >= 0 {
		l.changes.Added = slices.Delete(l.changes.Added, i, i+1)
	} else {
		l.changes.Deleted = append(l.changes.Deleted, c.ID)
	}
	for _, other := range l.Codes {
		if other.PulledBackup == c.ID {
			other.PulledBackup = uuid.Nil
		}
	}
}

// endOfDeletedCode ends the attempts that wait for a deleted code.
func (l *Lock) endOfDeletedCode(c *Code) {
	for _, a := range slices.Clone(l.Attempts) {
		if a.CodeID != c.ID {
			continue
		}
		switch a.Type {
		case domain.DeleteAccessCode, domain.DeleteUnmanagedAccessCode:
			l.End(a.ID, Succeeded, "", "")
		case domain.ConvertAccessCode:
			l.failConversion(c, a, "access_code_not_found",
				"The code was removed from its device before it could be converted.")
		default:
			l.End(a.ID, Failed, "access_code_deleted", "The access code was deleted before the device confirmed.")
		}
	}
}

// End ends a pending attempt. A failure has an error type of the API and a message for people.
func (l *Lock) End(id uuid.UUID, status AttemptStatus, errorType, message string) {
	l.endAll(func(a Attempt) bool { return a.ID == id }, status, errorType, message)
}

// endAll ends the pending attempts that match.
func (l *Lock) endAll(match func(Attempt) bool, status AttemptStatus, errorType, message string) {
	var rest []Attempt
	for _, a := range l.Attempts {
		if !match(a) {
			rest = append(rest, a)
			continue
		}
		ended := Ended{Attempt: a, Status: status, ErrorType: errorType, Message: message}
		l.changes.Ended = append(l.changes.Ended, ended)
		l.changes.Events = append(l.changes.Events, Event{Ended: &ended})
	}
	l.Attempts = rest
}

// settle ends the attempts that wait for a code to reach gen.
func (l *Lock) settle(c *Code, gen int64, status AttemptStatus, errorType, message string) {
	l.endAll(func(a Attempt) bool {
		return a.CodeID == c.ID && a.Gen <= gen &&
			(a.Type == domain.CreateAccessCode || a.Type == domain.UpdateAccessCode)
	}, status, errorType, message)
}

func (l *Lock) failConversion(c *Code, a Attempt, errorType, message string) {
	l.End(a.ID, Failed, errorType, message)
	l.emit(Event{
		Type:     "access_code.unmanaged.failed_to_convert_to_managed",
		Problems: true,
		Errors:   []Problem{{Code: errorType, Message: message, At: l.Now}},
	}, c)
}

func (a Attempt) overdue(now time.Time) bool { return !a.Deadline.After(now) }

// clearWrite forgets the pending operation of a code.
func (c *Code) clearWrite() { c.WriteGen, c.WriteAt, c.WriteAccepted = 0, nil, false }

// retryLater counts a failure and pauses the code.
func (l *Lock) retryLater(c *Code, atLeast time.Duration) {
	c.Attempts++
	c.NextAttemptAt = new(l.Now.Add(max(l.backoff(c.Attempts), atLeast)))
}

// setPIN sets the PIN of a code. A changed PIN clears the common code key.
func (c *Code) setPIN(pin PIN) {
	if c.PIN != "" && c.PIN != pin {
		c.CommonCodeKey = ""
	}
	c.PIN = pin
}

func (l *Lock) setError(c *Code, code, message string, other uuid.UUID) {
	at := l.Now
	if c.Error != nil && c.Error.Code == code {
		at = c.Error.At
	}
	c.Error = &Problem{Code: code, Message: domain.Storable(message), At: at, Other: other}
}

func (l *Lock) warn(c *Code, code, message string) {
	c.Warning = &Problem{Code: code, Message: message, At: l.Now}
}

// hasError reports whether a code has an error with that error_code.
func (c *Code) hasError(code string) bool { return c.Error != nil && c.Error.Code == code }

// hasWarning reports whether a code has a warning with that warning_code.
func (c *Code) hasWarning(code string) bool { return c.Warning != nil && c.Warning.Code == code }

// hasEnded reports whether the time frame of a code has ended.
func (c *Code) hasEnded(now time.Time) bool { return c.EndsAt != nil && !c.EndsAt.After(now) }

// hasStarted reports whether a code has no start, or one that has passed.
func (c *Code) hasStarted(now time.Time) bool { return c.StartsAt == nil || !c.StartsAt.After(now) }

// earlier returns the earlier of two times, of which the first may be nil.
func earlier(a *time.Time, b time.Time) *time.Time {
	if a != nil && a.Before(b) {
		return a
	}
	return &b
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// ForgetFuture moves the times of the codes' operations that lie in the future to now, because the clock was stepped
// back.
func (l *Lock) ForgetFuture() {
	for _, c := range l.Codes {
		for _, at := range []**time.Time{&c.WriteAt, &c.AppliedAt} {
			if *at != nil && (*at).After(l.Now) {
				*at = new(l.Now)
			}
		}
	}
}
