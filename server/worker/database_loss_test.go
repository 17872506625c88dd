package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// queryingLane is a lane that queries the database for its work.
type queryingLane struct {
	*counter
	db *store.DB
}

func (a queryingLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	if _, err := a.db.Now(ctx); err != nil {
		return false, err
	}
	return a.counter.Due(ctx, id)
}

func (a queryingLane) Sweep(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	if _, err := a.db.Now(ctx); err != nil {
		return nil, err
	}
	return a.counter.Sweep(ctx, limit, but)
}

func (a queryingLane) Owners(ctx context.Context, keys []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	_, err := a.db.Now(ctx)
	return nil, err
}

// The database's machine disappears without closing its connections, and another machine has its address. Work and
// health checks continue there, although all old connections wait for answers that never come.
func TestWorkContinues_WhenDatabaseHostDisappears(t *testing.T) {
	t.Parallel()
	line := storetest.NewLine(t)
	db, err := store.Open(t.Context(), storetest.New(t)+"&pool_ping_timeout=1s", 16, line.Through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	c := newCounter()
	w := newWaker(t, db)
	e, err := worker.NewEngine(
		w,
		worker.Options{Sweep: 20 * time.Millisecond, LeaseTTL: 3 * time.Second},
		queryingLane{c, db},
	)
	if err == nil {
		err = e.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop(context.WithoutCancel(t.Context())) })
	var all errgroup.Group
	for range 16 { // more idle connections than are used
		all.Go(func() error { _, err := db.Pool.Exec(t.Context(), "select pg_sleep(0.1)"); return err })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the connections are idle", func() bool { return db.Pool.Stat().IdleConns() > 8 })
	c.want(uuid.New())
	testenv.Until(t, "the first key is done", c.finished)

	line.Lose()
	gone := time.Now()
	c.want(uuid.New())
	well := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(2*time.Second))
		defer cancel()
		_, err := db.Condition(ctx)
		return err == nil
	}
	for what, ok := range map[string]func() bool{
		"work continues":          c.finished,
		"the lanes are swept":     func() bool { return e.LastSweep().After(gone) },
		"the database is healthy": well,
	} {
		testenv.Until(t, what, ok)
	}
}
