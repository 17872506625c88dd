// Package worker runs keyed work: at any time, at most one instance of the server works on a key (a device, an account,
// or an endpoint).
//
// A wake-up says only that a key may be due. The rows of the key say what is due. A wake-up can therefore be lost,
// duplicated, or late without harm: the holder of the key's lease processes everything that is due, releases the lease,
// and checks once more. A sweep finds keys that are due and have no holder.
//
// The package must not know what devices and endpoints are.
package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Lane is one kind of key.
type Lane interface {
	// Name returns the unique name of the lane, such as "device". The lease of a key is named "<lane>:<id>".
	Name() string
	// Due reports whether the key has work now.
	Due(ctx context.Context, id uuid.UUID) (bool, error)
	// Drain processes everything that is due for the key. It records results only in transactions that have passed
	// lease.Check, and returns when ctx ends. The result again is the delay until the next look at the key; 0 waits for
	// a wake-up.
	Drain(ctx context.Context, lease *Lease, id uuid.UUID) (again time.Duration, err error)
	// Sweep lists at most limit keys that are due and have no holder, the longest overdue first. It skips keys of
	// saturated owners.
	Sweep(ctx context.Context, limit int32, but Saturated) ([]uuid.UUID, error)
}

// Transactional is a Lane that needs no transactions for its leases alone. The first transaction of its Drain calls
// lease.Check, which acquires the lease, and nothing with an effect outside of the database precedes it.
type Transactional interface {
	Lane
	// DueIn is Due as a single query of the transaction that releases the lease (see store.Tx.Batch). It must compare
	// times with the time of the query: the time of the transaction may precede a wake-up that the query sees.
	DueIn(ctx context.Context, tx store.Tx, id uuid.UUID) (bool, error)
}

// wakeUp asks an engine to look at a key. Between processes it travels as a job.
type wakeUp struct {
	Lane string    `json:"lane"`
	ID   uuid.UUID `json:"id"`
}

func (wakeUp) Kind() string { return "wake_up" }

// Waker wakes keys. It works without a running engine: any process that runs an engine picks the keys up.
type Waker struct {
	db     *store.DB
	client *river.Client[pgx.Tx]
	// lane → *Engine of this process that works on it
	engines sync.Map
}

// NewWaker creates a Waker on db.
func NewWaker(db *store.DB) (*Waker, error) {
	// A client notifies engines of inserted jobs at most once in this time. The engines' poll finds the other jobs
	// within a second.
	c, err := river.NewClient(riverpgxv5.New(db.Pool), &river.Config{FetchCooldown: river.FetchCooldownMin})
	if err != nil {
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	return &Waker{db: db, client: c}, nil
}

// Wake enqueues the key when tx commits. An engine of this process needs no job for that. A job would cost the database
// more than most changes do.
func (w *Waker) Wake(ctx context.Context, tx store.Tx, lane string, id uuid.UUID) error {
	return w.WakeIf(ctx, tx, lane, id, nil)
}

// WakeEach is Wake for many keys of a lane, in few round trips.
func (w *Waker) WakeEach(ctx context.Context, tx store.Tx, lane string, ids []uuid.UUID) error {
	if _, ok := w.engines.Load(lane); ok {
		for _, id := range ids {
			if err := w.Wake(ctx, tx, lane, id); err != nil {
				return err
			}
		}
		return nil
	}
	for some := range slices.Chunk(ids, 1000) {
		own, err := tx.Start(ctx)
		if err != nil {
			return err
		}
		jobs := make([]river.InsertManyParams, len(some))
		for i, id := range some {
			jobs[i] = river.InsertManyParams{
				Args:       wakeUp{lane, id},
				InsertOpts: &river.InsertOpts{Queue: lane, MaxAttempts: 1},
			}
		}
		if _, err := w.client.InsertManyTx(ctx, own, jobs); err != nil {
			return fmt.Errorf("wake %d of %s: %w", len(some), lane, err)
		}
	}
	return nil
}

// WakeIf is Wake for a caller that does not know yet whether the key will be due. The engine of this process reads
// *wanted after the commit; nil means true. Without such an engine, WakeIf always inserts a job.
func (w *Waker) WakeIf(ctx context.Context, tx store.Tx, lane string, id uuid.UUID, wanted *bool) error {
	if e, ok := w.engines.Load(lane); ok {
		cause := traces.CauseOf(ctx)
		tx.AfterCommit(func() {
			if wanted == nil || *wanted {
				e.(*Engine).enqueue(wakeUp{lane, id}, cause, true)
			}
		})
		return nil
	}
	own, err := tx.Start(ctx)
	if err != nil {
		return err
	}
	if _, err := w.client.InsertTx(
		ctx,
		own,
		wakeUp{lane, id},
		&river.InsertOpts{Queue: lane, MaxAttempts: 1},
	); err != nil {
		return fmt.Errorf("wake %s %s: %w", lane, id, err)
	}
	return nil
}
