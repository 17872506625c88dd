package access

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Many more codes may be wanted on a device than it holds, where they are not there at once: most stays are months ahead, and
// their codes are put there shortly before.

// stay is the time that a code is on its device; until is nil where that has no end.
type stay struct {
	from  time.Time // zero: since ever
	until *time.Time
}

// stayOf is when a code is to be on its device, as far as that is known.
func stayOf(c dbsqlc.AccessCode, caps Capabilities) stay {
	if !c.IsManaged { // whether its vendor takes it off when its time is over nobody knows
		return stay{}
	}
	s := stay{until: c.EndsAt}
	stays := mayBeThere(c) && nativeSchedule(c, caps) // wherever its time frame is moved to
	if when := programAt(c, caps); when != nil && !stays {
		s.from = *when
	}
	return s
}

// mayBeThere says whether a code is on its device, or may be.
func mayBeThere(c dbsqlc.AccessCode) bool { return c.VendorRef != nil || c.WriteGen > 0 }

// planned is what of a code on a device tells when it is there.
func planned(r dbsqlc.TakenOnDeviceRow) dbsqlc.AccessCode {
	c := dbsqlc.AccessCode{AccessCodeID: r.AccessCodeID, IsManaged: r.IsManaged, StartsAt: r.StartsAt, EndsAt: r.EndsAt,
		PreferNativeScheduling: r.PreferNativeScheduling, IsBackup: r.IsBackup, OfflineKind: r.OfflineKind}
	if r.There {
		c.WriteGen = 1
	}
	return c
}

// checkRoom says why a device has no room for one more code. It fails with Invalid.
func checkRoom(caps Capabilities, taken []dbsqlc.TakenOnDeviceRow, c dbsqlc.AccessCode, now time.Time) error {
	return roomFor(caps, taken, c.AccessCodeID, stayOf(c, caps), now)
}

// checkMoreRoom is checkRoom for a code that gets another time frame: what it had before it keeps.
func checkMoreRoom(caps Capabilities, taken []dbsqlc.TakenOnDeviceRow, before, after dbsqlc.AccessCode, now time.Time) error {
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

// roomFor says why a device has no room for the code self while it is to be there. Those on their way off make room, and those
// of the backup pool give way.
func roomFor(caps Capabilities, taken []dbsqlc.TakenOnDeviceRow, self uuid.UUID, wants stay, now time.Time) error {
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
		case r.Leaving, r.InPool, r.AccessCodeID == self,
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
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(a.at.Compare(b.at), a.by-b.by) }) // who leaves makes room for who comes
	for _, s := range steps {
		if on += s.by; on >= caps.MaxCodes {
			return noRoom(caps, s.at, now)
		}
	}
	return nil
}

func noRoom(caps Capabilities, at, now time.Time) *Error {
	e := &Error{Kind: Invalid, Type: errNoSpace, Field: "device_id", Message: fmt.Sprintf("The device holds %d codes and no more. Delete one first.", caps.MaxCodes)}
	if at.After(now) {
		e.Message = fmt.Sprintf("The device holds %d codes and no more, and at %s, when this one is to be on it, it is full with others. Delete one of them, or choose another time.",
			caps.MaxCodes, at.UTC().Format(time.RFC3339))
	}
	return e
}
