package account

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	// UnclaimedWebviews is the default of Options.UnclaimedWebviews.
	UnclaimedWebviews = 10_000

	// MaxAccountWebviews is the maximum number of webviews of client sessions with a login to one account.
	MaxAccountWebviews = 20

	forgottenAfter = time.Hour // age at which an unused webview of a session that reaches nothing may be deleted
	forgottenBatch = 100       // webviews deleted in one transaction
)

// makeRoom deletes the oldest unused webviews of the session that creates another one. The session must be locked. It
// fails with TooMany where the workspace has the maximum of webviews of sessions that reach nothing.
func (s *Service) makeRoom(ctx context.Context, tx store.Tx, p domain.Principal) error {
	if err := tx.DropUnusedWebviewsOfSession(
		ctx,
		dbsqlc.DropUnusedWebviewsOfSessionParams{
			CreatedBySession: p.CredentialID,
			Kept:             auth.MaxSessionWebviews - 1,
		},
	); err != nil {
		return fmt.Errorf("delete unused webviews of a client session: %w", err)
	}
	if !p.Unclaimed {
		return nil
	}
	now := s.opt.Now()
	taken, known := s.unclaimed.Take(p.WorkspaceID, now)
	if taken {
		return nil
	}
	left := int64(0)
	if !known {
		n, err := tx.CountUnclaimedWebviews(
			ctx,
			dbsqlc.CountUnclaimedWebviewsParams{WorkspaceID: p.WorkspaceID, MaxRows: int32(s.opt.UnclaimedWebviews)},
		)
		if err != nil {
			return fmt.Errorf("count unused webviews: %w", err)
		}
		if left = int64(s.opt.UnclaimedWebviews) - int64(n); left <= 0 {
			if left, err = tx.DropForgottenWebviews(ctx, dbsqlc.DropForgottenWebviewsParams{
				WorkspaceID: p.WorkspaceID,
				Age:         forgottenAfter,
				MaxRows:     forgottenBatch,
			}); err != nil {
				return fmt.Errorf("delete unused webviews: %w", err)
			}
		}
		s.unclaimed.SetCount(p.WorkspaceID, int(left), now)
	}
	if left > 0 {
		return nil
	}
	return &domain.Error{
		Kind: domain.TooMany,
		Type: "too_many_requests",
		Message: fmt.Sprintf(
			"The workspace has %d unused connect webviews of client sessions that reach nothing. New webviews replace "+
				"those older than an hour. Delete unused ones with /connect_webviews/delete and an API key, or create "+
				"webviews with an API key.",
			s.opt.UnclaimedWebviews,
		),
	}
}

// dropSurplus deletes the oldest webviews of client sessions with a login to an account, after a login with webview. The
// sessions keep their access to the account.
func dropSurplus(ctx context.Context, tx store.Tx, account uuid.UUID, webview dbsqlc.ConnectWebview) error {
	surplus, err := tx.FindSurplusWebviewsOfAccount(ctx, dbsqlc.FindSurplusWebviewsOfAccountParams{
		ConnectedAccountID: account,
		Besides:            webview.ConnectWebviewID,
		Kept:               MaxAccountWebviews - 1,
	})
	for _, id := range surplus {
		if err != nil {
			return err
		}
		err = deleteWebview(ctx, tx, webview.WorkspaceID, id)
	}
	return err
}
