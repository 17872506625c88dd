package account

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// EndOfAccount cleans up an extension's resources in the transaction that ends an account.
type EndOfAccount func(ctx context.Context, tx store.Tx, workspace, account uuid.UUID) error

// OnDisconnect registers f for each account that ends. Call it only during start-up.
func (s *Service) OnDisconnect(f EndOfAccount) { s.endOfAccount = append(s.endOfAccount, f) }
