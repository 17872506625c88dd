package access

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// asks says whether a change names something that the device keeps, be it as it is.
func (ch CodeChange) asks() bool {
	return ch.Name != nil || ch.PIN != "" || ch.Type != "" || ch.StartsAt != "" || ch.EndsAt != ""
}

// refused says whether the device has refused what is wanted of a code, so that it is not tried any more.
func refused(c dbsqlc.AccessCode) bool {
	return c.AppliedGen < c.DesiredGen && c.BlockedGen >= c.DesiredGen && !staysOff(c)
}

// staysOff says whether a code was deleted at its device, which is allowed, and has not been changed since.
func staysOff(c dbsqlc.AccessCode) bool {
	return c.AppliedGen == 0 && c.BlockedGen >= c.DesiredGen && c.ErrorCode == nil && text(c.WarningCode) == warnExternal
}

// repeat answers a change that changes nothing. Its attempt ends as those do that wait for the device to take what is
// wanted already; at once where none would wait.
func (s *Service) repeat(ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode, ch CodeChange) (a dbsqlc.ActionAttempt, err error) {
	if err := save(ctx, tx, c); err != nil {
		return a, err
	}
	if !ch.asks() || c.AppliedGen >= c.DesiredGen || staysOff(c) || s.waits(d, c) {
		return s.doneAttempt(ctx, tx, c, UpdateAccessCode)
	}
	if a, err = s.newAttempt(ctx, tx, c, UpdateAccessCode, attemptOptions{}); err != nil {
		return a, err
	}
	return a, s.wakeDevice(ctx, tx, d.DeviceID, false)
}

// waits says whether nothing is to be done about a code but to wait for its time.
func (s *Service) waits(d dbsqlc.Device, c dbsqlc.AccessCode) bool {
	when := programAt(c, capabilities(d))
	return d.RemovedAt == nil && c.VendorRef == nil && c.WriteGen == 0 && when != nil && when.After(s.opt.Now())
}
