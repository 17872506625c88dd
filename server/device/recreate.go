package device

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Some vendors cannot change a code in place (RecreateToChange). To change such a code, the server removes
// it temporarily, as in a PIN swap, and recreates it. Until its removal has started, reads treat it as any other code.

// needsRecreate reports whether a code must leave its device to be recreated in its desired state. It does not after
// the new state was sent, however long the vendor takes: another write would only join the same queue. It does not
// while another code has the PIN. A code with an unknown PIN cannot be recreated: its change is refused.
func (t *deviceTx) needsRecreate(c *dbsqlc.AccessCode) bool {
	if !t.caps.RecreateToChange() || c.VendorRef == nil || c.RemovingSince != nil || offline(*c) ||
		!hasPendingChange(c) {
		return false
	}
	lost := c.PinMac == nil && !t.caps.ProviderPIN
	return !lost && c.WriteGen < c.DesiredGen && t.holderOfPIN(c) == nil
}

// skipRecreate records a change as applied if it does not affect the device, because the device keeps no
// time frames, or gets the same shortened name.
// This avoids a needless removal. A code that was pulled from the pool stays, too, and is removed when its time ends.
func (t *deviceTx) skipRecreate(ctx context.Context, c *dbsqlc.AccessCode) error {
	if !t.needsRecreate(c) || c.AppliedGen == 0 || c.WriteGen > 0 || c.WriteAt != nil {
		return nil
	}
	has, err := t.s.appliedOf(*c)
	if err != nil || has == nil {
		return err
	}
	name, err := t.vendorName(c)
	if err != nil || has.vendorName() != name {
		return err
	}
	wanted, err := t.s.stateOf(*c)
	if err != nil || domain.Value(has.PIN) != domain.Value(wanted.PIN) {
		return err
	}
	framed := sameTime(has.StartsAt, wanted.StartsAt) && sameTime(has.EndsAt, wanted.EndsAt)
	if !framed && nativeSchedule(*c, t.caps) {
		return nil
	}
	return t.recordApplied(ctx, c, c.DesiredGen)
}

// retryByRecreate retries a change that was refused while RecreateToChange was unknown.
func (t *deviceTx) retryByRecreate(c *dbsqlc.AccessCode) {
	if t.caps.RecreateToChange() && c.VendorRef != nil && c.BlockedGen >= c.DesiredGen && c.AppliedGen > 0 &&
		domain.Value(c.ErrorCode) == domain.ErrFailedToUpdate {
		c.BlockedGen, c.Status = 0, string(StatusSetting)
	}
}

const neverConfirmedMessage = "The vendor accepted the code and has not confirmed it, and the codes of this lock cannot be read: " +
	"it is unknown whether the code opens. Update the code to remove and recreate it, or delete it."

// neverConfirmed reports whether the vendor accepted a code but never confirmed it, on a device that lists no codes.
// Repeated recreation would remove a code that may open, and waiting would never end.
func (t *deviceTx) neverConfirmed(c *dbsqlc.AccessCode) bool {
	if t.caps.ListCodes || !t.caps.RecreateToChange() || !c.IsManaged || c.VendorRef == nil || t.leaving(c) {
		return false
	}
	return c.WriteGen > 0 && c.WriteGen >= c.DesiredGen && !t.onItsWay(c)
}
