package account

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Bucket is the token bucket of an account's calls, which all instances share.
type Bucket struct {
	Burst     float64 // calls
	PerSecond float64 // calls
}

// CallsLeft is what is left of a Bucket.
type CallsLeft struct {
	Calls float64
	// Blocked is how long the vendor refuses calls.
	Blocked time.Duration
}

// TakeCalls takes calls from the bucket of an account if at least reserve of them remain and the vendor does not refuse
// calls. It reports whether it took them, and what is left.
func (s *Service) TakeCalls(
	ctx context.Context,
	account uuid.UUID,
	b Bucket,
	calls, reserve float64,
) (left CallsLeft, taken bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) (err error) {
		left, taken = CallsLeft{}, true
		left.Calls, err = tx.TakeAccountCalls(ctx, dbsqlc.TakeAccountCallsParams{
			ConnectedAccountID: account,
			Burst:              b.Burst,
			PerSecond:          b.PerSecond,
			Calls:              calls,
			Reserve:            reserve,
		})
		if store.IsNoRows(err) {
			taken, err = false, nil
		}
		return err
	})
	if err == nil && !taken {
		left, err = s.CallsLeft(ctx, account, b)
	}
	if err != nil {
		return left, false, fmt.Errorf("take calls of account %s: %w", account, err)
	}
	return left, taken, nil
}

// CallsLeft returns what is left of the bucket of an account.
func (s *Service) CallsLeft(ctx context.Context, account uuid.UUID, b Bucket) (CallsLeft, error) {
	r, err := s.db.GetAccountCalls(ctx, dbsqlc.GetAccountCallsParams{
		ConnectedAccountID: account,
		Burst:              b.Burst,
		PerSecond:          b.PerSecond,
	})
	if store.IsNoRows(err) {
		return CallsLeft{Calls: b.Burst}, nil
	}
	if err != nil {
		return CallsLeft{}, fmt.Errorf("read the calls of account %s: %w", account, err)
	}
	return CallsLeft{Calls: r.Remaining, Blocked: time.Duration(r.BlockedSeconds * float64(time.Second))}, nil
}

// ListCallsLeft returns what is left of the buckets of the accounts of an adapter that have called their vendor, those
// with the fewest calls first, and at most limit of them. For administration only.
func (s *Service) ListCallsLeft(
	ctx context.Context,
	adapter string,
	b Bucket,
	limit int,
) (map[uuid.UUID]float64, error) {
	rows, err := s.db.ListAccountCalls(ctx, dbsqlc.ListAccountCallsParams{
		Adapter:   adapter,
		Burst:     b.Burst,
		PerSecond: b.PerSecond,
		Most:      int32(limit), //nolint:gosec // a few thousand
	})
	if err != nil {
		return nil, fmt.Errorf("list the calls of the accounts of %s: %w", adapter, err)
	}
	out := make(map[uuid.UUID]float64, len(rows))
	for _, r := range rows {
		out[r.ConnectedAccountID] = max(0, r.Remaining)
	}
	return out, nil
}

// BlockCalls records that the vendor refuses calls of an account for a time.
func (s *Service) BlockCalls(ctx context.Context, account uuid.UUID, after time.Duration) error {
	err := s.db.BlockAccountCalls(ctx, dbsqlc.BlockAccountCallsParams{ConnectedAccountID: account, After: after})
	if err != nil {
		return fmt.Errorf("record that the vendor refuses calls of account %s: %w", account, err)
	}
	return nil
}

// BlockClientCalls records that the vendor of an account refuses calls of the operator's client for a time: those of all
// accounts of its adapter.
func (s *Service) BlockClientCalls(ctx context.Context, account uuid.UUID, after time.Duration) error {
	err := s.db.BlockClientCalls(ctx, dbsqlc.BlockClientCallsParams{ConnectedAccountID: account, After: after})
	if err != nil {
		return fmt.Errorf("record that the vendor refuses calls of all accounts like %s: %w", account, err)
	}
	return nil
}
