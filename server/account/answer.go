package account

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// OnAnswer records that an account answers, and runs record with its answer in the same transaction. It skips a
// disconnected account.
func (s *Service) OnAnswer(
	ctx context.Context,
	h store.Fence,
	account uuid.UUID,
	record func(tx store.Tx, a dbsqlc.ConnectedAccount) error,
) error {
	return s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		a, err := tx.LockAccount(ctx, account)
		if store.IsNoRows(err) || err == nil && a.DeletedAt != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.ClearAccountError(ctx, tx, a); err != nil {
			return err
		}
		if err := record(tx, a); err != nil {
			return err
		}
		return s.AccountSynced(ctx, tx, a)
	})
}
