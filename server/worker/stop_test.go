package worker_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestStopWaitsForRunningWork(t *testing.T) {
	t.Parallel()
	db := open(t)
	c := newCounter()
	begun, release := make(chan struct{}), make(chan struct{})
	c.during = func(context.Context, *worker.Lease, uuid.UUID) error { close(begun); <-release; return nil }
	w := newWaker(t, db)
	e, err := worker.NewEngine(w, worker.Options{Sweep: never}, c)
	if err == nil {
		err = e.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	c.want(id)
	wake(t, db, w, id)
	<-begun
	type end struct {
		err      error
		finished bool
	}
	stopped, limit := make(chan end, 1), &countingContext{Context: context.Background()}
	go func() { err := e.Stop(limit); stopped <- end{err, c.finished()} }()
	testenv.Until(t, "Stop waits for the work, after the queue", func() bool {
		select {
		case <-stopped:
			t.Fatal("stopped during work")
		default:
		}
		return limit.waits.Load() >= 2
	})
	close(release)
	if end := <-stopped; end.err != nil || !end.finished {
		t.Fatalf("Stop: %v, finished %v", end.err, end.finished)
	}
}

// countingContext counts the calls of Done, that is, how often a goroutine has started to wait.
type countingContext struct {
	context.Context
	waits atomic.Int32
}

func (p *countingContext) Done() <-chan struct{} {
	p.waits.Add(1)
	return p.Context.Done()
}
