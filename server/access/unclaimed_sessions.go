package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	unclaimedSessions = 10_000    // of a workspace
	claimedBatch      = 1000      // sessions that are found to reach something in one transaction
	forgottenAfter    = time.Hour // when a session that reaches nothing gives way to others
	forgottenBatch    = 100       // such sessions that are ended in one transaction
)

// roomForUnclaimed fails with TooMany where a workspace has as many sessions as it may that were made with a publishable key and
// reach nothing: everybody has that key, and nobody else would end them. They are counted in an index, and only where there are too
// many, those that reach something by now are looked for, each once, and else the oldest are ended, should they have been there for long.
func (s *Service) roomForUnclaimed(ctx context.Context, tx store.Tx, workspace uuid.UUID) error {
	now := s.opt.Now()
	taken, known := s.unclaimed.take(workspace, now)
	if taken {
		return nil
	}
	left := int64(0)
	if !known {
		n, err := tx.CountUnclaimedSessions(ctx, dbsqlc.CountUnclaimedSessionsParams{WorkspaceID: workspace, MaxRows: int32(s.opt.UnclaimedSessions)})
		if err != nil {
			return err
		}
		if left = int64(s.opt.UnclaimedSessions) - int64(n); left <= 0 {
			if left, err = tx.ClaimSessionsThatReach(ctx, dbsqlc.ClaimSessionsThatReachParams{WorkspaceID: workspace, MaxRows: claimedBatch}); err != nil {
				return err
			}
			if left == 0 {
				if left, err = s.endForgottenSessions(ctx, tx, workspace); err != nil {
					return err
				}
			}
		}
		s.unclaimed.counted(workspace, int(left), now)
	}
	if left == 0 {
		return &Error{Kind: TooMany, Type: "too_many_requests", Message: fmt.Sprintf("The workspace has %d client sessions that were made with a publishable key and reach nothing. "+
			"Those that are an hour old give way to others. Delete those that nobody uses, with /client_sessions/delete and an API key; with an API key further ones can be made meanwhile.", s.opt.UnclaimedSessions)}
	}
	return nil
}

// endForgottenSessions says how many it has ended.
func (s *Service) endForgottenSessions(ctx context.Context, tx store.Tx, workspace uuid.UUID) (int64, error) {
	ended, err := tx.EndForgottenSessions(ctx, dbsqlc.EndForgottenSessionsParams{WorkspaceID: workspace, Age: forgottenAfter, MaxRows: forgottenBatch})
	if err != nil {
		return 0, fmt.Errorf("end client sessions that nobody has come back to: %w", err)
	}
	for _, r := range ended {
		if err := s.emitSessionDeleted(ctx, tx, r); err != nil {
			return 0, err
		}
	}
	return int64(len(ended)), nil
}
