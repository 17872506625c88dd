package lockstate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Two codes of a device may have one PIN if their time frames are apart. The server programs the later one after the
// earlier one has left. So the later one must not be on the device before.

// frame returns the time frame after which the server removes a code from its device. It is unbounded for a code that
// can keep its PIN for all time: an offline, unmanaged, or pool code.
func (o Occupant) frame() Frame {
	if !o.Managed || o.InPool || o.Offline {
		return Frame{}
	}
	return Frame{StartsAt: o.StartsAt, EndsAt: o.EndsAt}
}

// isBefore reports whether o takes its turn before other.
func (o Occupant) isBefore(other Occupant) bool {
	return o.frame().Apart(other.frame()) && o.StartsAt.Before(*other.StartsAt)
}

// inTurn reports whether a device can have two codes of one PIN one after the other.
func inTurn(a, b Occupant) bool { return a.isBefore(b) && !b.OnDevice || b.isBefore(a) && !a.OnDevice }

// samePIN returns the codes other than c that have the PIN of c. It leaves out codes that are being removed and those
// of the backup pool, which leave before c is set.
func samePIN(taken []Occupant, c Occupant) (out []Occupant) {
	for _, o := range taken {
		if o.ID != c.ID && !o.Removing && !o.InPool && o.PIN != "" && o.PIN == c.PIN {
			out = append(out, o)
		}
	}
	return out
}

// inTurnWith returns the codes that a device can have in turn with c. The others are in the way of c already, so a
// change of its time frame must not fail because of them.
func inTurnWith(taken []Occupant, c Occupant) (out []Occupant) {
	for _, o := range taken {
		if inTurn(o, c) {
			out = append(out, o)
		}
	}
	return out
}

// waitsForEarlier reports whether another code takes its turn with the PIN of c before c.
func waitsForEarlier(taken []Occupant, c Occupant) bool {
	return slices.ContainsFunc(taken, func(o Occupant) bool {
		return o.ID != c.ID && o.PIN != "" && o.PIN == c.PIN && o.isBefore(c)
	})
}

// waitsForTurn reports whether an earlier code of the same PIN has not left. A code that may be on the device stays in
// Codes until its removal is confirmed.
func (l *Lock) waitsForTurn(c *Code) bool {
	own := c.Occupant()
	return slices.ContainsFunc(l.Codes, func(other *Code) bool {
		return other != c && c.PIN != "" && (other.PIN == c.PIN || other.pinOnDevice() == c.PIN) &&
			other.Occupant().isBefore(own)
	})
}

// CheckPIN checks that no other code of a device has the PIN of a code, or that the device can have them in turn. It
// fails with Conflict.
func CheckPIN(taken []Occupant, c Occupant) error {
	same := samePIN(taken, c)
	i := slices.IndexFunc(same, func(o Occupant) bool { return !inTurn(o, c) })
	if i < 0 {
		return nil
	}
	other := same[i]
	if !other.Managed {
		return duplicatePIN(other, fmt.Sprintf(
			"The device already has this code: unmanaged access code %s. Convert that one, delete it, or "+
				"choose another code.", other.ID))
	}
	reason, advice := "", "Choose another code."
	switch {
	case c.isBefore(other):
		reason = " That one is on the lock already."
	case other.isBefore(c):
		reason = " The code to change is on the lock already, so it cannot wait for that one."
	}
	if next := nextFreeStart(same, c); next != nil {
		advice = "Choose another code, or another time: the next free start is " + next.Format(time.RFC3339) + "."
	}
	return duplicatePIN(other, fmt.Sprintf(
		"The device already has this code: managed access code %s%s.%s %s", other.ID, other.times(), reason, advice))
}

// duplicatePIN returns the error of a PIN that another code has.
func duplicatePIN(other Occupant, message string) *domain.Error {
	id := "unmanaged_access_code_id"
	if other.Managed {
		id = "managed_access_code_id"
	}
	return &domain.Error{
		Kind:    domain.Conflict,
		Type:    "duplicate_access_code",
		Field:   "code",
		Message: message,
		Data:    map[string]any{id: other.ID},
	}
}

// times says when a managed code is on its device, as the rest of a sentence that names the code.
func (o Occupant) times() string {
	switch {
	case o.Offline:
		return ", an offline code"
	case o.StartsAt == nil && o.EndsAt == nil:
		return ", which is ongoing"
	case o.EndsAt == nil:
		return " from " + o.StartsAt.UTC().Format(time.RFC3339)
	case o.StartsAt == nil:
		return " until " + o.EndsAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf(" from %s to %s", o.StartsAt.UTC().Format(time.RFC3339), o.EndsAt.UTC().Format(time.RFC3339))
}

// nextFreeStart returns the earliest later start, in full seconds, at which the device can have c with its duration in
// turn with the codes of the same PIN. It is nil if there is none.
func nextFreeStart(same []Occupant, c Occupant) *time.Time {
	isUnbounded := func(o Occupant) bool { return !o.frame().IsBounded() }
	if isUnbounded(c) || c.OnDevice || slices.ContainsFunc(same, isUnbounded) {
		return nil
	}
	slices.SortFunc(same, func(a, b Occupant) int {
		return cmp.Or(a.EndsAt.Compare(*b.EndsAt), a.StartsAt.Compare(*b.StartsAt))
	})
	lasts := c.EndsAt.Sub(*c.StartsAt)
	for _, other := range same {
		if !inTurn(other, c) {
			start := other.EndsAt.Add(PINReuseMargin + time.Second - 1).UTC().Truncate(time.Second)
			c.StartsAt, c.EndsAt = &start, new(start.Add(lasts))
		}
	}
	return c.StartsAt
}

// checkNextStay checks that no other code takes its turn with the PIN of c, which is about to become unmanaged. The
// server does not remove an unmanaged code at its end. It fails with Conflict.
func checkNextStay(taken []Occupant, c Occupant) error {
	for _, next := range samePIN(inTurnWith(taken, c), c) {
		return duplicatePIN(next, fmt.Sprintf(
			"Managed access code %s has the same code%s, but an unmanaged code stays on the lock after its end. "+
				"Change or delete that one first.", next.ID, next.times()))
	}
	return nil
}
