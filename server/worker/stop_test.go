package worker_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestStopWaitsForTheWorkInHand(t *testing.T) {
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
	stopped, patience := make(chan end, 1), &patience{Context: context.Background()}
	go func() { err := e.Stop(patience); stopped <- end{err, c.finished()} }()
	testenv.Until(t, "it waits for the work, after the queue", func() bool {
		select {
		case <-stopped:
			t.Fatal("stopped in the middle of work")
		default:
		}
		return patience.asked.Load() >= 2
	})
	close(release)
	if end := <-stopped; end.err != nil || !end.finished {
		t.Fatalf("stopped with %v, finished %v", end.err, end.finished)
	}
}

// patience is a context that counts how often somebody has begun to wait until it ends, or for something else.
type patience struct {
	context.Context
	asked atomic.Int32
}

func (p *patience) Done() <-chan struct{} {
	p.asked.Add(1)
	return p.Context.Done()
}
