package reconcile

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

// find creates a code again whose earlier creation is uncertain and that must be deleted, to learn
// its reference.
func (p *pass) find(ctx context.Context, c device.CodeWork) error {
	if err := p.waitForGap(ctx); err != nil {
		return err
	}
	if still, err := p.access.Devices.RecordFindStarted(ctx, p.lease, p.device.ID, c); err != nil || !still {
		return err
	}
	res, err := p.adapter.PutCode(ctx, p.ref, p.spec(c))
	p.noteWrite()
	switch {
	// The reference counts even if the stored code differs.
	case res.Ref != "":
		return p.access.Devices.RecordFound(ctx, p.lease, p.device.ID, c, device.PutOutcome{Ref: string(res.Ref)})
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return err
	}
	p.noteRetryAfter(err)
	return p.access.Devices.RecordFound(ctx, p.lease, p.device.ID, c, device.PutOutcome{Failure: fail(err)})
}
