package access

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Where a vendor changes no code in place (Capabilities.PutAnew), a code that is to become another leaves its device first,
// as one that steps aside does, and is then put there as a new one. Until its removal has begun it is read as any other:
// a list that does not show it for a moment says nothing else than at other devices.

// putsAnew says whether a code is to leave its device in order to be put there as it is to be. One that the vendor has been given so
// already is waited for, however long that takes: it would be put at the end of the same line again. So is one whose PIN is to be had
// from another. One whose PIN nobody knows could not be put again: its change is refused.
func (t *deviceTx) putsAnew(c *dbsqlc.AccessCode) bool {
	if !t.caps.PutAnew || c.VendorRef == nil || c.RemovingSince != nil || offline(*c) || !changes(c) {
		return false
	}
	lost := c.PinMac == nil && !t.caps.ProviderPIN
	return !lost && c.WriteGen < c.DesiredGen && t.holder(c) == nil
}

// keepAsItIs has a change count as made where the device has the code so already, as it keeps no time frames: it would leave the
// door for nothing. A code that was pulled from the pool stays, too, and is taken off when its time ends.
func (t *deviceTx) keepAsItIs(ctx context.Context, c *dbsqlc.AccessCode) error {
	if !t.putsAnew(c) || c.AppliedGen == 0 || c.WriteGen > 0 || c.WriteAt != nil {
		return nil
	}
	has, err := t.s.appliedOf(*c)
	if err != nil || has == nil {
		return err
	}
	wanted, err := t.s.stateOf(*c)
	if err != nil || text(has.Name) != text(wanted.Name) || text(has.PIN) != text(wanted.PIN) {
		return err
	}
	framed := sameTime(has.StartsAt, wanted.StartsAt) && sameTime(has.EndsAt, wanted.EndsAt)
	if !framed && nativeSchedule(*c, t.caps) {
		return nil
	}
	return t.applied(ctx, c, c.DesiredGen)
}

// retryAnew has a change made that was refused before it was known that the vendor makes none in place.
func (t *deviceTx) retryAnew(c *dbsqlc.AccessCode) {
	if t.caps.PutAnew && c.VendorRef != nil && c.BlockedGen >= c.DesiredGen && c.AppliedGen > 0 && text(c.ErrorCode) == errFailedToUpd {
		c.BlockedGen, c.Status = 0, string(StatusSetting)
	}
}

const unheardOf = "The vendor took the code and has not confirmed it, and the codes of this lock cannot be read: nobody knows whether it opens. " +
	"Ask for it once more to have it taken off and put there again, or delete it."

// unheard says whether a code was taken by its vendor without ever being confirmed, on a device that shows no codes. To put it anew again
// and again would take off what may well open, and to wait would have no end.
func (t *deviceTx) unheard(c *dbsqlc.AccessCode) bool {
	if t.caps.ListCodes || !t.caps.PutAnew || !c.IsManaged || c.VendorRef == nil || t.leaving(c) {
		return false
	}
	return c.WriteGen > 0 && c.WriteGen >= c.DesiredGen && !t.onItsWay(c)
}
