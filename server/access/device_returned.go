package access

import (
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A device that leaves its account may lose its codes until it is back, so that nothing counts as confirmed from then on (deviceGone).

// asItWas takes a code that is on a device that has come back, and is not as it is wanted, for what the device had confirmed before,
// where that is what it shows. It says whether that was so.
func (r *reading) asItWas(c *dbsqlc.AccessCode, f Found) (bool, error) {
	mayBeOff := f.Disabled && c.ExternalModificationAllowed && text(c.WarningMessage) == disabledAllowed
	blocked := c.BlockedGen >= c.DesiredGen
	if c.AppliedGen > 0 || c.WriteGen > 0 || !f.Confirmed || f.Removing || f.Failure != nil || f.PIN == "" && !blocked && !mayBeOff {
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
	was.PinMac, was.StartsAt, was.EndsAt = r.mac(text(has.PIN)), has.StartsAt, has.EndsAt
	if mayBeOff {
		f.Disabled = false
	}
	if len(has.changes(wanted)) > 0 {
		gen--
	} else if !mayBeOff { // it is as it is wanted, or disabled
		return false, nil
	}
	if gen == 0 || !r.same(&was, f) {
		return false, nil
	}
	c.AppliedGen, c.AppliedAt = gen, &r.now
	if blocked || gen == c.DesiredGen {
		return true, r.stand(c)
	}
	return true, nil
}
