package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// A failing key gets growing delays on the test's clock, unless it is woken. Other keys get none.
func TestFailingKey_RetriedWhenWokenOrAfterBackoff(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	bad, good := uuid.New(), uuid.New()
	var runs atomic.Int32
	var broken atomic.Bool
	broken.Store(true)
	c.during = func(_ context.Context, _ *worker.Lease, id uuid.UUID) error {
		if id != bad {
			return nil
		}
		runs.Add(1)
		if broken.Load() {
			return errors.New("its adapter is missing")
		}
		return nil
	}
	var ahead atomic.Int64
	base := time.Now()
	w := start(
		t,
		db,
		worker.Options{
			Sweep: 5 * time.Millisecond,
			Now:   func() time.Time { return base.Add(time.Duration(ahead.Load())) },
		},
		c,
	)
	runsAre := func(when string, want int32) {
		t.Helper()
		testenv.Until(t, when, func() bool { return runs.Load() >= want })
		swept := c.sweeps.Load()
		testenv.Until(t, "more sweeps have run", func() bool { return c.sweeps.Load() >= swept+5 })
		if n := runs.Load(); n != want {
			t.Fatalf("%s: it was tried %d times, want %d", when, n, want)
		}
	}
	c.want(bad)
	runsAre("at first", 1)
	c.want(good)
	testenv.Until(
		t,
		"the other key is done",
		func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.done[good] == 1 },
	)
	wake(t, db, w, bad)
	runsAre("woken", 2)
	ahead.Add(int64(time.Hour))
	runsAre("after its pause", 3)
	broken.Store(false)
	wake(t, db, newWaker(t, db), bad) // by another process
	runsAre("woken after the repair", 4)
	testenv.Until(t, "the key is done", c.finished)
}
