package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// counter is a lane whose work raises done to wanted. Both are in memory that all engines of a test share, like rows.
type counter struct {
	mu           sync.Mutex
	wanted, done map[uuid.UUID]int
	inside       map[uuid.UUID]int
	overlaps     atomic.Int32
	sweeps       atomic.Int32
	during       func(ctx context.Context, lease *worker.Lease, id uuid.UUID) error // nil: nothing
	checked      func(id uuid.UUID)                                                 // called after each check of Due; nil: nothing
	again        time.Duration
}

func newCounter() *counter {
	return &counter{wanted: map[uuid.UUID]int{}, done: map[uuid.UUID]int{}, inside: map[uuid.UUID]int{}}
}

func (*counter) Name() string { return "counter" }

func (c *counter) Due(_ context.Context, id uuid.UUID) (bool, error) {
	c.mu.Lock()
	due := c.done[id] < c.wanted[id]
	c.mu.Unlock()
	if c.checked != nil {
		c.checked(id)
	}
	return due, nil
}

func (c *counter) Sweep(context.Context, int32, worker.Saturated) (ids []uuid.UUID, _ error) {
	c.sweeps.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.wanted {
		if c.done[id] < c.wanted[id] && c.inside[id] == 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (c *counter) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	c.mu.Lock()
	if c.inside[id]++; c.inside[id] > 1 {
		c.overlaps.Add(1)
	}
	target := c.wanted[id]
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.inside[id]--; c.mu.Unlock() }()
	if c.during != nil {
		if err := c.during(ctx, lease, id); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[id] = target
	return c.again, nil
}

func (c *counter) want(id uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted[id]++
}

func (c *counter) finished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.wanted {
		if c.done[id] < n {
			return false
		}
	}
	return true
}

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), storetest.New(t), 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func newWaker(t *testing.T, db *store.DB) *worker.Waker {
	t.Helper()
	w, err := worker.NewWaker(db)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// start runs an engine like another process would, and returns its waker.
func start(t *testing.T, db *store.DB, opt worker.Options, lane worker.Lane) *worker.Waker {
	t.Helper()
	w := newWaker(t, db)
	e, err := worker.NewEngine(w, opt, lane)
	if err == nil {
		err = e.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return w
}

func wake(t *testing.T, db *store.DB, w *worker.Waker, ids ...uuid.UUID) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx store.Tx) error {
		for _, id := range ids {
			if err := w.Wake(t.Context(), tx, "counter", id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// interval that disables sweeps, so that only wake-ups start work.
const never = time.Hour

func TestWakeUps_OneHolderPerKeyAndNoneLost(t *testing.T) {
	t.Parallel()
	for name, laneOf := range map[string]func(*counter, *store.DB) worker.Lane{
		"a lease of its own":       func(c *counter, _ *store.DB) worker.Lane { return c },
		"acquired by the work":     func(c *counter, db *store.DB) worker.Lane { return &transactional{c, db, false} },
		"and released by the work": func(c *counter, db *store.DB) worker.Lane { return &transactional{c, db, true} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			c := newCounter()
			c.during = func(ctx context.Context, _ *worker.Lease, _ uuid.UUID) error {
				_, err := db.Now(ctx) // gives other engines time to interfere
				return err
			}
			lane := laneOf(c, db)
			wakers := []*worker.Waker{
				start(t, db, worker.Options{Sweep: never, Workers: 20}, lane),
				start(t, db, worker.Options{Sweep: never, Workers: 20}, lane),
				newWaker(t, db), // of a process without engine
			}
			ids := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for i := range 30 {
						id := ids[i%len(ids)]
						c.want(id)
						wake(t, db, wakers[i/len(ids)%len(wakers)], id)
					}
				})
			}
			wg.Wait()
			testenv.Until(t, "all keys are done", c.finished)
			if n := c.overlaps.Load(); n > 0 {
				t.Fatalf("%d times two holders had the same key", n)
			}
		})
	}
}

func TestWake_SameProcessNeedsNoJob(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	w := start(t, db, worker.Options{Sweep: never}, c)
	id := uuid.New()
	c.want(id)
	wake(t, db, w, id)
	testenv.Until(t, "the key is done", c.finished)
	var jobs int
	if err := db.Pool.QueryRow(t.Context(), "select count(*) from river_job").Scan(&jobs); err != nil || jobs != 0 {
		t.Errorf("%d jobs, %v", jobs, err)
	}
}

