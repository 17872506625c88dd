package app

import (
	"context"

	"github.com/google/uuid"
)

// OpenAdapter connects this instance to an account, as work on the account does.
func (a *App) OpenAdapter(ctx context.Context, account uuid.UUID) error {
	_, err := a.adapters.Get(ctx, account)
	return err
}
