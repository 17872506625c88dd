package lockstate

import (
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Command is a lock command.
type Command struct {
	Attempt uuid.UUID
	// Lock is false for an unlock command.
	Lock bool
	// Started is true if the command may have been sent. It is never sent twice, and the device shows its result.
	Started bool
}

// AutoLock is the auto-lock setting of a device.
type AutoLock struct {
	Enabled bool `json:"enabled"`
	// Delay is the time from unlocking to locking, in seconds.
	Delay float64 `json:"delay_seconds"`
}

// AutoLockCommand is a pending change of a device's auto-lock setting.
type AutoLockCommand struct {
	// Attempt is the action attempt of the change.
	Attempt uuid.UUID
	AutoLock
	// Started is true if the setting may have been sent. It is sent only once; a read shows the result.
	Started bool
}

// MovesBolt reports whether an attempt locks or unlocks the door.
func MovesBolt(a Attempt) bool { return a.Type == domain.LockDoor || a.Type == domain.UnlockDoor }

// nextCommand returns the next lock command, and when to check whether the device shows its result. Commands run one at
// a time, in the order of the requests.
func (l *Lock) nextCommand() (*Command, *time.Time) {
	for _, a := range l.Attempts {
		if MovesBolt(a) {
			return &Command{a.ID, a.Type == domain.LockDoor, a.StartedAt != nil}, l.pollAttempt(a)
		}
	}
	return nil, nil
}

// nextAutoLock returns the oldest pending auto-lock change, and when to check whether the device shows it.
func (l *Lock) nextAutoLock() (*AutoLockCommand, *time.Time) {
	for _, a := range l.Attempts {
		if a.Type == domain.ConfigureAutoLock && a.AutoLock != nil {
			return &AutoLockCommand{a.ID, *a.AutoLock, a.StartedAt != nil}, l.pollAttempt(a)
		}
	}
	return nil, nil
}

// pollAttempt returns when to check the result of an attempt; nil: not before it has started.
func (l *Lock) pollAttempt(a Attempt) *time.Time {
	if a.StartedAt == nil {
		return nil
	}
	return new(pollAfter(*a.StartedAt, l.Now))
}

// FailJammed fails the command that met a jam on the way to a position.
func (l *Lock) FailJammed(locked bool) {
	l.endAll(func(a Attempt) bool {
		return MovesBolt(a) && a.StartedAt != nil && (a.Type == domain.LockDoor) == locked
	}, Failed, "lock_jammed", "The bolt is jammed. Look at the door: something may be in its way.")
}

// EndAll fails all pending attempts.
func (l *Lock) EndAll(errorType, message string) {
	l.endAll(func(Attempt) bool { return true }, Failed, errorType, message)
}
