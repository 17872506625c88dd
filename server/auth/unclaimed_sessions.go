package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	unclaimedSessions = 10_000    // per workspace
	claimedBatch      = 1000      // sessions claimed in one transaction
	forgottenAfter    = time.Hour // age at which a session that reaches nothing may be ended
	forgottenBatch    = 100       // sessions ended in one transaction
)

// roomForUnclaimed fails with TooMany where a workspace has the maximum of sessions that were created with a
// publishable key and reach nothing. The key is public, so sessions could accumulate without limit.
//
// It counts sessions in an index. At the limit it claims the sessions that reach something by now. If there are
// none, it ends the oldest sessions above forgottenAfter.
func (s *Service) roomForUnclaimed(ctx context.Context, tx store.Tx, workspace uuid.UUID) error {
	now := s.opt.Now()
	taken, known := s.unclaimed.Take(workspace, now)
	if taken {
		return nil
	}
	left := int64(0)
	if !known {
		n, err := tx.CountUnclaimedSessions(
			ctx,
			dbsqlc.CountUnclaimedSessionsParams{WorkspaceID: workspace, MaxRows: int32(s.opt.UnclaimedSessions)},
		)
		if err != nil {
			return err
		}
		if left = int64(s.opt.UnclaimedSessions) - int64(n); left <= 0 {
			if left, err = tx.ClaimSessionsWithScope(
				ctx,
				dbsqlc.ClaimSessionsWithScopeParams{WorkspaceID: workspace, MaxRows: claimedBatch},
			); err != nil {
				return err
			}
			if left == 0 {
				if left, err = s.endForgottenSessions(ctx, tx, workspace); err != nil {
					return err
				}
			}
		}
		s.unclaimed.SetCount(workspace, int(left), now)
	}
	if left == 0 {
		return &domain.Error{
			Kind: domain.TooMany,
			Type: "too_many_requests",
			Message: fmt.Sprintf(
				"The workspace has %d client sessions that were created with a publishable key and reach nothing. "+
					"New sessions replace those older than an hour. Delete unused ones with "+
					"/client_sessions/delete and an API key, or create sessions with an API key.",
				s.opt.UnclaimedSessions,
			),
		}
	}
	return nil
}

// endForgottenSessions ends a batch of old sessions that reach nothing, and returns how many.
func (s *Service) endForgottenSessions(ctx context.Context, tx store.Tx, workspace uuid.UUID) (int64, error) {
	ended, err := tx.DeleteUnclaimedSessions(
		ctx,
		dbsqlc.DeleteUnclaimedSessionsParams{WorkspaceID: workspace, Age: forgottenAfter, MaxRows: forgottenBatch},
	)
	if err != nil {
		return 0, fmt.Errorf("end unused client sessions: %w", err)
	}
	for _, r := range ended {
		if err := s.emitSessionDeleted(ctx, tx, r); err != nil {
			return 0, err
		}
	}
	return int64(len(ended)), nil
}
