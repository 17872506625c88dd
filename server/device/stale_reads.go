package device

import (
	"cmp"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A read may be stale or incomplete: it may show the state before the last write, or omit codes of the device.

// renamed reports whether the shown name of a code differs from the last confirmed one, or need not differ. Devices may
// change names or keep none, but a code with the old name has not been written.
func (r *reading) renamed(c *dbsqlc.AccessCode, f Found) (bool, error) {
	sent := domain.Value(cmp.Or(c.VendorName, c.Name))
	if f.Name == "" || f.Name == sent || c.AppliedGen == 0 || c.WriteGen == 0 {
		return true, nil
	}
	has, err := r.s.appliedOf(*c)
	return has == nil || f.Name != has.vendorName(), err
}

// mayReappear reports whether a code that must leave and is not shown may still be on the device: a stale list omits
// codes on their way, and a truncated one omits existing codes. A removal is safer evidence and harmless if the code
// has left. The list is believed after repeated failures of the removal.
func (r *reading) mayReappear(c *dbsqlc.AccessCode) bool {
	switch {
	case !c.WriteAccepted:
		unsent := !sent(c) || c.IsManaged && c.AppliedGen == 0
		// Without a subscription, no removal can be sent.
		tried := int(c.Attempts) >= failureThreshold || r.d.SubscriptionMissingAt != nil
		return unsent && !tried || r.staleRead(c) || r.maybeLate(c)
	case !c.IsManaged || c.AppliedGen > 0 || c.WriteAt == nil || !c.WriteAt.Add(r.s.opt.ReadLag).After(r.now):
		return false
	}
	r.again = earlier(r.again, c.WriteAt.Add(r.s.opt.ReadLag))
	return true
}

// maybeLate reports whether a never confirmed code that must leave was sent so recently that it may still arrive.
func (r *reading) maybeLate(c *dbsqlc.AccessCode) bool {
	if !c.IsManaged || c.AppliedGen > 0 {
		return false
	}
	since := c.DesiredAt
	for _, at := range []*time.Time{c.RemovingSince, c.WriteAt} {
		if at != nil && at.After(since) {
			since = *at
		}
	}
	until := since.Add(r.s.opt.ConfirmTimeout + r.s.opt.ReadLag)
	if !until.After(r.now) {
		return false
	}
	r.again = earlier(r.again, until)
	return true
}
