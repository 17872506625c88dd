package worker_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// owned is a counter whose keys have owners. Its sweep finds a limited number of keys, the longest due first.
type owned struct {
	*counter
	owners map[uuid.UUID]worker.Owners
	keys   []uuid.UUID // the longest due first
	found  int         // per sweep

	// first is the number of the sweep that found each key.
	first map[uuid.UUID]int

	doubted sync.Map      // keys
	hanging sync.Map      // keys whose work hangs
	hang    chan struct{} // closed to end the hanging
}

func newOwned() *owned {
	return &owned{
		counter: newCounter(),
		owners:  map[uuid.UUID]worker.Owners{},
		first:   map[uuid.UUID]int{},
		hang:    make(chan struct{}),
	}
}

// of returns a function that reports whether owner owns a key that existed before.
func (o *owned) of(owner uuid.UUID) func(id uuid.UUID) bool {
	return func(id uuid.UUID) bool {
		own := o.owners[id]
		return slices.Contains([]uuid.UUID{own.Account, own.Workspace, own.Creator}, owner)
	}
}

// add creates a due key.
func (o *owned) add(of worker.Owners) uuid.UUID {
	id := uuid.New()
	o.owners[id] = of
	o.keys = append(o.keys, id)
	o.want(id)
	return id
}

// hangs makes the work on some keys hang.
func (o *owned) hangs(which func(id uuid.UUID) bool) {
	o.during = func(ctx context.Context, _ *worker.Lease, id uuid.UUID) error {
		if !which(id) {
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

func (o *owned) Owners(_ context.Context, keys []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	owners := map[uuid.UUID]worker.Owners{}
	for _, key := range keys {
		owners[key] = o.owners[key]
	}
	return owners, nil
}

// IsSuspect implements worker.Suspectable.
func (o *owned) IsSuspect(id uuid.UUID) bool {
	_, doubted := o.doubted.Load(id)
	return doubted
}

func (o *owned) Sweep(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	if but.Accounts == nil || but.Workspaces == nil || but.Creators == nil || but.SuspectWorkspaces == nil ||
		but.SuspectCreators == nil {
		panic("a list of saturated owners is nil")
	}
	ids, err := o.counter.Sweep(ctx, limit, but)
	due := map[uuid.UUID]bool{}
	for _, id := range ids {
		due[id] = true
	}
	ids = nil
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range o.keys {
		own := o.owners[id]
		if len(ids) < min(o.found, int(limit)) && due[id] && !slices.Contains(but.Accounts, own.Account) &&
			!slices.Contains(but.Workspaces, own.Workspace) &&
			!slices.Contains(but.Creators, own.Creator) &&
			(!o.IsSuspect(id) ||
				!but.Suspect && !slices.Contains(but.SuspectWorkspaces, own.Workspace) &&
					!slices.Contains(but.SuspectCreators, own.Creator)) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if o.first[id] == 0 {
			o.first[id] = int(o.sweeps.Load())
		}
	}
	return ids, err
}

// foundIn returns the number of the sweep that found a key.
func (o *owned) foundIn(id uuid.UUID) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first[id]
}

func (o *owned) isDone(id uuid.UUID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done[id] > 0
}

// madeBy returns the owners of a key whose customer has no other keys. The creator may have created many such
// customers.
func madeBy(maker uuid.UUID) worker.Owners {
	return worker.Owners{Account: uuid.New(), Workspace: uuid.New(), Creator: maker}
}

// Hanging locks of one account, or accounts of one customer, use no more workers than their share. Keys of other owners
// do not wait for them.
func TestOneOwnersKeysLeaveWorkersToOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of    func(owner uuid.UUID) worker.Owners
		share int
	}{
		"narrow": {func(owner uuid.UUID) worker.Owners { return worker.Owners{Account: owner, Workspace: uuid.New()} }, 8},
		"wide":   {func(owner uuid.UUID) worker.Owners { return worker.Owners{Account: uuid.New(), Workspace: owner} }, 30},
		"maker":  {madeBy, 35},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			c, hog := newOwned(), uuid.New()
			c.hangs(c.of(hog))
			var hogs []uuid.UUID
			for range 60 {
				hogs = append(hogs, c.add(test.of(hog)))
			}
			other, unowned := c.add(test.of(uuid.New())), c.add(worker.Owners{})
			w := start(t, db, worker.Options{Sweep: never, Workers: 40}, c)
			wake(t, db, w, hogs...)
			testenv.Until(t, "the share is used up", func() bool { return c.atWork() == test.share })
			wake(t, db, w, other)
			wake(t, db, w, unowned)
			testenv.Until(t, "the other keys are done", func() bool { return c.isDone(other) && c.isDone(unowned) })
			if n := c.atWork(); n != test.share {
				t.Errorf("%d keys are being worked on", n)
			}
			close(c.hang)
			testenv.Until(t, "all keys are done", c.finished)
		})
	}
}

