package device

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A lock that hides its PINs keeps showing the old code if it refuses a change. So the server vacates the slot of a
// code before it writes the new one. The new write may be refused or lost in a crash. RecordPlace therefore records the
// vacated slot as the place of the write, until the code is applied or a read shows that the slot was not vacated.

// vacated reports whether the server removed a code that its device does not show, for a change that has not arrived.
func (t *deviceTx) vacated(c *dbsqlc.AccessCode) bool {
	return c.IsManaged && c.AppliedGen > 0 && c.AppliedGen < c.DesiredGen && c.VendorRef != nil &&
		domain.Value(c.WriteRef) == *c.VendorRef
}

// recreateVacated schedules the recreation of a code that was removed for a change. The error of the change stays until
// the recreation has ended.
func (t *deviceTx) recreateVacated(ctx context.Context, c *dbsqlc.AccessCode) error {
	c.VendorRef, c.AppliedGen, c.WriteGen, c.WriteAt, c.WriteAccepted, c.WriteRef = nil, 0, 0, nil, false, nil
	t.forgetPIN(c)
	if c.BlockedGen >= c.DesiredGen { // the refused change was of a code that is gone
		c.BlockedGen = 0
	}
	c.Status = string(StatusSetting)
	return t.s.events.Emit(ctx, t.tx, "access_code.removed_from_device", event.AboutCode(t.d, *c))
}
