package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// oldSessionBatch is how many client sessions are deleted in one transaction.
const oldSessionBatch = 1000

// DropOldSessions deletes one batch of the client sessions that ended before a time. more reports
// whether others may follow.
func (s *Service) DropOldSessions(
	ctx context.Context,
	h store.Fence,
	workspace uuid.UUID,
	before time.Time,
) (n int64, more bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		n, err = tx.DropClientSessions(
			ctx,
			dbsqlc.DropClientSessionsParams{WorkspaceID: workspace, EndedBefore: before, MaxRows: oldSessionBatch},
		)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("remove old client sessions of workspace %s: %w", workspace, err)
	}
	return n, n == oldSessionBatch, nil
}
