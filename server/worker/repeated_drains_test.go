package worker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// A wake-up during a drain leads to another look. The check for more work after the drain is that look.
func TestWakeUpDuringDrain_NeedsNoFurtherDrain(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	id := uuid.New()
	var drains, others atomic.Int32
	var w *worker.Waker
	begun := make(chan struct{})
	next := func() {
		other := uuid.New()
		c.want(other)
		wake(t, db, w, other)
	}
	c.during = func(_ context.Context, _ *worker.Lease, key uuid.UUID) error {
		switch {
		case key != id && others.Add(1) < 20:
			next()
		case key == id && drains.Add(1) == 1:
			<-begun
			c.want(id)
			wake(t, db, w, id)
			next() // the keys share one slot, so another turn of the first key is among theirs
		}
		return nil
	}
	w = start(t, db, worker.Options{Sweep: never, Workers: 1}, c)
	c.want(id)
	wake(t, db, w, id)
	close(begun)
	testenv.Until(t, "all keys are done", func() bool { return others.Load() >= 20 && c.finished() })
	if n := drains.Load(); n != 2 {
		t.Errorf("%d drains, want the first one and one for what came up during it", n)
	}
}

// The delay that the last drain returns replaces those of earlier drains.
func TestDrainWithoutDelay_CancelsEarlierDelay(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := &delays{counter: newCounter(), of: map[uuid.UUID]func(drain int32) time.Duration{}}
	id, other := uuid.New(), uuid.New()
	const delay = 50 * time.Millisecond
	var w *worker.Waker
	c.of[id] = func(drain int32) time.Duration {
		if drain > 1 {
			return 0
		}
		c.want(id)
		wake(t, db, w, id)
		return delay
	}
	c.of[other] = func(int32) time.Duration { return delay }
	w = start(t, db, worker.Options{Sweep: never}, c)
	wake(t, db, w, id)
	testenv.Until(t, "the key has drained twice", func() bool { return c.drains(id) >= 2 })
	wake(t, db, w, other) // its delays end after that of the first drain
	testenv.Until(t, "the delay is over", func() bool { return c.drains(other) >= 3 })
	if n := c.drains(id); n != 2 {
		t.Errorf("%d drains, want 2", n)
	}
}

// delays is a counter whose drains return different delays.
type delays struct {
	*counter
	of   map[uuid.UUID]func(drain int32) time.Duration
	runs sync.Map // key → *atomic.Int32
}

func (d *delays) drains(id uuid.UUID) int32 { return d.counterOf(id).Load() }

func (d *delays) counterOf(id uuid.UUID) *atomic.Int32 {
	n, _ := d.runs.LoadOrStore(id, &atomic.Int32{})
	return n.(*atomic.Int32)
}

func (d *delays) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	if _, err := d.counter.Drain(ctx, lease, id); err != nil {
		return 0, err
	}
	return d.of[id](d.counterOf(id).Add(1)), nil
}
