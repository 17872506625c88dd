package work_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/work"
)

// owned is a counter whose keys are somebody's, and whose sweep finds a few of the longest due at a time.
type owned struct {
	*counter
	owners map[uuid.UUID]work.Owners
	keys   []uuid.UUID // the longest due first
	found  int         // by one sweep

	hanging sync.Map      // keys that are at work and hang
	hang    chan struct{} // until it is closed
}

func newOwned() *owned {
	o := &owned{counter: newCounter(), owners: map[uuid.UUID]work.Owners{}, hang: make(chan struct{})}
	return o
}

// add makes a key that is due; it hangs, or does not.
func (o *owned) add(of work.Owners) uuid.UUID {
	id := uuid.New()
	o.owners[id] = of
	o.keys = append(o.keys, id)
	o.want(id)
	return id
}

func (o *owned) hangs(of uuid.UUID) {
	o.during = func(ctx context.Context, _ *work.Lease, id uuid.UUID) error {
		if own := o.owners[id]; own.Narrow != of && own.Wide != of {
			return nil
		}
		o.hanging.Store(id, true)
		select {
		case <-o.hang:
		case <-ctx.Done():
		}
		return nil
	}
}

func (o *owned) atWork() (n int) {
	o.hanging.Range(func(any, any) bool { n++; return true })
	return n
}

func (o *owned) Owners(_ context.Context, id uuid.UUID) (work.Owners, error) {
	return o.owners[id], nil
}

func (o *owned) Sweep(ctx context.Context, limit int32, but work.Crowds) (ids []uuid.UUID, _ error) {
	if but.Narrow == nil || but.Wide == nil {
		panic("a list of owners is nil")
	}
	due, err := o.counter.Sweep(ctx, limit, but)
	for _, id := range o.keys {
		own := o.owners[id]
		if len(ids) < o.found && slices.Contains(due, id) && !slices.Contains(but.Narrow, own.Narrow) && !slices.Contains(but.Wide, own.Wide) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

func (o *owned) isDone(id uuid.UUID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done[id] > 0
}

// The locks of an account, or the accounts of a customer, that hang hold no more workers than their share, and nobody
// else's wait for them.
func TestKeysOfOneOwnerLeaveRoomForThoseOfOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of    func(owner uuid.UUID) work.Owners
		share int
	}{
		"narrow": {func(owner uuid.UUID) work.Owners { return work.Owners{Narrow: owner, Wide: uuid.New()} }, 8},
		"wide":   {func(owner uuid.UUID) work.Owners { return work.Owners{Narrow: uuid.New(), Wide: owner} }, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			c, hog := newOwned(), uuid.New()
			c.hangs(hog)
			var hogs []uuid.UUID
			for range 60 {
				hogs = append(hogs, c.add(test.of(hog)))
			}
			other, nobodys := c.add(test.of(uuid.New())), c.add(work.Owners{})
			w := start(t, db, work.Options{Sweep: never, Workers: 40}, c)
			for _, id := range hogs {
				wake(t, db, w, id)
			}
			until(t, "the share is taken", func() bool { return c.atWork() == test.share })
			wake(t, db, w, other)
			wake(t, db, w, nobodys)
			until(t, "the others are done", func() bool { return c.isDone(other) && c.isDone(nobodys) })
			if n := c.atWork(); n != test.share {
				t.Errorf("%d are at work", n)
			}
			close(c.hang)
			until(t, "all are done", c.finished)
		})
	}
}

// So many keys of one owner are due that the sweep would find no others, and those that were woken have no room to wait.
func TestSweepLooksPastAnOwnerOfWhomTooManyAreInHand(t *testing.T) {
	t.Parallel()
	db := open(t)
	c, hog := newOwned(), uuid.New()
	c.found = 100
	c.hangs(hog)
	var hogs []uuid.UUID
	for range 600 {
		hogs = append(hogs, c.add(work.Owners{Narrow: hog}))
	}
	other := c.add(work.Owners{Narrow: uuid.New()})
	w := start(t, db, work.Options{Sweep: 20 * time.Millisecond}, c)
	for _, id := range hogs {
		wake(t, db, w, id)
	}
	until(t, "the sweep finds the other", func() bool { return c.isDone(other) })
	close(c.hang)
	until(t, "all are done", c.finished)
}
