package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ErrLeaseLost reports that the lease has expired or that another instance holds it.
var ErrLeaseLost = errors.New("the lease is no longer held")

// errHeldElsewhere reports that another instance holds the lease.
var errHeldElsewhere = fmt.Errorf("another instance works on the key: %w", ErrLeaseLost)

// Lease is the exclusive right to work on one key. Its fence differs from those of all earlier and later holders. The
// zero Lease is not held.
type Lease struct {
	key    string
	holder uuid.UUID
	ttl    time.Duration
	db     *store.DB
	// fence is 0 until the lease is acquired.
	fence atomic.Int64
	// asked is the fence of an acquisition whose commit may have failed.
	asked atomic.Int64
	// by this machine's clock; the database ends the lease no earlier
	until atomic.Pointer[time.Time]
	// working is the context of the work under the lease, and cancel ends it.
	working context.Context
	cancel  func(error)
	keeping sync.WaitGroup
	// takeWakeUps counts the wake-ups so far as answered by the next check of the key.
	takeWakeUps func()
	// releasing is set when a transaction of the work releases the lease, and released when that is committed.
	releasing, released atomic.Bool
	// due is whether the key had more work at that release.
	due bool
	// atRelease are the queries of AtRelease.
	atRelease []func(context.Context, store.Tx) error
}

// acquire acquires the lease in a transaction of its own. It reports false if another instance holds it.
func (l *Lease) acquire(ctx context.Context) (held bool, err error) {
	asked := time.Now()
	fence, err := l.db.TakeLease(store.WithStatementTimeout(ctx, queryTimeout), l.params())
	// another transaction has checked the lease, and may be stuck
	if store.IsNoRows(err) || store.IsLockTimeout(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take the lease of %s: %w", l.key, err)
	}
	l.asked.Store(fence)
	if time.Since(asked) >= l.ttl/3 {
		// Getting a connection took long, so the lease has hardly begun.
		asked = time.Now()
		n, err := l.renew(ctx, fence)
		if err == nil && n != 1 {
			err = ErrLeaseLost
		}
		if err != nil {
			return false, errors.Join(err, l.release(ctx))
		}
	}
	l.begin(fence, asked)
	return true, nil
}

func (l *Lease) params() dbsqlc.TakeLeaseParams {
	return dbsqlc.TakeLeaseParams{Key: l.key, Holder: l.holder, Ttl: l.ttl}
}

