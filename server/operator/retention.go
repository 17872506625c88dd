package operator

import (
	"context"
	"fmt"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// expiredBatch is how many rows of each table one call deletes.
const expiredBatch = 1000

// DropExpired deletes expired sessions, links, and challenges, up to a batch of each.
func (s *Service) DropExpired(ctx context.Context) error {
	now := s.opt.Now()
	if _, err := s.db.DropExpiredOperatorSessions(ctx, dbsqlc.DropExpiredOperatorSessionsParams{
		Now:       now,
		IdleSince: now.Add(-IdleTimeout),
		MaxRows:   expiredBatch,
	}); err != nil {
		return fmt.Errorf("remove expired sessions of operators: %w", err)
	}
	if _, err := s.db.DropExpiredOperatorLinks(
		ctx,
		dbsqlc.DropExpiredOperatorLinksParams{Now: now, MaxRows: expiredBatch},
	); err != nil {
		return fmt.Errorf("remove expired links of operators: %w", err)
	}
	if _, err := s.db.DropExpiredOperatorChallenges(
		ctx,
		dbsqlc.DropExpiredOperatorChallengesParams{Now: now, MaxRows: expiredBatch},
	); err != nil {
		return fmt.Errorf("remove used challenges of sign-ins: %w", err)
	}
	return nil
}