// There is one slot, and one key is woken again at the end of each of its turns. Another key must not wait for all
// these turns.
func TestWaitingKeysRunBeforeRepeatedOnes(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	busy, waits := uuid.New(), uuid.New()
	const turns = 200
	var w *worker.Waker
	begun := make(chan struct{})
	var order []uuid.UUID
	c.during = func(_ context.Context, _ *worker.Lease, id uuid.UUID) error {
		if order = append(order, id); len(order) == 1 {
			<-begun
		}
		return nil
	}
	c.checked = func(id uuid.UUID) {
		if id == busy && len(order) < turns {
			wake(t, db, w, busy)
		}
	}
	w = start(t, db, worker.Options{Sweep: never, Workers: 1}, c)
	c.want(busy)
	wake(t, db, w, busy)
	testenv.Until(
		t,
		"the first key is being worked on",
		func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.inside[busy] == 1 },
	)
	c.want(waits)
	wake(t, db, w, waits)
	close(begun)
	testenv.Until(t, "both keys are done", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.done[waits] == 1 && c.inside[busy]+c.inside[waits] == 0 && len(order) >= turns
	})
	if n := slices.Index(order, waits); n > turns/2 {
		t.Errorf("the key waited for %d turns of the other one", n)
	}
}

func TestSweepFindsKeysThatWereNotWoken(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	c.want(uuid.New())
	start(t, db, worker.Options{Sweep: 20 * time.Millisecond}, c)
	testenv.Until(t, "the sweep finds the key", c.finished)
}

func TestDrainIsRepeatedAfterItsDelay(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	var runs atomic.Int32
	c.again = 10 * time.Millisecond
	c.during = func(context.Context, *worker.Lease, uuid.UUID) error { runs.Add(1); return nil }
	w := start(t, db, worker.Options{Sweep: never}, c)
	id := uuid.New()
	c.want(id)
	wake(t, db, w, id)
	testenv.Until(t, "three drains have run", func() bool { return runs.Load() >= 3 })
}

func TestFailedDrainIsRetried(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	var runs atomic.Int32
	c.during = func(context.Context, *worker.Lease, uuid.UUID) error {
		if runs.Add(1) == 1 {
			return errors.New("the database was unreachable")
		}
		return nil
	}
	w := start(t, db, worker.Options{Sweep: 20 * time.Millisecond}, c)
	id := uuid.New()
	c.want(id)
	wake(t, db, w, id)
	testenv.Until(t, "the second try succeeds", c.finished)
}

// The holder is suspended for so long that its lease expires. Another holder takes over, and the first can record
// nothing.
func TestExpiredHolder_IsCanceledAndRecordsNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	frozen, recorded := make(chan struct{}), make(chan error, 1)
	var first atomic.Bool
	c.during = func(ctx context.Context, lease *worker.Lease, id uuid.UUID) error {
		if !first.CompareAndSwap(false, true) {
			return nil
		}
		// What a suspended process finds when it resumes: another holder has the key.
		if _, err := db.Pool.Exec(
			context.WithoutCancel(ctx),
			"update leases set fence = fence + 1, held_until = now() - interval '1 second' where key like 'counter:%'",
		); err != nil {
			return err
		}
		close(frozen)
		<-ctx.Done()
		recorded <- db.InTx(context.WithoutCancel(ctx), func(tx store.Tx) error {
			return lease.Check(context.WithoutCancel(ctx), tx)
		})
		return ctx.Err()
	}
	w := start(t, db, worker.Options{Sweep: 20 * time.Millisecond, LeaseTTL: 2 * time.Second}, c)
	id := uuid.New()
	c.want(id)
	wake(t, db, w, id)
	select {
	case <-frozen:
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("no holder has started")
	}
	select {
	case err := <-recorded:
		if !errors.Is(err, worker.ErrLeaseLost) {
			t.Fatalf("the suspended holder could record: %v", err)
		}
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("the suspended holder was not canceled")
	}
	testenv.Until(t, "another holder finishes", c.finished)
}

func TestPanicOfOneKey_EndsNoOtherWork(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	var runs atomic.Int32
	c.during = func(context.Context, *worker.Lease, uuid.UUID) error {
		if runs.Add(1) == 1 {
			panic("an unforeseen case")
		}
		return nil
	}
	start(t, db, worker.Options{Sweep: 20 * time.Millisecond}, c)
	c.want(uuid.New())
	testenv.Until(t, "the second try succeeds", c.finished)
}

// The lease cannot be renewed without a free connection, and expires.
func TestHolderIsCanceled_WhenDatabaseHangs(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	cutOff := make(chan bool, 1)
	var first atomic.Bool
	c.during = func(ctx context.Context, _ *worker.Lease, _ uuid.UUID) error {
		if !first.CompareAndSwap(false, true) {
			return nil
		}
		for range db.Pool.Config().MaxConns { // including the connection that renews the lease
			if conn, err := db.Pool.Acquire(ctx); err == nil {
				defer conn.Release()
			}
		}
		select {
		case <-ctx.Done():
			cutOff <- true
		case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
			cutOff <- false
		}
		return ctx.Err()
	}
	start(t, db, worker.Options{Sweep: 20 * time.Millisecond, LeaseTTL: 300 * time.Millisecond}, c)
	c.want(uuid.New())
	if !<-cutOff {
		t.Fatal("the work continues without a lease")
	}
	testenv.Until(t, "the second try succeeds", c.finished)
}
