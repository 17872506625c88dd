package access

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// What a device shows may be older than what was sent to it last, or leave out what is there.

// renamed says whether a code does not show, or need not, the name that the device had confirmed before it was given another: devices
// may change names, or keep none, but what shows the old one has not been written.
func (r *reading) renamed(c *dbsqlc.AccessCode, f Found) (bool, error) {
	if f.Name == "" || f.Name == text(c.Name) || c.AppliedGen == 0 || c.WriteGen == 0 {
		return true, nil
	}
	has, err := r.s.appliedOf(*c)
	return has == nil || f.Name != text(has.Name), err
}

// comes says whether a code that is to leave and is not shown may yet come: a list that lags can show it as
// neither on its way nor there, and one that is cut short does not show what is there. Taking it away is the surer way to know, which
// does no harm where it has left; a list is believed where that has failed again and again.
func (r *reading) comes(c *dbsqlc.AccessCode) bool {
	switch {
	case !c.WriteAccepted:
		unsent := !sent(c) || c.IsManaged && c.AppliedGen == 0
		tried := int(c.Attempts) >= patience || r.d.SubscriptionMissingAt != nil // without that nothing is sent
		return unsent && !tried || r.lags(c) || r.unborn(c)
	case !c.IsManaged || c.AppliedGen > 0 || c.WriteAt == nil || !c.WriteAt.Add(r.s.opt.ListLag).After(r.now):
		return false
	}
	r.again = earlier(r.again, c.WriteAt.Add(r.s.opt.ListLag))
	return true
}

// unborn says whether a code that is to leave, and was never confirmed, was sent so short a time ago that it may arrive yet.
func (r *reading) unborn(c *dbsqlc.AccessCode) bool {
	if !c.IsManaged || c.AppliedGen > 0 {
		return false
	}
	since := c.DesiredAt // nothing was sent after that
	for _, at := range []*time.Time{c.RemovingSince, c.WriteAt} {
		if at != nil && at.After(since) {
			since = *at
		}
	}
	until := since.Add(r.s.opt.ConfirmTimeout + r.s.opt.ListLag)
	if !until.After(r.now) {
		return false
	}
	r.again = earlier(r.again, until)
	return true
}
