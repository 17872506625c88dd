package event

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Statements is EmitAll for few events of one workspace: it returns the statements that write them, for a Batch of tx.
func (s *Service) Statements(
	ctx context.Context,
	tx store.Tx,
	all []Occurrence,
) (steps []func(store.Tx) error, err error) {
	waits := false
	for _, o := range all {
		if o.Silent {
			continue
		}
		row, err := s.NewRow(o.Type, o.About)
		if err != nil {
			return nil, err
		}
		s.onEmit(ctx, tx, o.Account, 1)
		steps = append(steps, func(tx store.Tx) error {
			one, err := tx.InsertEvent(ctx, row)
			waits = waits || one
			return err
		})
	}
	if steps == nil {
		return nil, nil
	}
	return steps, s.waker.WakeIf(ctx, tx, domain.OutboxLane, all[0].Workspace, &waits)
}
