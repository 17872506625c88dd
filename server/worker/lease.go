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

// ErrLost says that the lease has gone to somebody else, or has run out.
var ErrLost = errors.New("the lease is no longer held")

// Lease is the right to work on one key. Its fence is that of no other holder of the key, before or after. The zero Lease is not held.
type Lease struct {
	key   string
	fence int64
	db    *store.DB
	until atomic.Pointer[time.Time] // by this machine's clock: the database has it end no earlier
	lose  func(error)               // ends the work under it
}

// take gets the lease of a key for ttl; nil when another holds it.
func take(ctx context.Context, db *store.DB, key string, holder uuid.UUID, ttl time.Duration) (*Lease, error) {
	asked := time.Now()
	fence, err := db.TakeLease(store.Within(ctx, answer), dbsqlc.TakeLeaseParams{Key: key, Holder: holder, Ttl: ttl})
	if store.IsNoRows(err) || store.GaveUp(err) { // a transaction that has checked it goes on, or stands still
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take the lease of %s: %w", key, err)
	}
	l := &Lease{key: key, fence: fence, db: db}
	if time.Since(asked) < ttl/3 {
		l.lasts(asked.Add(ttl))
		return l, nil
	}
	asked = time.Now() // it was the connection that was waited for, and the lease has hardly begun
	n, err := l.renew(ctx, ttl)
	if err == nil && n != 1 {
		err = ErrLost
	}
	if err != nil {
		return nil, errors.Join(err, l.release(ctx))
	}
	l.lasts(asked.Add(ttl))
	return l, nil
}

func (l *Lease) lasts(until time.Time) { l.until.Store(&until) }

// Held fails with ErrLost once the lease has run out, unless it was renewed, and ends the work under it: also when this process
// has stood still meanwhile, and nothing in it has noticed yet. It asks nobody, and is for what cannot be undone: right before
// that is done.
func (l *Lease) Held() error {
	until, now := l.until.Load(), time.Now()
	if until != nil && !now.After(*until) && !now.Round(0).After(until.Round(0)) { // the monotonic clock stands still with a machine that sleeps
		return nil
	}
	if l.lose != nil {
		l.lose(ErrLost)
	}
	return ErrLost
}

type leaseKey struct{}

// Under is the context for work under a lease.
func Under(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// Held is that of the lease that ctx is Under; nil where there is none.
func Held(ctx context.Context) error {
	if l, ok := ctx.Value(leaseKey{}).(*Lease); ok {
		return l.Held()
	}
	return nil
}

// Check fails with ErrLost unless the lease is still held, and keeps it from changing hands until tx ends:
// what tx records is the work of the holder.
func (l *Lease) Check(ctx context.Context, tx store.Tx) error {
	held, err := tx.CheckLease(ctx, dbsqlc.CheckLeaseParams{Key: l.key, Fence: l.fence})
	if err != nil {
		return fmt.Errorf("check the lease of %s: %w", l.key, err)
	}
	if !held {
		return ErrLost
	}
	return nil
}

// keep renews the lease every third of ttl until ctx ends, and ends the work when that fails.
func (l *Lease) keep(ctx context.Context, ttl time.Duration) {
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
			l.lasts(asked.Add(ttl))
		case err == nil, time.Now().Add(ttl / 3).After(*l.until.Load()):
			l.lose(ErrLost)
			return
		}
	}
}

// renew gives up in time for the next try: a database that hangs must not keep a holder at work whose lease
// has run out meanwhile.
func (l *Lease) renew(ctx context.Context, ttl time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(store.Unshared(ctx), ttl/3)
	defer cancel()
	return l.db.RenewLease(ctx, dbsqlc.RenewLeaseParams{Key: l.key, Fence: l.fence, Ttl: ttl})
}

func (l *Lease) release(ctx context.Context) error {
	// Not ended by the context of the work: a lease kept for nothing holds its key up.
	ctx, cancel := context.WithTimeout(store.Unshared(context.WithoutCancel(ctx)), 5*time.Second)
	defer cancel()
	if err := l.db.ReleaseLease(ctx, dbsqlc.ReleaseLeaseParams{Key: l.key, Fence: l.fence}); err != nil {
		return fmt.Errorf("release the lease of %s: %w", l.key, err)
	}
	return nil
}