// begin starts the lease that the database granted after asked.
func (l *Lease) begin(fence int64, asked time.Time) {
	l.extend(asked.Add(l.ttl))
	l.fence.Store(fence)
	l.keeping.Go(func() { l.keepAlive(l.working) })
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
// only the holder records results in tx. In a Transactional lane, the first Check acquires the lease: it is held from
// the commit of tx on.
func (l *Lease) Check(ctx context.Context, tx store.Tx) error {
	query, verify := l.CheckQuery(ctx, tx)
	if err := query(tx); err != nil {
		return err
	}
	return verify()
}

// CheckQuery is Check for a query that shares a round trip with others (see store.Tx.Batch). verify returns the result
// after the round trip.
func (l *Lease) CheckQuery(ctx context.Context, tx store.Tx) (query func(store.Tx) error, verify func() error) {
	if l.fence.Load() == 0 && l.db != nil {
		return l.acquireIn(ctx, tx)
	}
	held := false
	query = func(tx store.Tx) (err error) {
		held, err = tx.CheckLease(ctx, dbsqlc.CheckLeaseParams{Key: l.key, Fence: l.fence.Load()})
		if err != nil {
			return fmt.Errorf("check the lease of %s: %w", l.key, err)
		}
		return nil
	}
	return query, func() error {
		if !held {
			return ErrLeaseLost
		}
		return nil
	}
}

// acquireIn is CheckQuery for a lease that is not acquired yet.
func (l *Lease) acquireIn(ctx context.Context, tx store.Tx) (query func(store.Tx) error, verify func() error) {
	var fence int64
	asked := time.Now()
	query = func(tx store.Tx) (err error) {
		fence, err = tx.TakeLease(ctx, l.params())
		if store.IsNoRows(err) {
			fence, err = 0, nil
		}
		if err != nil {
			return fmt.Errorf("take the lease of %s: %w", l.key, err)
		}
		return nil
	}
	return query, func() error {
		if fence == 0 {
			return errHeldElsewhere
		}
		l.asked.Store(fence)
		tx.AfterCommit(func() {
			if l.releasing.Load() { // by the same transaction
				l.fence.Store(fence)
				return
			}
			l.begin(fence, asked)
		})
		return nil
	}
}

// Release returns queries that release the lease when tx commits. They must be the last ones of tx (see
// store.Tx.BatchLast), which must have passed Check, and nothing may follow under the lease. check is a single query
// that reports whether the key has more work.
func (l *Lease) Release(
	ctx context.Context, tx store.Tx, check func(store.Tx) (due bool, err error),
) []func(store.Tx) error {
	l.releasing.Store(true)
	l.takeWakeUps()
	due := false
	tx.AfterCommit(func() {
		l.due = due
		l.released.Store(true)
		l.extend(time.Time{})
	})
	return []func(store.Tx) error{
		func(tx store.Tx) error { return tx.ReleaseLease(ctx, l.releaseParams()) },
		func(tx store.Tx) (err error) { due, err = check(tx); return err },
	}
}

// AtRelease runs a query in the transaction that releases the lease of ctx, if the work succeeds. It reports false if
// ctx has no lease; the query does not run then.
func AtRelease(ctx context.Context, query func(context.Context, store.Tx) error) bool {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	if ok {
		l.atRelease = append(l.atRelease, query)
	}
	return ok
}

// keepAlive renews the lease every third of its TTL until ctx ends. It cancels the work when renewal fails.
func (l *Lease) keepAlive(ctx context.Context) {
	for next := time.Until(l.until.Load().Add(-2 * l.ttl / 3)); ; next = l.ttl / 3 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		asked := time.Now()
		n, err := l.renew(ctx, l.fence.Load())
		switch {
		case err == nil && n == 1:
			l.extend(asked.Add(l.ttl))
		case l.released.Load(), l.releasing.Load() && err == nil: // committed, or not held, which the next Check finds
			return
		case err == nil, time.Now().Add(l.ttl / 3).After(*l.until.Load()):
			l.cancel(ErrLeaseLost)
			return
		}
	}
}

// renew returns in time for the next try. If the database hangs, the holder stops working before its lease has expired.
func (l *Lease) renew(ctx context.Context, fence int64) (int64, error) {
	ctx, cancel := context.WithTimeout(store.Unshared(ctx), l.ttl/3)
	defer cancel()
	return l.db.RenewLease(ctx, dbsqlc.RenewLeaseParams{Key: l.key, Fence: fence, Ttl: l.ttl})
}

// end releases the lease after work that succeeded, and runs the queries of AtRelease before. check follows in the same
// transaction; it may be nil.
func (l *Lease) end(ctx context.Context, check func(context.Context, store.Tx) error) error {
	ctx, cancel := releaseContext(ctx)
	defer cancel()
	steps := make([]func(store.Tx) error, 0, len(l.atRelease)+2)
	for _, query := range l.atRelease {
		steps = append(steps, func(tx store.Tx) error { return query(ctx, tx) })
	}
	if l.asked.Load() != 0 {
		steps = append(steps, func(tx store.Tx) error { return tx.ReleaseLease(ctx, l.releaseParams()) })
	}
	if check != nil {
		// Last: a key that becomes due after it cannot be claimed before the lease is released.
		steps = append(steps, func(tx store.Tx) error { return check(ctx, tx) })
	}
	if err := l.db.Batch(ctx, steps...); err != nil {
		return fmt.Errorf("release the lease of %s: %w", l.key, err)
	}
	return nil
}

// release releases the lease after work that failed.
func (l *Lease) release(ctx context.Context) error {
	if l.asked.Load() == 0 {
		return nil
	}
	ctx, cancel := releaseContext(ctx)
	defer cancel()
	if err := l.db.ReleaseLease(ctx, l.releaseParams()); err != nil {
		return fmt.Errorf("release the lease of %s: %w", l.key, err)
	}
	return nil
}

func (l *Lease) releaseParams() dbsqlc.ReleaseLeaseParams {
	return dbsqlc.ReleaseLeaseParams{Key: l.key, Fence: l.asked.Load()}
}

// releaseContext returns a context for a release. The work's context may have ended already, and a lease that is not
// released blocks its key.
func releaseContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(store.Unshared(context.WithoutCancel(ctx)), 5*time.Second)
}
