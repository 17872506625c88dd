package lockstate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// A device can have more scheduled codes than it holds, as long as they do not overlap: most stays are months ahead,
// and the server programs their codes shortly before.

// Occupant is what a code of a device means for another one: its PIN, and the time in which it occupies a slot.
type Occupant struct {
	ID                     uuid.UUID
	Managed                bool
	Removing               bool
	InPool, IsBackup       bool
	Offline                bool
	PreferNativeScheduling bool
	// OnDevice is true if the code is, or may be, on the device.
	OnDevice         bool
	PIN              PIN
	StartsAt, EndsAt *time.Time
}

// Occupant returns what a code means for others.
func (c *Code) Occupant() Occupant {
	return Occupant{
		ID:                     c.ID,
		Managed:                c.Managed,
		Removing:               c.RemovingSince != nil,
		InPool:                 c.InPool,
		IsBackup:               c.IsBackup,
		Offline:                c.Offline != "",
		PreferNativeScheduling: c.PreferNativeScheduling,
		OnDevice:               c.mayBeOnDevice(),
		PIN:                    c.PIN,
		StartsAt:               c.StartsAt,
		EndsAt:                 c.EndsAt,
	}
}

// Occupants returns what the codes mean for a new one.
func (l *Lock) Occupants() []Occupant {
	out := make([]Occupant, len(l.Codes))
	for i, c := range l.Codes {
		out[i] = c.Occupant()
	}
	return out
}

// stay is the time in which a code occupies a slot of its device.
type stay struct {
	// from is zero for a code without a beginning.
	from time.Time
	// until is nil for a code without an end.
	until *time.Time
}

// stay returns the known time in which a code occupies a slot of its device.
func (o Occupant) stay(caps capability.Set) stay {
	// Whether its vendor removes an unmanaged code at its end is unknown.
	if !o.Managed {
		return stay{}
	}
	c := &Code{StartsAt: o.StartsAt, PreferNativeScheduling: o.PreferNativeScheduling, IsBackup: o.IsBackup}
	if o.Offline {
		c.Offline = OfflineHourly
	}
	s := stay{until: o.EndsAt}
	// A device with native schedules keeps a code whose time frame moves.
	stays := o.OnDevice && NativeSchedule(c, caps)
	if when := ProgramAt(c, caps); when != nil && !stays {
		s.from = *when
	}
	return s
}

// CheckRoom checks that a device has room for one more code. It fails with Invalid.
func CheckRoom(caps capability.Set, taken []Occupant, c Occupant, now time.Time) error {
	return roomFor(caps, taken, c.ID, c.stay(caps), now)
}

// checkMoreRoom is CheckRoom for a code that changes its time frame. The code keeps the slot of its old time frame.
func checkMoreRoom(caps capability.Set, taken []Occupant, before, after Occupant, now time.Time) error {
	had, wants := before.stay(caps), after.stay(caps)
	earlier, later := wants, wants
	if earlier.until == nil || earlier.until.After(had.from) {
		earlier.until = &had.from
	}
	if err := roomFor(caps, taken, after.ID, earlier, now); err != nil || had.until == nil {
		return err
	}
	if later.from.Before(*had.until) {
		later.from = *had.until
	}
	return roomFor(caps, taken, after.ID, later, now)
}

// roomFor checks that a device has room for the code self throughout its occupancy. Codes that are being removed and
// codes of the backup pool do not count.
func roomFor(caps capability.Set, taken []Occupant, self uuid.UUID, wants stay, now time.Time) error {
	if caps.MaxCodes == 0 || len(taken) < caps.MaxCodes {
		return nil
	}
	if wants.from.Before(now) {
		wants.from = now
	}
	if wants.until != nil && !wants.until.After(wants.from) {
		return nil
	}
	type step struct {
		at time.Time
		by int
	}
	var steps []step
	on := 0
	for _, o := range taken {
		has := o.stay(caps)
		switch {
		case o.Removing, o.InPool, o.ID == self,
			has.until != nil && !has.until.After(wants.from), wants.until != nil && !has.from.Before(*wants.until):
			continue
		case has.from.After(wants.from):
			steps = append(steps, step{has.from, 1})
		default:
			on++
		}
		if has.until != nil {
			steps = append(steps, step{*has.until, -1})
		}
	}
	if on >= caps.MaxCodes {
		return noRoom(caps, wants.from, now)
	}
	// At the same moment, codes that leave come first and make room for codes that arrive.
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(a.at.Compare(b.at), a.by-b.by) })
	for _, s := range steps {
		if on += s.by; on >= caps.MaxCodes {
			return noRoom(caps, s.at, now)
		}
	}
	return nil
}

func noRoom(caps capability.Set, at, now time.Time) *domain.Error {
	e := &domain.Error{
		Kind:    domain.Invalid,
		Type:    domain.ErrNoSpace,
		Field:   "device_id",
		Message: fmt.Sprintf("The device holds at most %d codes. Delete one first.", caps.MaxCodes),
	}
	if at.After(now) {
		e.Message = fmt.Sprintf("The device holds at most %d codes, and at %s, within the time of this code, "+
			"it is full. Delete another code, or choose another time.",
			caps.MaxCodes, at.UTC().Format(time.RFC3339))
	}
	return e
}
