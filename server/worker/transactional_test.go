package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// transactional is a counter that acquires its lease in its own transaction, and releases it there if release is set.
type transactional struct {
	*counter
	db      *store.DB
	release bool
}

func (l *transactional) DueIn(ctx context.Context, tx store.Tx, id uuid.UUID) (bool, error) {
	_, err := tx.Now(ctx) // a query, as the steps of a batch are
	due, _ := l.Due(ctx, id)
	return due, err
}

func (l *transactional) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	err := l.db.InTx(ctx, func(tx store.Tx) error { return lease.Check(ctx, tx) })
	if err != nil {
		return 0, err
	}
	again, err := l.counter.Drain(ctx, lease, id)
	if err != nil || !l.release {
		return again, err
	}
	return again, l.db.InTx(ctx, func(tx store.Tx) error {
		if err := lease.Check(ctx, tx); err != nil {
			return err
		}
		check := func(tx store.Tx) (bool, error) { return l.DueIn(ctx, tx, id) }
		return tx.BatchLast(ctx, lease.Release(ctx, tx, check)...)
	})
}

// leaseState returns whether the key's lease is held according to the database.
func leaseState(t *testing.T, db *store.DB, id uuid.UUID) (held bool) {
	t.Helper()
	err := db.Pool.QueryRow(
		context.WithoutCancel(t.Context()),
		"select exists (select 1 from leases where key = $1 and held_until > now())",
		"counter:"+id.String(),
	).Scan(&held)
	if err != nil {
		t.Error(err)
	}
	return held
}

// byTransaction is a transactional lane whose Drain is a function.
type byTransaction struct {
	transactional
	drain func(ctx context.Context, lease *worker.Lease, id uuid.UUID) error
}

func (l *byTransaction) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return 0, l.drain(ctx, lease, id)
}

func TestTransactionalLane_FirstCommittedCheckAcquires(t *testing.T) {
	t.Parallel()
	db, id := open(t), uuid.New()
	l := &byTransaction{transactional: transactional{counter: newCounter(), db: db}}
	ended := make(chan struct{})
	l.drain = func(ctx context.Context, lease *worker.Lease, id uuid.UUID) error {
		defer close(ended)
		undone := errors.New("undone")
		err := db.InTx(ctx, func(tx store.Tx) error { return errors.Join(lease.Check(ctx, tx), undone) })
		if !errors.Is(err, undone) || leaseState(t, db, id) {
			t.Errorf("a transaction that was rolled back has acquired the lease: %v", err)
		}
		check := func(tx store.Tx) error { // in one round trip with another query
			query, verify := lease.CheckQuery(ctx, tx)
			other := func(tx store.Tx) error { _, err := tx.Now(ctx); return err }
			return errors.Join(tx.Batch(ctx, query, other), verify())
		}
		for range 2 {
			if err := db.InTx(ctx, check); err != nil {
				t.Errorf("Check: %v", err)
			}
			if err := lease.Held(); err != nil || !leaseState(t, db, id) {
				t.Errorf("not held after Check: %v", err)
			}
		}
		if _, err := db.Pool.Exec(ctx, "update leases set fence = fence + 1, held_until = '-infinity'"); err != nil {
			t.Error(err)
		}
		if err := db.InTx(ctx, check); !errors.Is(err, worker.ErrLeaseLost) {
			t.Errorf("Check of a lost lease: %v", err)
		}
		return nil
	}
	wake(t, db, start(t, db, worker.Options{Sweep: never}, l), id)
	<-ended
	testenv.Until(t, "the lease is released", func() bool { return !leaseState(t, db, id) })
}

func TestTransactionalLane_ReleasesInItsLastTransaction(t *testing.T) {
	t.Parallel()
	db, id := open(t), uuid.New()
	l := &byTransaction{transactional: transactional{counter: newCounter(), db: db}}
	var drains atomic.Int32
	l.drain = func(ctx context.Context, lease *worker.Lease, id uuid.UUID) error {
		n := drains.Add(1)
		err := db.InTx(ctx, func(tx store.Tx) error {
			if err := lease.Check(ctx, tx); err != nil {
				return err
			}
			return tx.BatchLast(ctx, lease.Release(ctx, tx, func(tx store.Tx) (bool, error) {
				_, err := tx.Now(ctx)
				return n < 3, err // due until the third drain
			})...)
		})
		if leaseState(t, db, id) {
			t.Error("held after the release")
		}
		return err
	}
	w := start(t, db, worker.Options{Sweep: never}, l)
	wake(t, db, w, id)
	testenv.Until(t, "the key is drained while it is due", func() bool { return drains.Load() >= 3 })
}

