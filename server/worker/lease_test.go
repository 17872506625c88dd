package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const (
	frozenDatabase = "WORK_TEST_FROZEN_DATABASE"
	frozenKey      = "WORK_TEST_FROZEN_KEY"
)

// frozenTTL leaves a slow machine time to renew a lease.
var frozenTTL = testenv.Timeout(3 * time.Second)

// A process that was suspended for longer than its lease does no more work under it when it resumes, even if nothing in
// it has noticed the loss.
func TestSuspendedHolderStopsWorking(t *testing.T) {
	t.Parallel()
	if dsn := os.Getenv(frozenDatabase); dsn != "" {
		workUntilLost(t, dsn)
		return
	}
	dsn, id := storetest.New(t), uuid.New()
	db, err := store.Open(t.Context(), dsn, 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuspendedHolderStopsWorking$")
	other.Env = append(os.Environ(), frozenDatabase+"="+dsn, frozenKey+"="+id.String())
	other.Stderr = os.Stderr
	output, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	var last time.Time // last time it worked
	began := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewScanner(output)
		for n := 0; lines.Scan(); {
			if at, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				if last = time.Unix(0, at); n == 0 {
					close(began)
				}
				n++
			}
		}
	})
	select {
	case <-began:
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("the other process has not started")
	}
	if err := other.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c, taken := newCounter(), make(chan time.Time, 1)
	c.during = func(context.Context, *worker.Lease, uuid.UUID) error { taken <- time.Now(); return nil }
	c.want(id)
	start(t, db, worker.Options{Sweep: 20 * time.Millisecond, LeaseTTL: frozenTTL}, c)
	var at time.Time
	select {
	case at = <-taken:
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Fatal("no process has taken over its work")
	}
	if err := other.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	if err := other.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
	if last.After(at) {
		t.Errorf("it worked %s after another process had started", last.Sub(at))
	}
}

// workUntilLost runs in the process that is suspended. It prints the times at which it works.
func workUntilLost(t *testing.T, dsn string) {
	db, err := store.Open(t.Context(), dsn, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, over := newCounter(), make(chan struct{})
	c.during = func(ctx context.Context, _ *worker.Lease, _ uuid.UUID) error {
		defer close(over)
		for step := time.NewTicker(2 * time.Millisecond); ; <-step.C {
			// the process may be suspended between any two lines
			at := time.Now()
			if ctx.Err() != nil || worker.Held(ctx) != nil {
				break
			}
			fmt.Println(at.UnixNano())
		}
		if ctx.Err() == nil {
			t.Error("the context of its work has not ended")
		}
		return nil
	}
	id := uuid.MustParse(os.Getenv(frozenKey))
	c.want(id)
	e, err := worker.NewEngine(newWaker(t, db), worker.Options{Sweep: 20 * time.Millisecond, LeaseTTL: frozenTTL}, c)
	if err == nil {
		err = e.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	<-over
}

// A lease starts when the database grants it, regardless of how long that took.
func TestLease_HeldAfterWaitingForConnection(t *testing.T) {
	t.Parallel()
	db := open(t)
	c, held := newCounter(), make(chan error, 1)
	c.during = func(ctx context.Context, _ *worker.Lease, _ uuid.UUID) error {
		held <- worker.Held(ctx)
		return nil
	}
	ttl := testenv.Timeout(2 * time.Second) // in which started work checks its lease
	start(t, db, worker.Options{Sweep: 20 * time.Millisecond, LeaseTTL: ttl}, c)
	var release []func()
	for range db.Pool.Config().MaxConns {
		conn, err := db.Pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, conn.Release)
	}
	c.want(uuid.New())
	sweeps, begun := c.sweeps.Load(), time.Now()
	testenv.Until(
		t,
		"waiting for the lease takes longer than its TTL",
		func() bool { return c.sweeps.Load() > sweeps+1 && time.Since(begun) > 2*ttl },
	)
	for _, f := range release {
		f()
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// Held passes without a lease, and fails for the zero Lease.
func TestHeld_WithoutLease(t *testing.T) {
	t.Parallel()
	if err := worker.Held(t.Context()); err != nil {
		t.Error(err)
	}
	if err := worker.Held(worker.WithLease(t.Context(), &worker.Lease{})); err == nil {
		t.Error("the zero Lease is held")
	}
}
