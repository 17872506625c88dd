package store

import "context"

// Fence proves in a transaction that the caller holds the lease of a device or an account.
type Fence interface {
	// Check fails if the lease is lost.
	Check(ctx context.Context, tx Tx) error
}
