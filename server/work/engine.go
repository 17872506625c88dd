package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Options of an Engine. The zero value is for production.
type Options struct {
	Workers  int           // keys of one lane looked after at once; 0: 200
	LeaseTTL time.Duration // after a crash a key is free again this late; 0: 15 s
	Sweep    time.Duration // how often keys that are due and forgotten are looked for; 0: 2 s
	Log      *slog.Logger
}

// Engine is this instance's part in the work.
type Engine struct {
	db     *store.DB
	opt    Options
	holder uuid.UUID
	lanes  map[string]Lane
	client *river.Client[pgx.Tx]

	sweeping  context.Context // ends when no new work is taken
	stopSweep context.CancelFunc
	local     context.Context // ends when the work in hand is cut off
	cutOff    context.CancelFunc
	running   sync.WaitGroup // sweep and local looks
	timers    sync.Map       // wakeUp → *time.Timer
	slots     chan struct{}  // bounds the local looks
	mu        sync.Mutex
	looking   map[wakeUp]bool // local looks, waiting or at work
}

const (
	jobTimeout = 10 * time.Minute // a holder lets others have the worker after that
	batch      = 1000             // keys woken by one sweep
)

// NewEngine makes an engine for lanes, which must all have different names.
func NewEngine(db *store.DB, opt Options, lanes ...Lane) (*Engine, error) {
	if opt.Workers == 0 {
		opt.Workers = 200
	}
	if opt.LeaseTTL == 0 {
		opt.LeaseTTL = 15 * time.Second
	}
	if opt.Sweep == 0 {
		opt.Sweep = 2 * time.Second
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{db: db, opt: opt, holder: uuid.New(), lanes: map[string]Lane{},
		slots: make(chan struct{}, opt.Workers), looking: map[wakeUp]bool{}}
	queues := map[string]river.QueueConfig{}
	for _, l := range lanes {
		e.lanes[l.Name()] = l
		queues[l.Name()] = river.QueueConfig{MaxWorkers: opt.Workers}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[wakeUp]) error {
		e.look(ctx, job.Args)
		return nil
	}))
	var err error
	e.client, err = river.NewClient(riverpgxv5.New(db.Pool), &river.Config{
		Queues:                      queues,
		Workers:                     workers,
		FetchCooldown:               10 * time.Millisecond,  // its default of 100 ms bounds throughput and adds to latency
		FetchPollInterval:           100 * time.Millisecond, // for wake-ups that nobody was told of
		JobTimeout:                  jobTimeout,
		RescueStuckJobsAfter:        2 * jobTimeout,
		CompletedJobRetentionPeriod: 10 * time.Minute,
		CancelledJobRetentionPeriod: 10 * time.Minute,
		DiscardedJobRetentionPeriod: 10 * time.Minute,
		Logger:                      slog.New(quiet{opt.Log.With("room", "queue").Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	return e, nil
}

// Start begins the work, until Stop.
func (e *Engine) Start(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if err := e.client.Start(ctx); err != nil {
		return fmt.Errorf("start the job queue: %w", err)
	}
	e.local, e.cutOff = context.WithCancel(ctx)
	e.sweeping, e.stopSweep = context.WithCancel(e.local)
	e.running.Go(e.sweep)
	return nil
}

// Stop takes no new work and waits for the work in hand; when ctx ends, that is cut off.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock() // nothing begins here after that
	e.stopSweep()
	e.mu.Unlock()
	e.timers.Range(func(_, t any) bool { t.(*time.Timer).Stop(); return true })
	err := e.client.Stop(ctx)
	if err != nil && ctx.Err() != nil {
		err = e.client.StopAndCancel(context.WithoutCancel(ctx))
	}
	done := make(chan struct{})
	go func() { e.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	e.cutOff()
	<-done
	if err != nil {
		return fmt.Errorf("stop the job queue: %w", err)
	}
	return nil
}

// look works on a key for as long as it is due, unless somebody else does.
func (e *Engine) look(ctx context.Context, w wakeUp) {
	lane, ok := e.lanes[w.Lane]
	if !ok {
		return // of a version of the program that had it
	}
	log := e.opt.Log.With("lane", w.Lane, "id", w.ID)
	for ctx.Err() == nil {
		again, held, err := e.drain(ctx, lane, w.ID)
		if err != nil && ctx.Err() == nil {
			log.Error("work failed; it is taken up again", "error", err)
			e.after(w, e.opt.Sweep)
			return
		}
		if !held { // the holder looks once more after letting go, so nothing is missed
			return
		}
		if again > 0 {
			e.after(w, again)
		}
		due, err := lane.Due(ctx, w.ID)
		if err != nil && ctx.Err() == nil {
			log.Error("could not look once more; the sweep will", "error", err)
		}
		if err != nil || !due {
			return
		}
	}
}

// drain takes the lease, lets the lane do what is due, and releases. Held is false when it did not get it.
func (e *Engine) drain(ctx context.Context, lane Lane, id uuid.UUID) (again time.Duration, held bool, err error) {
	lease, err := take(ctx, e.db, lane.Name()+":"+id.String(), e.holder, e.opt.LeaseTTL)
	if err != nil || lease == nil {
		return 0, false, err
	}
	working, cancel := context.WithCancelCause(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { lease.keep(working, e.opt.LeaseTTL, cancel) })
	again, err = drain(working, lane, lease, id)
	if lost := context.Cause(working); errors.Is(lost, ErrLost) {
		err = lost
	}
	cancel(nil)
	keeping.Wait()
	return again, true, errors.Join(err, lease.release(ctx))
}

// drain keeps what goes wrong with one key from ending the work on all others.
func drain(ctx context.Context, lane Lane, lease *Lease, id uuid.UUID) (again time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return lane.Drain(ctx, lease, id)
}

// after looks at a key once d has passed. Only the latest wish stands; all may be lost, for the sweep finds
// what is due.
func (e *Engine) after(w wakeUp, d time.Duration) {
	t := time.AfterFunc(d, func() {
		e.timers.Delete(w)
		e.here(w)
	})
	if old, loaded := e.timers.Swap(w, t); loaded {
		old.(*time.Timer).Stop()
	}
}

// here looks at a key in this process, without a job: what the sweep and the timers ask for need not
// outlive it.
func (e *Engine) here(w wakeUp) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sweeping.Err() != nil || e.looking[w] {
		return
	}
	e.looking[w] = true
	e.running.Go(func() {
		defer func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.looking, w)
		}()
		select {
		case e.slots <- struct{}{}:
			defer func() { <-e.slots }()
			ctx, cancel := context.WithTimeout(e.local, jobTimeout)
			defer cancel()
			e.look(ctx, w)
		case <-e.local.Done():
		}
	})
}

func (e *Engine) sweep() {
	for {
		select {
		case <-e.sweeping.Done():
			return
		case <-time.After(e.opt.Sweep/2 + rand.N(e.opt.Sweep)): // instances out of step
		}
		for name, lane := range e.lanes {
			ids, err := lane.Sweep(e.sweeping, batch)
			if err != nil && e.sweeping.Err() == nil {
				e.opt.Log.Error("sweep failed; it is repeated", "lane", name, "error", err)
			}
			for _, id := range ids {
				e.here(wakeUp{name, id})
			}
		}
	}
}

// quiet leaves out what the queue says about itself in normal times.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
