package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// ErrLost says that the lease has gone to somebody else, or has run out.
var ErrLost = errors.New("the lease is no longer held")

// Lease is the right to work on one key. Its fence counts the holders of the key.
type Lease struct {
	key   string
	fence int64
	db    *store.DB
}

// take gets the lease of a key for ttl; nil when another holds it.
func take(ctx context.Context, db *store.DB, key string, holder uuid.UUID, ttl time.Duration) (*Lease, error) {
	fence, err := db.TakeLease(ctx, store.TakeLeaseParams{Key: key, Holder: holder, Ttl: ttl})
	if store.IsNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take the lease of %s: %w", key, err)
	}
	return &Lease{key: key, fence: fence, db: db}, nil
}

// Check fails with ErrLost unless the lease is still held, and keeps it from changing hands until tx ends:
// what tx records is the work of the holder.
func (l *Lease) Check(ctx context.Context, tx store.Tx) error {
	held, err := tx.CheckLease(ctx, store.CheckLeaseParams{Key: l.key, Fence: l.fence})
	if err != nil {
		return fmt.Errorf("check the lease of %s: %w", l.key, err)
	}
	if !held {
		return ErrLost
	}
	return nil
}

// keep renews the lease every third of ttl until ctx ends, and calls lost when that fails.
func (l *Lease) keep(ctx context.Context, ttl time.Duration, lost func(error)) {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	expires := time.Now().Add(ttl)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		n, err := l.renew(ctx, ttl)
		switch {
		case err == nil && n == 1:
			expires = asked.Add(ttl)
		case err == nil, time.Now().Add(ttl / 3).After(expires):
			lost(ErrLost)
			return
		}
	}
}

// renew gives up in time for the next try: a database that hangs must not keep a holder at work whose lease
// has run out meanwhile.
func (l *Lease) renew(ctx context.Context, ttl time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(store.Unshared(ctx), ttl/3)
	defer cancel()
	return l.db.RenewLease(ctx, store.RenewLeaseParams{Key: l.key, Fence: l.fence, Ttl: ttl})
}

func (l *Lease) release(ctx context.Context) error {
	// Not ended by the context of the work: a lease kept for nothing holds its key up.
	ctx, cancel := context.WithTimeout(store.Unshared(context.WithoutCancel(ctx)), 5*time.Second)
	defer cancel()
	if err := l.db.ReleaseLease(ctx, store.ReleaseLeaseParams{Key: l.key, Fence: l.fence}); err != nil {
		return fmt.Errorf("release the lease of %s: %w", l.key, err)
	}
	return nil
}
