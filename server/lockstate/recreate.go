package lockstate

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"

// Some vendors cannot change a code in place (RecreateToChange). To change such a code, the server removes
// it temporarily, as in a PIN swap, and recreates it. Until its removal has started, reads treat it as any other code.

// needsRecreate reports whether a code must leave its device to be recreated in its desired state. It does not after
// the new state was sent, however long the vendor takes: another write would only join the same queue. It does not
// while another code has the PIN. A code with an unknown PIN cannot be recreated: its change is refused.
func (l *Lock) needsRecreate(c *Code) bool {
	if !l.caps().RecreateToChange() || c.Ref == "" || c.RemovingSince != nil || c.Offline != "" ||
		!c.hasPendingChange() {
		return false
	}
	lost := c.PIN == "" && !l.caps().ProviderPIN
	return !lost && c.WriteGen < c.DesiredGen && l.pinHolder(c) == nil
}

// skipRecreate records a change as applied if it does not affect the device, because the device keeps no
// time frames, or gets the same shortened name.
// This avoids a needless removal. A code that was pulled from the pool stays, too, and is removed when its time ends.
func (l *Lock) skipRecreate(c *Code) {
	if !l.needsRecreate(c) || c.AppliedGen == 0 || c.WriteGen > 0 || c.WriteAt != nil || c.Applied == nil {
		return
	}
	has := *c.Applied
	if has.vendorName() != l.vendorName(c) || has.PIN != c.PIN {
		return
	}
	framed := sameTime(has.StartsAt, c.StartsAt) && sameTime(has.EndsAt, c.EndsAt)
	if framed || !NativeSchedule(c, l.caps()) {
		at := c.AppliedAt // nothing was written since
		l.recordApplied(c, c.DesiredGen, nil)
		c.AppliedAt = at
	}
}

// retryByRecreate retries a change that was refused while RecreateToChange was unknown.
func (l *Lock) retryByRecreate(c *Code) {
	if l.caps().RecreateToChange() && c.Ref != "" && c.BlockedGen >= c.DesiredGen && c.AppliedGen > 0 &&
		c.hasError(domain.ErrFailedToUpdate) {
		c.BlockedGen, c.Status = 0, StatusSetting
	}
}

const neverConfirmedMessage = "The vendor accepted the code and has not confirmed it, and the codes of this lock " +
	"cannot be read: it is unknown whether the code opens. Update the code to remove and recreate it, or delete it."

// neverConfirmed reports whether the vendor accepted a code but never confirmed it, on a device that lists no codes.
// Repeated recreation would remove a code that may open, and waiting would never end.
func (l *Lock) neverConfirmed(c *Code) bool {
	if l.caps().ListCodes || !l.caps().RecreateToChange() || !c.Managed || c.Ref == "" || l.leaving(c) {
		return false
	}
	return c.WriteGen > 0 && c.WriteGen >= c.DesiredGen && !l.onItsWay(c)
}