// Recording the results of an account's many locks, or of a customer's many accounts, uses no more database connections
// than their quota. Work of other owners does not wait for it.
func TestOneOwnersKeysLeaveConnectionsToOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of   func(owner uuid.UUID) worker.Owners
		part int // of five
	}{
		"narrow":   {func(owner uuid.UUID) worker.Owners { return worker.Owners{Account: owner, Workspace: uuid.New()} }, 2},
		"wide":     {func(owner uuid.UUID) worker.Owners { return worker.Owners{Account: uuid.New(), Workspace: owner} }, 3},
		"accounts": {func(owner uuid.UUID) worker.Owners { return worker.Owners{Workspace: owner} }, 3},
		"maker":    {madeBy, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			c, hog := newOwned(), uuid.New()
			c.hangs(c.of(hog))
			hang := c.during
			c.during = func(ctx context.Context, lease *worker.Lease, id uuid.UUID) error {
				return db.InTx(ctx, func(tx store.Tx) error {
					if err := lease.Check(ctx, tx); err != nil {
						return err
					}
					return hang(ctx, lease, id)
				})
			}
			var hogs []uuid.UUID
			for range 8 {
				hogs = append(hogs, c.add(test.of(hog)))
			}
			other := c.add(test.of(uuid.New()))
			w := start(t, db, worker.Options{Sweep: never, Workers: 40}, c)
			wake(t, db, w, hogs...)
			testenv.Until(t, "the quota is used up", func() bool { return c.atWork() == test.part })
			wake(t, db, w, other)
			testenv.Until(t, "the other key is done", func() bool { return c.isDone(other) })
			if n := c.atWork(); n != test.part {
				t.Errorf("%d keys are being worked on", n)
			}
			close(c.hang)
			testenv.Until(t, "all keys are done", c.finished)
		})
	}
}

// Due keys of one owner fill the sweep's result, and the woken ones have no room to wait.
func TestSweepSkipsSaturatedOwner(t *testing.T) {
	t.Parallel()
	db := open(t)
	c, hog := newOwned(), uuid.New()
	c.found = 100
	c.hangs(c.of(hog))
	var hogs []uuid.UUID
	for range 600 {
		hogs = append(hogs, c.add(worker.Owners{Account: hog}))
	}
	other := c.add(worker.Owners{Account: uuid.New()})
	w := start(t, db, worker.Options{Sweep: 20 * time.Millisecond}, c)
	wake(t, db, w, hogs...)
	testenv.Until(t, "the sweep finds the other key", func() bool { return c.isDone(other) })
	close(c.hang)
	testenv.Until(t, "all keys are done", c.finished)
}

// Due keys of one owner fill sweep after sweep, although each is done immediately.
func TestSweepSkipsOwnerWithManyQuickKeys(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newOwned()
	c.found = 3000
	hog := uuid.New()
	for range 3000 {
		c.add(worker.Owners{Account: hog})
	}
	other := c.add(worker.Owners{Account: uuid.New()})
	start(t, db, worker.Options{Sweep: 20 * time.Millisecond}, c)
	testenv.Until(t, "the other key is done", func() bool { return c.isDone(other) })
	if n := c.foundIn(other); n > 2 {
		t.Errorf("sweep %d has found it, want the second at the latest", n)
	}
	testenv.Until(t, "all keys are done", c.finished)
}

// Swept keys that hang leave room for a woken key.
func TestWokenKeysDoNotWaitForSweptOnes(t *testing.T) {
	t.Parallel()
	db := open(t)
	c, account := newOwned(), uuid.New()
	c.found = 300
	urgent := uuid.New()
	c.hangs(func(id uuid.UUID) bool { return id != urgent })
	for range 60 {
		c.add(worker.Owners{Account: account})
	}
	w := start(t, db, worker.Options{Sweep: 20 * time.Millisecond, Workers: 40}, c)
	testenv.Until(t, "the swept keys have their slots", func() bool { return c.atWork() == 6 })
	c.mu.Lock()
	c.owners[urgent] = worker.Owners{Account: account}
	c.mu.Unlock()
	c.want(urgent)
	wake(t, db, w, urgent)
	testenv.Until(t, "the urgent key is done", func() bool { return c.isDone(urgent) })
	close(c.hang)
	testenv.Until(t, "all keys are done", c.finished)
}

