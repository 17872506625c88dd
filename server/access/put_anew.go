package access

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/store"

// Where a vendor changes no code in place (Capabilities.PutAnew), a code that is to become another leaves its device first,
// as one that steps aside does, and is then put there as a new one. Until its removal has begun it is read as any other:
// a list that does not show it for a moment says nothing else than at other devices.

// putsAnew says whether a code is to leave its device in order to be put there as it is to be. One that is being put so
// already is waited for, also where the answer to that was lost; and one whose PIN is to be had from another, for that.
func (t *deviceTx) putsAnew(c *store.AccessCode) bool {
	if !t.caps.PutAnew || c.VendorRef == nil || c.RemovingSince != nil || offline(*c) || !changes(c) {
		return false
	}
	underWay := c.WriteGen >= c.DesiredGen && (c.WriteAccepted || t.onItsWay(c))
	return !underWay && t.holder(c) == nil
}

// retryAnew has a change made that was refused before it was known that the vendor makes none in place.
func (t *deviceTx) retryAnew(c *store.AccessCode) {
	if t.caps.PutAnew && c.VendorRef != nil && c.BlockedGen >= c.DesiredGen && c.AppliedGen > 0 && text(c.ErrorCode) == errFailedToUpd {
		c.BlockedGen, c.Status = 0, string(StatusSetting)
	}
}
