package access

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// hasFields reports whether a change names a field that the device stores, even with its current value.
func (ch CodeChange) hasFields() bool {
	return ch.Name != nil || ch.PIN != "" || ch.Type != "" || ch.StartsAt != "" || ch.EndsAt != ""
}

// isBlocked reports whether the device has refused the desired state of a code, so that the server does not retry.
func isBlocked(c dbsqlc.AccessCode) bool {
	return c.AppliedGen < c.DesiredGen && c.BlockedGen >= c.DesiredGen && !staysOff(c)
}

// staysOff reports whether a code was deleted at its device with permission and has not been changed since.
func staysOff(c dbsqlc.AccessCode) bool {
	return c.AppliedGen == 0 && c.BlockedGen >= c.DesiredGen && c.ErrorCode == nil &&
		TextOf(c.WarningCode) == warnExternal
}

// answerUnchanged answers a change without differences. Its attempt ends when the device has confirmed the desired
// state, or immediately if no write is pending.
func (s *Service) answerUnchanged(
	ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode, ch CodeChange,
) (a dbsqlc.ActionAttempt, err error) {
	if err := saveCode(ctx, tx, c); err != nil {
		return a, err
	}
	if !ch.hasFields() || c.AppliedGen >= c.DesiredGen || staysOff(c) || s.waits(d, c) {
		return s.doneAttempt(ctx, tx, c, UpdateAccessCode)
	}
	if a, err = s.newAttempt(ctx, tx, c, UpdateAccessCode, attemptOptions{}); err != nil {
		return a, err
	}
	return a, s.wakeDevice(ctx, tx, d.DeviceID, false)
}

// waits reports whether the only thing left for a code is to wait for its programming time.
func (s *Service) waits(d dbsqlc.Device, c dbsqlc.AccessCode) bool {
	when := programAt(c, capabilities(d))
	return d.RemovedAt == nil && c.VendorRef == nil && c.WriteGen == 0 && when != nil && when.After(s.opt.Now())
}
