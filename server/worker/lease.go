package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ErrLeaseLost reports that the lease has expired or that another instance holds it.
var ErrLeaseLost = errors.New("the lease is no longer held")

// Lease is the exclusive right to work on one key. Its fence differs from those of all earlier and later holders. The
// zero Lease is not held.
type Lease struct {
	key   string
	fence int64
	db    *store.DB
	// by this machine's clock; the database ends the lease no earlier
	until atomic.Pointer[time.Time]
	// cancels the work under the lease
	cancel func(error)
}

// acquireLease acquires the lease of a key for ttl. It returns nil if another instance holds it.
func acquireLease(ctx context.Context, db *store.DB, key string, holder uuid.UUID, ttl time.Duration) (*Lease, error) {
	asked := time.Now()
	fence, err := db.TakeLease(
		store.WithStatementTimeout(ctx, queryTimeout),
		dbsqlc.TakeLeaseParams{Key: key, Holder: holder, Ttl: ttl},
	)
	// another transaction has checked the lease, and may be stuck
	if store.IsNoRows(err) || store.IsLockTimeout(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take the lease of %s: %w", key, err)
	}
	l := &Lease{key: key, fence: fence, db: db}
	if time.Since(asked) < ttl/3 {
		l.extend(asked.Add(ttl))
		return l, nil
	}
	// Getting a connection took long, so the lease has hardly begun.
	asked = time.Now()
	n, err := l.renew(ctx, ttl)
	if err == nil && n != 1 {
		err = ErrLeaseLost
	}
	if err != nil {
		return nil, errors.Join(err, l.release(ctx))
	}
	l.extend(asked.Add(ttl))
	return l, nil
}

func (l *Lease) extend(until time.Time) { l.until.Store(&until) }

// Held returns ErrLeaseLost once the lease has expired without renewal, and cancels the work under it. It compares
// clocks only and makes no query, so it also detects that this process was suspended. Call it right before an action
// that cannot be undone.
func (l *Lease) Held() error {
	until, now := l.until.Load(), time.Now()
	// The monotonic clock stops while the machine sleeps.
	if until != nil && !now.After(*until) && !now.Round(0).After(until.Round(0)) {
		return nil
	}
	if l.cancel != nil {
		l.cancel(ErrLeaseLost)
	}
	return ErrLeaseLost
}

type leaseKey struct{}

// WithLease returns a context for work under a lease.
func WithLease(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// Held calls Held on the lease of ctx. It returns nil if ctx has no lease.
func Held(ctx context.Context) error {
	if l, ok := ctx.Value(leaseKey{}).(*Lease); ok {
		return l.Held()
	}
	return nil
}

// Check returns ErrLeaseLost unless the lease is held. It prevents the lease from changing hands until tx ends, so that
// only the holder records results in tx.
func (l *Lease) Check(ctx context.Context, tx store.Tx) error {
	held, err := tx.CheckLease(ctx, dbsqlc.CheckLeaseParams{Key: l.key, Fence: l.fence})
	if err != nil {
		return fmt.Errorf("check the lease of %s: %w", l.key, err)
	}
	if !held {
		return ErrLeaseLost
	}
	return nil
}

// keepAlive renews the lease every third of ttl until ctx ends. It cancels the work when renewal fails.
func (l *Lease) keepAlive(ctx context.Context, ttl time.Duration) {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
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
			l.extend(asked.Add(ttl))
		case err == nil, time.Now().Add(ttl / 3).After(*l.until.Load()):
			l.cancel(ErrLeaseLost)
			return
		}
	}
}

// renew returns in time for the next try. If the database hangs, the holder stops working before its lease has expired.
func (l *Lease) renew(ctx context.Context, ttl time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(store.Unshared(ctx), ttl/3)
	defer cancel()
	return l.db.RenewLease(ctx, dbsqlc.RenewLeaseParams{Key: l.key, Fence: l.fence, Ttl: ttl})
}

func (l *Lease) release(ctx context.Context) error {
	// The work's context may have ended already, and a lease that is not released blocks its key.
	ctx, cancel := context.WithTimeout(store.Unshared(context.WithoutCancel(ctx)), 5*time.Second)
	defer cancel()
	if err := l.db.ReleaseLease(ctx, dbsqlc.ReleaseLeaseParams{Key: l.key, Fence: l.fence}); err != nil {
		return fmt.Errorf("release the lease of %s: %w", l.key, err)
	}
	return nil
}
