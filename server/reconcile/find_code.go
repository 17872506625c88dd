package reconcile

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

// find creates a code again whose earlier creation is uncertain and that must be deleted, to learn
// its reference.
func (p *pass) find(ctx context.Context, op device.CodeOperation) (*device.Outcome, error) {
	res, err := p.adapter.PutCode(ctx, p.ref, p.spec(op))
	p.noteWrite()
	switch {
	// The reference counts even if the stored code differs.
	case res.Ref != "":
		outcome := &device.Outcome{}
		outcome.Ref = string(res.Ref)
		return outcome, nil
	case isUnreachable(err) || ctx.Err() != nil || adapter.AsError(err) == nil:
		return nil, err
	}
	p.noteRetryAfter(err)
	return failed(err), nil
}
