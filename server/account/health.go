package account

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ClearAccountError records that an account answers, and clears its error.
func (s *Service) ClearAccountError(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount) error {
	if a.ErrorCode == nil {
		return nil
	}
	if _, err := tx.SetAccountError(
		ctx,
		dbsqlc.SetAccountErrorParams{ConnectedAccountID: a.ConnectedAccountID},
	); err != nil {
		return err
	}
	if err := tx.SetAccountErrorOfDevices(
		ctx,
		dbsqlc.SetAccountErrorOfDevicesParams{ConnectedAccountID: a.ConnectedAccountID},
	); err != nil {
		return err
	}
	return s.events.Emit(
		ctx,
		tx,
		"connected_account.connected",
		event.About{Workspace: a.WorkspaceID, Account: a.ConnectedAccountID},
	)
}

// AccountSynced announces that the devices of an account have appeared, after it was connected or answers
// again.
func (s *Service) AccountSynced(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount) error {
	if err := s.authorizeWaiting(ctx, tx, a); err != nil {
		return err
	}
	ev := "connected_account.completed_first_sync"
	first, err := tx.SetAccountSynced(ctx, a.ConnectedAccountID)
	switch {
	case err != nil:
		return err
	case first == 0 && a.ErrorCode == nil:
		return nil
	case first == 1:
		if err := tx.FinishWorkspaceAttempts(
			ctx,
			dbsqlc.FinishWorkspaceAttemptsParams{WorkspaceID: a.WorkspaceID, ActionType: domain.ResetSandboxWorkspace},
		); err != nil {
			return err
		}
	default:
		ev = "connected_account.completed_first_sync_after_reconnection"
	}
	return s.events.Emit(ctx, tx, ev, event.About{Workspace: a.WorkspaceID, Account: a.ConnectedAccountID})
}

// AccountDisconnected is the error code of an account whose credentials are rejected.
const AccountDisconnected = "account_disconnected"

// RecordAccountRefused records that the vendor rejects an account's credentials.
func (s *Service) RecordAccountRefused(ctx context.Context, h store.Fence, account uuid.UUID, message string) error {
	return s.recordAccountError(ctx, h, account, AccountDisconnected, message)
}

// RecordAccountUnreachable records that an account's gateway cannot be reached.
func (s *Service) RecordAccountUnreachable(
	ctx context.Context,
	h store.Fence,
	account uuid.UUID,
	message string,
) error {
	return s.recordAccountError(ctx, h, account, "bridge_disconnected", message)
}

func (s *Service) recordAccountError(
	ctx context.Context,
	h store.Fence,
	account uuid.UUID,
	code, message string,
) error {
	message = domain.Storable(message)
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		n, err := tx.SetAccountError(
			ctx,
			dbsqlc.SetAccountErrorParams{ConnectedAccountID: account, ErrorCode: &code, ErrorMessage: &message},
		)
		if err != nil || n == 0 {
			return err
		}
		a, err := tx.GetAccount(ctx, account)
		if err != nil {
			return err
		}
		err = tx.SetAccountErrorOfDevices(
			ctx,
			dbsqlc.SetAccountErrorOfDevicesParams{
				ConnectedAccountID: account,
				AccountError:       accountErrorOf(accountErrors(a)),
			},
		)
		if err != nil {
			return err
		}
		return s.events.Emit(
			ctx,
			tx,
			"connected_account.disconnected",
			WithAccountTrouble(event.About{Workspace: a.WorkspaceID, Account: account}, a),
		)
	})
	if err != nil {
		return fmt.Errorf("record that account %s does not work: %w", account, err)
	}
	return nil
}

// WithAccountTrouble adds the errors of an account to an event.
func WithAccountTrouble(a event.About, account dbsqlc.ConnectedAccount) event.About {
	return a.With("connected_account_errors", domain.ProblemFields("error_code", accountErrors(account))).With(
		"connected_account_warnings", []any{},
	)
}
