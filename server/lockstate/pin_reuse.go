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

// startsBefore reports whether a code with a start starts before another one.
func (o Occupant) startsBefore(other Occupant) bool { return o.StartsAt.Before(*other.StartsAt) }

// inTurn reports whether a device can have two codes of one PIN one after the other.
func inTurn(a, b Occupant) bool {
	if !a.frame().Apart(b.frame()) {
		return false
	}
	if a.startsBefore(b) {
		return !b.OnDevice
	}
	return !a.OnDevice
}

// samePIN returns the codes other than c that have the PIN of c. It leaves out codes that are being removed and those
// of the backup pool, which leave before c is set.
func samePIN(taken []Occupant, c Occupant) (out []Occupant) {
	for _, o := range taken {
		if o.ID != c.ID && !o.Removing && !o.InPool && c.PIN != "" && o.PIN == c.PIN {
			out = append(out, o)
		}
	}
	return out
}

// inTurnWith returns the codes without those that a device cannot have in turn with c. Those are in the way of c
// already, so a change of its time frame must not fail because of them.
func inTurnWith(taken []Occupant, c Occupant) []Occupant {
	return slices.DeleteFunc(slices.Clone(taken), func(o Occupant) bool { return !inTurn(o, c) })
}

// CheckPIN fails with Conflict (duplicate_access_code) where another code of a device has the PIN of c, and the device
// cannot have them in turn.
func CheckPIN(taken []Occupant, c Occupant) error {
	same := samePIN(taken, c)
	i := slices.IndexFunc(same, func(other Occupant) bool { return !inTurn(other, c) })
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
	if other.frame().Apart(c.frame()) {
		reason = " That one is on the lock already."
		if other.startsBefore(c) {
			reason = " The code to change is on the lock already, so it cannot wait for that one."
		}
	}
	if next := nextFreeStart(same, c); next != nil {
		advice = "Choose another code, or another time: the next free start is " + next.Format(time.RFC3339) + "."
	}
	return duplicatePIN(other, fmt.Sprintf(
		"The device already has this code: managed access code %s%s.%s %s",
		other.ID, other.when(), reason, advice))
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

// when says when a managed code is on its device, as the rest of a sentence that names the code.
func (o Occupant) when() string {
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
	unbounded := func(o Occupant) bool { return !o.frame().IsBounded() }
	if unbounded(c) || c.OnDevice || slices.ContainsFunc(same, unbounded) {
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

// WaitsForEarlier reports whether another code takes its turn before the new code c.
func WaitsForEarlier(taken []Occupant, c Occupant) bool {
	return slices.ContainsFunc(samePIN(taken, c), func(other Occupant) bool {
		return inTurn(other, c) && other.startsBefore(c)
	})
}

// checkNextStay fails with Conflict where another code takes its turn after c, which is about to become unmanaged. The
// server does not remove an unmanaged code at its end.
func checkNextStay(taken []Occupant, c Occupant) error {
	for _, next := range samePIN(inTurnWith(taken, c), c) {
		return duplicatePIN(next, fmt.Sprintf(
			"Managed access code %s has the same code%s, but an unmanaged code stays on the lock after its end. "+
				"Change or delete that one first.", next.ID, next.when()))
	}
	return nil
}

// waitsForTurn reports whether an earlier code of the same PIN has not left.
func (l *Lock) waitsForTurn(c *Code) bool { return l.earlierOfPIN(c) != nil }

// earlierOfPIN returns an earlier code of the same PIN, nil if all have left. A code that may be on the device stays in
// the list until its removal is confirmed.
func (l *Lock) earlierOfPIN(c *Code) *Code {
	if c.PIN == "" || c.StartsAt == nil || c.EndsAt == nil {
		return nil
	}
	mine := c.Occupant()
	for _, other := range l.Codes {
		if other == c || other.PIN != c.PIN && other.pinOnDevice() != c.PIN {
			continue
		}
		if theirs := other.Occupant(); theirs.frame().Apart(mine.frame()) && theirs.startsBefore(mine) {
			return other
		}
	}
	return nil
}
