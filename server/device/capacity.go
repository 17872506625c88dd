package device

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A device can have more scheduled codes than it holds, as long as they do not overlap: most stays are months ahead,
// and the server programs their codes shortly before.

// stay is the time in which a code occupies a slot of its device.
type stay struct {
	// from is zero for a code without a beginning.
	from time.Time
	// until is nil for a code without an end.
	until *time.Time
}

// stayOf returns the known time in which a code occupies a slot of its device.
func stayOf(c dbsqlc.AccessCode, caps capability.Set) stay {
	// Whether its vendor removes an unmanaged code at its end is unknown.
	if !c.IsManaged {
		return stay{}
	}
	s := stay{until: c.EndsAt}
	// A device with native schedules keeps a code whose time frame moves.
	stays := mayBeOnDevice(c) && nativeSchedule(c, caps)
	if when := programAt(c, caps); when != nil && !stays {
		s.from = *when
	}
	return s
}

// mayBeOnDevice reports whether a code is, or may be, on its device.
func mayBeOnDevice(c dbsqlc.AccessCode) bool { return c.VendorRef != nil || c.WriteGen > 0 }

// planned returns the fields of a code that determine its occupancy.
func planned(r dbsqlc.ListOccupiedPINsRow) dbsqlc.AccessCode {
	c := dbsqlc.AccessCode{
		AccessCodeID:           r.AccessCodeID,
		IsManaged:              r.IsManaged,
		StartsAt:               r.StartsAt,
		EndsAt:                 r.EndsAt,
		PreferNativeScheduling: r.PreferNativeScheduling,
		IsBackup:               r.IsBackup,
		OfflineKind:            r.OfflineKind,
	}
	if r.OnDevice {
		c.WriteGen = 1
	}
	return c
}

// checkRoom checks that a device has room for one more code. It fails with Invalid.
func checkRoom(caps capability.Set, taken []dbsqlc.ListOccupiedPINsRow, c dbsqlc.AccessCode, now time.Time) error {
	return roomFor(caps, taken, c.AccessCodeID, stayOf(c, caps), now)
}

// checkMoreRoom is checkRoom for a code that changes its time frame. The code keeps the slot of its old time frame.
func checkMoreRoom(
	caps capability.Set, taken []dbsqlc.ListOccupiedPINsRow, before, after dbsqlc.AccessCode, now time.Time,
) error {
	had, wants := stayOf(before, caps), stayOf(after, caps)
	earlier, later := wants, wants
	if earlier.until == nil || earlier.until.After(had.from) {
		earlier.until = &had.from
	}
	if err := roomFor(caps, taken, after.AccessCodeID, earlier, now); err != nil || had.until == nil {
		return err
	}
	if later.from.Before(*had.until) {
		later.from = *had.until
	}
	return roomFor(caps, taken, after.AccessCodeID, later, now)
}

// roomFor checks that a device has room for the code self throughout its occupancy. Codes that are being removed and
// codes of the backup pool do not count.
func roomFor(caps capability.Set, taken []dbsqlc.ListOccupiedPINsRow, self uuid.UUID, wants stay, now time.Time) error {
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
	for _, r := range taken {
		has := stayOf(planned(r), caps)
		switch {
		case r.Removing, r.InPool, r.AccessCodeID == self,
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
