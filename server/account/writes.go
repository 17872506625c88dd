package account

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// AllowWrites lets the server write to the devices of an account although its adapter never met the vendor. With
// manage, new devices start out managed. It is for the operator only: no request of a client may call it. It fails
// with NotFound.
func (s *Service) AllowWrites(ctx context.Context, id uuid.UUID, manage bool) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		a, err := lockAccount(ctx, tx, id)
		if err != nil {
			return err
		}
		tx.Concerns(a.WorkspaceID)
		return tx.AllowAccountWrites(ctx, dbsqlc.AllowAccountWritesParams{
			ConnectedAccountID: id,
			ManageNewDevices:   manage,
		})
	})
	if err != nil {
		return fmt.Errorf("allow writes on the account %s: %w", id, err)
	}
	return nil
}

// CheckWritesAllowed fails with Forbidden (writes_not_allowed) for an account that is read-only: its adapter never met
// the vendor, and the operator has not allowed writes.
func (s *Service) CheckWritesAllowed(a dbsqlc.ConnectedAccount) error {
	if a.WritesAllowed || s.opt.Unverified[a.Adapter] == "" {
		return nil
	}
	return &domain.Error{
		Kind: domain.Forbidden,
		Type: "writes_not_allowed",
		Message: "This account is read-only, because the way to its vendor was never tried against the vendor. The " +
			"operator of the server can allow writes: `deviceaccess-server accounts allow-writes " + a.ConnectedAccountID.String() +
			"`.",
		Data: map[string]any{"connected_account_id": a.ConnectedAccountID},
	}
}
