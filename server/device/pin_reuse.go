package device

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Two codes of a device may have one PIN if their time frames are apart. The server programs the later one after the
// earlier one has left. So the later one must not be on the device before.

// frameOf returns the time frame after which the server removes a code from its device. It is unbounded for a code
// that can keep its PIN for all time: an offline, unmanaged, or pool code.
func frameOf(c dbsqlc.AccessCode) lockstate.Frame {
	if !c.IsManaged || c.InPool || offline(c) {
		return lockstate.Frame{}
	}
	return lockstate.Frame{StartsAt: c.StartsAt, EndsAt: c.EndsAt}
}

// inTurn reports whether a device can have two codes of one PIN one after the other.
func inTurn(a, b dbsqlc.AccessCode) bool {
	if !frameOf(a).Apart(frameOf(b)) {
		return false
	}
	later := a
	if a.StartsAt.Before(*b.StartsAt) {
		later = b
	}
	return !mayBeOnDevice(later)
}

// samePIN returns the codes other than c that have the PIN of c. It leaves out codes that are being removed and those
// of the backup pool, which leave before c is set.
func (s *Service) samePIN(taken []dbsqlc.ListOccupiedPINsRow, c dbsqlc.AccessCode) (out []dbsqlc.AccessCode) {
	for _, row := range taken {
		if row.AccessCodeID != c.AccessCodeID && !row.Removing && !row.InPool && len(c.PinMac) > 0 &&
			s.keys.Match(row.PinMac, c.PinMac) {
			out = append(out, planned(row))
		}
	}
	return out
}

// inTurnWith returns the rows without the codes that a device cannot have in turn with c. Those are in the way of c
// already, so a change of its time frame must not fail because of them.
func inTurnWith(taken []dbsqlc.ListOccupiedPINsRow, c dbsqlc.AccessCode) []dbsqlc.ListOccupiedPINsRow {
	return slices.DeleteFunc(slices.Clone(taken), func(row dbsqlc.ListOccupiedPINsRow) bool {
		return !inTurn(planned(row), c)
	})
}

// checkFree fails with Conflict (duplicate_access_code) where another code has the PIN of c, and the device cannot have
// them in turn.
func (s *Service) checkFree(taken []dbsqlc.ListOccupiedPINsRow, c dbsqlc.AccessCode) error {
	same := s.samePIN(taken, c)
	i := slices.IndexFunc(same, func(other dbsqlc.AccessCode) bool { return !inTurn(other, c) })
	if i < 0 {
		return nil
	}
	other := same[i]
	if !other.IsManaged {
		return duplicatePIN(other, fmt.Sprintf(
			"The device already has this code: unmanaged access code %s. Convert that one, delete it, or "+
				"choose another code.", other.AccessCodeID))
	}
	reason, advice := "", "Choose another code."
	if frameOf(other).Apart(frameOf(c)) {
		reason = " That one is on the lock already."
		if other.StartsAt.Before(*c.StartsAt) {
			reason = " The code to change is on the lock already, so it cannot wait for that one."
		}
	}
	if next := nextFreeStart(same, c); next != nil {
		advice = "Choose another code, or another time: the next free start is " + next.Format(time.RFC3339) + "."
	}
	return duplicatePIN(other, fmt.Sprintf(
		"The device already has this code: managed access code %s%s.%s %s",
		other.AccessCodeID, whenOnDevice(other), reason, advice))
}

// duplicatePIN returns the error of a PIN that another code has.
func duplicatePIN(other dbsqlc.AccessCode, message string) *domain.Error {
	id := "unmanaged_access_code_id"
	if other.IsManaged {
		id = "managed_access_code_id"
	}
	return &domain.Error{
		Kind:    domain.Conflict,
		Type:    "duplicate_access_code",
		Field:   "code",
		Message: message,
		Data:    map[string]any{id: other.AccessCodeID},
	}
}

// whenOnDevice says when a managed code is on its device, as the rest of a sentence that names the code.
func whenOnDevice(c dbsqlc.AccessCode) string {
	switch {
	case offline(c):
		return ", an offline code"
	case c.StartsAt == nil && c.EndsAt == nil:
		return ", which is ongoing"
	case c.EndsAt == nil:
		return " from " + c.StartsAt.UTC().Format(time.RFC3339)
	case c.StartsAt == nil:
		return " until " + c.EndsAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf(" from %s to %s", c.StartsAt.UTC().Format(time.RFC3339), c.EndsAt.UTC().Format(time.RFC3339))
}

// nextFreeStart returns the earliest later start, in full seconds, at which the device can have c with its duration in
// turn with the codes of the same PIN. It is nil if there is none.
func nextFreeStart(same []dbsqlc.AccessCode, c dbsqlc.AccessCode) *time.Time {
	if !frameOf(c).IsBounded() || mayBeOnDevice(c) {
		return nil
	}
	for _, other := range same {
		if !frameOf(other).IsBounded() {
			return nil
		}
	}
	slices.SortFunc(same, func(a, b dbsqlc.AccessCode) int {
		return cmp.Or(a.EndsAt.Compare(*b.EndsAt), a.StartsAt.Compare(*b.StartsAt))
	})
	lasts := c.EndsAt.Sub(*c.StartsAt)
	for _, other := range same {
		if !inTurn(other, c) {
			start := other.EndsAt.Add(lockstate.PINReuseMargin + time.Second - 1).UTC().Truncate(time.Second)
			c.StartsAt, c.EndsAt = &start, new(start.Add(lasts))
		}
	}
	return c.StartsAt
}

// waitsForEarlier reports whether another code takes its turn before the new code c.
func (s *Service) waitsForEarlier(taken []dbsqlc.ListOccupiedPINsRow, c dbsqlc.AccessCode) bool {
	return slices.ContainsFunc(s.samePIN(taken, c), func(other dbsqlc.AccessCode) bool {
		return inTurn(other, c) && other.StartsAt.Before(*c.StartsAt)
	})
}

// isWanted reports whether another managed code has the PIN of a pool code, which must leave for it.
func (s *Service) isWanted(codes []dbsqlc.AccessCode, pool dbsqlc.AccessCode) bool {
	return slices.ContainsFunc(codes, func(c dbsqlc.AccessCode) bool {
		return c.IsManaged && !c.InPool && c.RemovingSince == nil && s.keys.Match(c.PinMac, pool.PinMac)
	})
}

// checkNextStay fails with Conflict where another code takes its turn after c, which is about to become unmanaged. The
// server does not remove an unmanaged code at its end.
func (s *Service) checkNextStay(taken []dbsqlc.ListOccupiedPINsRow, c dbsqlc.AccessCode) error {
	for _, next := range s.samePIN(inTurnWith(taken, c), c) {
		return duplicatePIN(next, fmt.Sprintf(
			"Managed access code %s has the same code%s, but an unmanaged code stays on the lock after its end. "+
				"Change or delete that one first.", next.AccessCodeID, whenOnDevice(next)))
	}
	return nil
}
