package reconcile

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// find creates a code again whose earlier creation is uncertain and that must be deleted, to learn
// its reference.
func (p *pass) find(ctx context.Context, c access.CodeWork) error {
	if err := p.waitForGap(ctx); err != nil {
		return err
	}
	if still, err := p.access.RecordFindStarted(ctx, p.lease, p.device.ID, c); err != nil || !still {
		return err
	}
	res, err := p.adapter.PutCode(ctx, p.ref, p.spec(c))
	p.noteWrite()
	switch {
	// The reference counts even if the stored code differs.
	case res.Ref != "":
		return p.access.RecordFound(ctx, p.lease, p.device.ID, c, access.PutOutcome{Ref: string(res.Ref)})
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return err
	}
	p.noteRetryAfter(err)
	return p.access.RecordFound(ctx, p.lease, p.device.ID, c, access.PutOutcome{Failure: fail(err)})
}
