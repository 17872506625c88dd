package device

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ResetSandbox erases a sandbox workspace except for its credentials and webhooks, and connects a new account
// in place of the old ones. It calls forget with these after the commit. The attempt succeeds when the devices
// of the new account appear, or fails at its deadline. It fails with Invalid (workspace_not_sandbox).
//
// Every write holds the row of its device or account. So concurrent work ends before the reset, or finds
// nothing, and erased rows do not come back.
func (s *Service) ResetSandbox(
	ctx context.Context,
	p domain.Principal,
	fresh account.NewAccount,
	forget func(context.Context, []account.Account),
) (a Attempt, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		w, err := tx.LockWorkspace(ctx, p.WorkspaceID)
		if err != nil {
			return err
		}
		if !w.IsSandbox {
			return &domain.Error{
				Kind:    domain.Invalid,
				Type:    "workspace_not_sandbox",
				Message: "Only a sandbox workspace can be reset. The devices of this one are real.",
			}
		}
		rows, err := tx.LockAccountsOfWorkspace(ctx, p.WorkspaceID)
		if err != nil {
			return err
		}
		accounts, ids := make([]account.Account, len(rows)), make([]uuid.UUID, len(rows))
		for i, r := range rows {
			if accounts[i], err = s.accounts.ToAccount(r); err != nil {
				return err
			}
			ids[i] = r.ConnectedAccountID
		}
		if err := tx.LockDevicesOfAccounts(ctx, ids); err != nil {
			return err
		}
		for _, erase := range []func(context.Context, uuid.UUID) error{tx.EraseWorkspace, tx.EraseDeliveries, tx.EraseDeliveryAttempts} {
			if err := erase(ctx, p.WorkspaceID); err != nil {
				return err
			}
		}
		r, err := tx.InsertWorkspaceAttempt(ctx, dbsqlc.InsertWorkspaceAttemptParams{
			ActionAttemptID: domain.NewID(),
			WorkspaceID:     p.WorkspaceID,
			ActionType:      domain.ResetSandboxWorkspace,
			Timeout:         s.opt.AttemptTimeout,
		})
		if err != nil {
			return err
		}
		tx.Begins()
		if err := tx.AdvanceRetention(
			ctx,
			dbsqlc.AdvanceRetentionParams{WorkspaceID: p.WorkspaceID, At: r.DeadlineAt},
		); err != nil { // the deadline of the attempt
			return err
		}
		a = toAttempt(r)
		tx.AfterCommit(func() { forget(context.WithoutCancel(ctx), accounts) })
		for _, old := range accounts { // so that each instance closes its adapter
			if err := s.waker.Wake(ctx, tx, domain.AccountLane, old.ID); err != nil {
				return err
			}
		}
		return s.accounts.Connect(ctx, tx, domain.NewID(), fresh)
	})
	return a, domain.Wrap(err, "reset the sandbox workspace")
}
