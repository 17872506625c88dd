package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// brokenLane is a lane whose sweeps end only with an error that the test sends.
type brokenLane struct {
	*counter
	errs chan error
}

func (b brokenLane) Sweep(ctx context.Context, _ int32, _ worker.Saturated) ([]uuid.UUID, error) {
	select {
	case err := <-b.errs:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Failing sweeps are progress, because a restart does not repair the database. A sweep that never ends is none.
func TestHeartbeat_DependsOnProgressOnly(t *testing.T) {
	t.Parallel()
	b := brokenLane{newCounter(), make(chan error)}
	db, err := store.Open(t.Context(), storetest.New(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	e, err := worker.NewEngine(newWaker(t, db), worker.Options{Sweep: 20 * time.Millisecond}, b)
	if err == nil {
		err = e.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop(context.WithoutCancel(t.Context())) })
	started, swept := e.Heartbeat(), e.LastSweep()
	for range 3 {
		b.errs <- errors.New("the database rejects queries")
	}
	testenv.Until(t, "the heart beats", func() bool { return e.Heartbeat().After(started) })
	if e.LastSweep() != swept {
		t.Error("a failed sweep counts as successful")
	}
	// The next sweep waits for the test. A second look at the same time finds no progress.
	testenv.Until(t, "a sweep hangs", func() bool {
		at := e.Heartbeat()
		<-time.After(5 * 20 * time.Millisecond)
		return e.Heartbeat().Equal(at)
	})
}