// A look at a key needs no transaction for its lease alone.
func TestTransactionalLane_LeaseHasNoTransactionOfItsOwn(t *testing.T) {
	t.Parallel()
	alone := &leaseStatements{}
	db, err := store.Open(
		t.Context(),
		storetest.New(t),
		20,
		func(c *pgxpool.Config) { c.ConnConfig.Tracer = alone },
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for _, release := range []bool{false, true} {
		id, c := uuid.New(), &transactional{newCounter(), db, release}
		c.want(id)
		wake(t, db, start(t, db, worker.Options{Sweep: never}, c), id)
		testenv.Until(t, "the key is done and free", func() bool { return c.finished() && !leaseState(t, db, id) })
	}
	if n := alone.Load(); n != 0 {
		t.Errorf("%d transactions of leases", n)
	}
}

// leaseStatements counts statements that change a lease outside of a transaction and of a batch.
type leaseStatements struct{ storetest.Trips }

// TraceQueryStart implements pgx.QueryTracer.
func (n *leaseStatements) TraceQueryStart(
	ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData,
) context.Context {
	if conn.PgConn().TxStatus() == 'I' && strings.Contains(q.SQL, "Lease :") {
		n.Add(1)
	}
	return ctx
}

// TraceBatchStart implements pgx.BatchTracer.
func (*leaseStatements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// A key that another instance works on is no failure, which would delay it.
func TestTransactionalLane_HeldElsewhereIsNoFailure(t *testing.T) {
	t.Parallel()
	db, id := open(t), uuid.New()
	if _, err := db.Pool.Exec(
		t.Context(),
		"insert into leases (key, holder, fence, held_until) values ($1, $2, 1, 'infinity')",
		"counter:"+id.String(),
		uuid.New(),
	); err != nil {
		t.Fatal(err)
	}
	var log logBuffer
	c := &transactional{newCounter(), db, false}
	opt := worker.Options{Sweep: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))}
	c.want(id)
	start(t, db, opt, c)
	sweeps := c.sweeps.Load()
	testenv.Until(t, "the key is found and held elsewhere", func() bool { return c.sweeps.Load() > sweeps+5 })
	if c.finished() {
		t.Error("worked on although held elsewhere")
	}
	if _, err := db.Pool.Exec(t.Context(), "update leases set held_until = '-infinity'"); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the sweep finds the key after its release", c.finished)
	if text := log.String(); strings.Contains(text, "work failed") {
		t.Error(text)
	}
}

// A key whose rows are locked is a failure: another instance may not be the cause.
func TestTransactionalLane_LockTimeoutIsLogged(t *testing.T) {
	t.Parallel()
	db, id := open(t), uuid.New()
	var log logBuffer
	l := &byTransaction{transactional: transactional{counter: newCounter(), db: db}}
	l.drain = func(ctx context.Context, _ *worker.Lease, _ uuid.UUID) error {
		return db.InTxOnce(ctx, func(store.Tx) error { return &pgconn.PgError{Code: "55P03"} })
	}
	opt := worker.Options{Sweep: never, Log: slog.New(slog.NewTextHandler(&log, nil))}
	wake(t, db, start(t, db, opt, l), id)
	testenv.Until(t, "the failure is logged", func() bool { return strings.Contains(log.String(), "work failed") })
}

// logBuffer is a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// What the work leaves for the release is lost with work that failed.
func TestAtRelease_RunsOnlyAfterSuccess(t *testing.T) {
	t.Parallel()
	db, id := open(t), uuid.New()
	l := &byTransaction{transactional: transactional{counter: newCounter(), db: db}}
	var drains, runs atomic.Int32
	l.drain = func(ctx context.Context, lease *worker.Lease, id uuid.UUID) error {
		ok := worker.AtRelease(ctx, func(ctx context.Context, tx store.Tx) error {
			runs.Add(1)
			_, err := tx.Now(ctx)
			return err
		})
		if !ok {
			t.Error("the context has no lease")
		}
		if err := db.InTx(ctx, func(tx store.Tx) error { return lease.Check(ctx, tx) }); err != nil {
			return err
		}
		if drains.Add(1) == 1 {
			return errors.New("fails")
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.done[id] = l.wanted[id]
		return nil
	}
	l.want(id)
	start(t, db, worker.Options{Sweep: 20 * time.Millisecond}, l)
	testenv.Until(t, "the second drain succeeds", l.finished)
	testenv.Until(t, "the lease is released", func() bool { return !leaseState(t, db, id) })
	if n := runs.Load(); n != 2 { // one query is a step that runs twice
		t.Errorf("%d runs of the query, want 2", n)
	}
	if worker.AtRelease(t.Context(), nil) {
		t.Error("a context without a lease took a query")
	}
}