// The sweep finds a key that had no room as soon as there is room, before the next regular sweep.
func TestSweepFindsKeysOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	db := open(t)
	c, account := newOwned(), uuid.New()
	c.found = 1000
	c.hangs(c.of(account))
	var ids []uuid.UUID
	for range 300 {
		ids = append(ids, c.add(worker.Owners{Account: account}))
	}
	w := start(t, db, worker.Options{Sweep: never, Workers: 40}, c)
	wake(t, db, w, ids...)
	testenv.Until(t, "the share is used up", func() bool { return c.atWork() == 8 })
	close(c.hang)
	testenv.Until(t, "all keys are done", c.finished)
}

// One creator has so many customers with few keys each that these could fill the lane.
func TestOneCreatorsManyCustomersLeaveRoom(t *testing.T) {
	t.Parallel()
	db := open(t)
	c, maker := newOwned(), uuid.New()
	c.found = 10_000
	c.hangs(c.of(maker))
	for range 4200 {
		c.add(madeBy(maker))
	}
	other, found := c.add(madeBy(uuid.New())), c.add(madeBy(uuid.New()))
	w := start(t, db, worker.Options{Sweep: 20 * time.Millisecond, Workers: 40}, c)
	wake(
		t,
		db,
		w,
		slices.DeleteFunc(
			slices.Collect(maps.Keys(c.owners)),
			func(id uuid.UUID) bool { return id == other || id == found },
		)...)
	testenv.Until(t, "the share is used up", func() bool { return c.atWork() == 35 })
	wake(t, db, w, other)
	testenv.Until(
		t,
		"the other key and the swept one are done",
		func() bool { return c.isDone(other) && c.isDone(found) },
	)
	if n := c.atWork(); n != 35 {
		t.Errorf("%d keys are being worked on", n)
	}
	close(c.hang)
	testenv.Until(t, "all keys are done", c.finished)
}

// Keys of many owners hang, as when a shared dependency is down, or keys of one owner. Healthy keys are still done,
// woken or swept, also those of the same owner. A key that recovers counts as healthy.
func TestSuspectKeysLeaveRoomForHealthyOnes(t *testing.T) {
	t.Parallel()
	one := uuid.New()
	for name, test := range map[string]struct {
		of    func() worker.Owners
		share int
	}{
		"of many":          {func() worker.Owners { return madeBy(uuid.New()) }, 35},
		"of one creator":   {func() worker.Owners { return madeBy(one) }, 30},
		"of one workspace": {func() worker.Owners { return worker.Owners{Workspace: one} }, 25},
		"without owner":    {func() worker.Owners { return worker.Owners{} }, 35},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			c := newOwned()
			c.found = 10_000
			for range 2000 { // more than one query finds
				c.doubted.Store(c.add(test.of()), true)
			}
			c.hangs(c.IsSuspect)
			found, mended, other := c.add(test.of()), uuid.New(), uuid.New()
			c.doubted.Store(mended, true)
			c.owners[mended] = test.of() // due once the share is used up, or its own work could hang
			c.keys = append(c.keys, mended)
			c.owners[other] = test.of() // the sweep does not find it
			w := start(t, db, worker.Options{Sweep: 20 * time.Millisecond, Workers: 40}, c)
			wake(
				t,
				db,
				w,
				slices.DeleteFunc(
					slices.Collect(maps.Keys(c.owners)),
					func(id uuid.UUID) bool { return id == other || id == found || id == mended },
				)...)
			testenv.Until(t, "the share is used up", func() bool { return c.atWork() == test.share })
			c.want(mended)
			c.want(other)
			wake(t, db, w, other)
			testenv.Until(
				t,
				"the other key and the swept one are done",
				func() bool { return c.isDone(other) && c.isDone(found) },
			)
			if c.isDone(mended) {
				t.Error("a suspect key is done")
			}
			c.doubted.Delete(mended)
			testenv.Until(t, "the recovered key is done", func() bool { return c.isDone(mended) })
			if n := c.atWork(); n != test.share {
				t.Errorf("%d keys are being worked on", n)
			}
			close(c.hang)
			testenv.Until(t, "all keys are done", c.finished)
		})
	}
}

