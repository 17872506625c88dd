package reconcile

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// find has a code in doubt that is to leave be created once more, and notes where it is.
func (p *pass) find(ctx context.Context, c access.CodeWork) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	if still, err := p.access.RecordFindStarted(ctx, p.lease, p.device.ID, c); err != nil || !still {
		return err
	}
	res, err := p.adapter.PutCode(ctx, p.ref, p.spec(c))
	p.wrote()
	switch {
	case res.Ref != "": // also where it is otherwise than it was to be
		return p.access.RecordFound(ctx, p.lease, p.device.ID, c, access.PutOutcome{Ref: string(res.Ref)})
	case unreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return err
	}
	p.refused(err)
	return p.access.RecordFound(ctx, p.lease, p.device.ID, c, access.PutOutcome{Failure: fail(err)})
}
