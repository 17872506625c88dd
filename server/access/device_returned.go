package access

import (
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A device may lose its codes while it is out of its account, so its removal resets their confirmed state
// (onDeviceRemoved).

// restoreApplied restores the confirmed state of a code on a returned device if the observed state still equals it and
// differs from the desired state. It reports whether it did.
func (r *reading) restoreApplied(c *dbsqlc.AccessCode, f Found) (bool, error) {
	mayBeOff := f.Disabled && c.ExternalModificationAllowed && TextOf(c.WarningMessage) == disabledAllowed
	blocked := c.BlockedGen >= c.DesiredGen
	if c.AppliedGen > 0 || c.WriteGen > 0 || !f.Confirmed || f.Removing || f.Failure != nil ||
		f.PIN == "" && !blocked && !mayBeOff {
		return false, nil
	}
	has, err := r.s.appliedOf(*c)
	if err != nil || has == nil {
		return false, err
	}
	wanted, err := r.s.stateOf(*c)
	if err != nil {
		return false, err
	}
	was, gen := *c, c.DesiredGen
	was.PinMac, was.StartsAt, was.EndsAt = r.mac(TextOf(has.PIN)), has.StartsAt, has.EndsAt
	if mayBeOff {
		f.Disabled = false
	}
	if len(has.changes(wanted)) > 0 {
		gen--
	} else if !mayBeOff { // equal to the desired state, or disabled
		return false, nil
	}
	if gen == 0 || !r.same(&was, f) {
		return false, nil
	}
	c.AppliedGen, c.AppliedAt = gen, &r.now
	if blocked || gen == c.DesiredGen {
		return true, r.setFallbackStatus(c)
	}
	return true, nil
}