// A due key that becomes suspect no longer counts as healthy.
func TestKeyThatBecomesSuspect_WaitsWithSuspectOnes(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newOwned()
	c.hangs(c.IsSuspect)
	hang := c.during
	c.during = func(ctx context.Context, lease *worker.Lease, id uuid.UUID) error {
		if c.of(uuid.Nil)(id) && !c.IsSuspect(id) {
			c.doubted.Store(id, true)
			c.want(id)
			return nil
		}
		return hang(ctx, lease, id)
	}
	var ids []uuid.UUID
	for range 60 {
		ids = append(ids, c.add(worker.Owners{Workspace: uuid.New()})) // without creator
	}
	other := c.add(madeBy(uuid.New()))
	w := start(t, db, worker.Options{Sweep: never, Workers: 40}, c)
	wake(t, db, w, ids...)
	testenv.Until(t, "the hanging keys have their share", func() bool { return c.atWork() == 35 })
	wake(t, db, w, other)
	testenv.Until(t, "the other key is done", func() bool { return c.isDone(other) })
	if n := c.atWork(); n != 35 {
		t.Errorf("%d keys are being worked on", n)
	}
	close(c.hang)
	testenv.Until(t, "all keys are done", c.finished)
}

// A suspect key waits for those that hang. It stops waiting once it is healthy.
func TestWaitingKey_ClaimedAgainWhenHealthy(t *testing.T) {
	t.Parallel()
	for name, sweep := range map[string]time.Duration{"woken": never, "swept": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			c := newOwned()
			c.found = 10_000
			c.hangs(c.IsSuspect)
			for range 60 {
				c.doubted.Store(c.add(madeBy(uuid.New())), true)
			}
			w := start(t, db, worker.Options{Sweep: sweep, Workers: 40}, c)
			wake(t, db, w, slices.Collect(maps.Keys(c.owners))...)
			testenv.Until(t, "the hanging keys have their share", func() bool { return c.atWork() == 35 })
			var waits uuid.UUID
			for id := range c.owners {
				if _, hangs := c.hanging.Load(id); !hangs {
					waits = id
				}
			}
			c.doubted.Delete(waits)
			if sweep == never {
				wake(t, db, w, waits)
			}
			testenv.Until(t, "the key is done", func() bool { return c.isDone(waits) })
			close(c.hang)
			testenv.Until(t, "all keys are done", c.finished)
		})
	}
}

// A key that becomes suspect during its turn continues while suspect keys have free slots. It frees its slot when it
// becomes healthy.
func TestMarkSuspectAndMarkHealthy_DuringTurn(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newOwned()
	type turn struct{ ended, trusted bool }
	turns := make(chan turn, 100)
	goOn := make(chan struct{})
	c.during = func(ctx context.Context, _ *worker.Lease, id uuid.UUID) error {
		c.doubted.Store(id, true)
		if !worker.MarkSuspect(ctx) {
			c.want(id) // the key is still due
			turns <- turn{ended: true}
			return nil
		}
		turns <- turn{}
		select {
		case <-goOn:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.doubted.Delete(id)
		turns <- turn{trusted: true} // before another key gets the slot
		worker.MarkHealthy(ctx)
		select {
		case <-c.hang:
		case <-ctx.Done():
		}
		return nil
	}
	var ids []uuid.UUID
	// one more than seven eighths of the workers
	for range 18 {
		ids = append(ids, c.add(madeBy(uuid.New())))
	}
	w := start(t, db, worker.Options{Sweep: never, Workers: 20}, c)
	count := func(n int, want turn) {
		t.Helper()
		for range n {
			select {
			case got := <-turns:
				if got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
				t.Fatalf("timeout waiting for %+v", want)
			}
		}
	}
	wake(t, db, w, ids[1:]...)
	count(17, turn{})
	wake(t, db, w, ids[0])
	count(1, turn{ended: true}) // waits for a slot
	goOn <- struct{}{}
	count(1, turn{trusted: true})
	count(1, turn{})
	close(goOn)
	count(17, turn{trusted: true})
	close(c.hang)
	testenv.Until(t, "all keys are done", c.finished)
}
