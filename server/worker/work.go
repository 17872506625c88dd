// Package work does keyed work: one holder at a time looks after one key (a device, an account, an
// endpoint), on whichever instance of the server it happens to be.
//
// A wake-up says only "look at this key"; what there is to do stands in the rows of the key and is found by
// looking. So a wake-up may be lost, doubled or late without harm: whoever takes the key's lease drains what
// is due, releases, and looks once more, and a sweep wakes keys that are due and held by nobody. The package
// must not know what devices and endpoints are.
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
	// Name is the lane's own, such as "device"; the lease of a key is named "<lane>:<id>".
	Name() string
	// Due says whether there is something to do for the key now.
	Due(ctx context.Context, id uuid.UUID) (bool, error)
	// Drain does what is due. It records results only in transactions that have passed lease.Check, ends
	// with its context, and says after how long to look again (0: when woken).
	Drain(ctx context.Context, lease *Lease, id uuid.UUID) (again time.Duration, err error)
	// Sweep lists keys that are due and held by nobody, the longest due first, but for those of crowds.
	Sweep(ctx context.Context, limit int32, but Crowds) ([]uuid.UUID, error)
}

// wakeUp says: look at this key. Between processes it travels as a job.
type wakeUp struct {
	Lane string    `json:"lane"`
	ID   uuid.UUID `json:"id"`
}

func (wakeUp) Kind() string { return "wake_up" }

// Waker wakes keys. It works without a running engine: whoever runs one gets to them.
type Waker struct {
	db      *store.DB
	client  *river.Client[pgx.Tx]
	engines sync.Map // lane → *Engine of this process that is at work on it
}

// NewWaker makes a Waker on db.
func NewWaker(db *store.DB) (*Waker, error) {
	// A client tells engines of what it inserts at most once in this time; what falls in between waits for their poll, of a second.
	c, err := river.NewClient(riverpgxv5.New(db.Pool), &river.Config{FetchCooldown: river.FetchCooldownMin})
	if err != nil {
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	return &Waker{db: db, client: c}, nil
}

// Wake asks, in the transaction of a change, for the key to be looked at once the change is committed. An
// engine of this process is told without a job, which would cost the database more than most changes do.
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
		own, err := tx.Begun(ctx)
		if err != nil {
			return err
		}
		jobs := make([]river.InsertManyParams, len(some))
		for i, id := range some {
			jobs[i] = river.InsertManyParams{Args: wakeUp{lane, id}, InsertOpts: &river.InsertOpts{Queue: lane, MaxAttempts: 1}}
		}
		if _, err := w.client.InsertManyTx(ctx, own, jobs); err != nil {
			return fmt.Errorf("wake %d of %s: %w", len(some), lane, err)
		}
	}
	return nil
}

// WakeIf is Wake before it is known whether there will be anything to look at: wanted says so once the change is
// committed. Where no engine of this process is told, others are asked to look all the same.
func (w *Waker) WakeIf(ctx context.Context, tx store.Tx, lane string, id uuid.UUID, wanted *bool) error {
	if e, ok := w.engines.Load(lane); ok {
		cause := traces.CauseOf(ctx)
		tx.Then(func() {
			if wanted == nil || *wanted {
				e.(*Engine).here(wakeUp{lane, id}, cause, true)
			}
		})
		return nil
	}
	own, err := tx.Begun(ctx)
	if err != nil {
		return err
	}
	if _, err := w.client.InsertTx(ctx, own, wakeUp{lane, id}, &river.InsertOpts{Queue: lane, MaxAttempts: 1}); err != nil {
		return fmt.Errorf("wake %s %s: %w", lane, id, err)
	}
	return nil
}
