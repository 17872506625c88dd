package access

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A lock that hides its PINs goes on showing the old one's stars where it refuses another, so the place of a code is emptied before it is
// written anew. What comes then may be refused, or be lost in a crash. That its place is emptied is written down before, as the place of the
// write (RecordPlace), until the code is there as it is to be or a read shows that it was not taken away.

// emptied says whether a code that its device does not show was taken off by us, for a change that has not arrived.
func (t *deviceTx) emptied(c *dbsqlc.AccessCode) bool {
	return c.IsManaged && c.AppliedGen > 0 && c.AppliedGen < c.DesiredGen && c.VendorRef != nil && text(c.WriteRef) == *c.VendorRef
}

// putBack has a code that was taken off for a change be put on its device as a new one. What went wrong with the change stands until that
// has ended.
func (t *deviceTx) putBack(ctx context.Context, c *dbsqlc.AccessCode) error {
	c.VendorRef, c.AppliedGen, c.WriteGen, c.WriteAt, c.WriteAccepted, c.WriteRef = nil, 0, 0, nil, false, nil
	t.forgetPIN(c)
	if c.BlockedGen >= c.DesiredGen { // the change of what is not there any more
		c.BlockedGen = 0
	}
	c.Status = string(StatusSetting)
	return t.s.emit(ctx, t.tx, "access_code.removed_from_device", aboutCode(t.d, *c))
}
