package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Options of an Engine. The zero value is for production.
type Options struct {
	Workers  int           // keys of one lane looked after at once; 0: 200
	LeaseTTL time.Duration // after a crash a key is free again this late; 0: 15 s
	Sweep    time.Duration // how often keys that are due and forgotten are looked for; 0: 2 s
	// Undivided is for lanes whose owners need no parts of the database's connections: their work takes few for long.
	Undivided bool
	Now       func() time.Time // for the pauses of keys that fail; nil: time.Now
	Log       *slog.Logger
	Traces    *traces.Traces // nil: there are none
}

// Engine is this instance's part in the work.
type Engine struct {
	waker  *Waker
	db     *store.DB
	opt    Options
	holder uuid.UUID
	// mostInHand is how many keys of a lane are looked at or wait for that: the sweep finds those that are too many. Twice
	// as many are taken until it is known whose they are: who has few has room.
	mostInHand int
	lanes      map[string]Lane
	client     *river.Client[pgx.Tx]

	sweeping  context.Context // ends when no new work is taken
	stopSweep context.CancelFunc
	working   context.Context // ends when the work in hand is cut off
	cutOff    context.CancelFunc
	running   sync.WaitGroup           // the sweep and those who look
	timers    sync.Map                 // wakeUp → *time.Timer
	slots     map[string]chan struct{} // lane → bounds those at work
	shares    map[string]*shares       // lane → of whose keys; nil: they are nobody's
	pauses    *pauses                  // of keys that fail
	hungry    chan string              // lanes of which the sweep may find more than it could begin
	swept     atomic.Int64             // when a sweep of all lanes has last come to its end, in ns since 1970; 0: never
	mu        sync.Mutex
	inHand    map[string]int            // lane → how many of looking
	looking   map[wakeUp]bool           // keys that somebody here looks at or waits for a slot to look at; true: asked for again meanwhile
	waiting   map[wakeUp]*claim         // of keys in looking that wait for their turn
	causes    map[wakeUp][]traces.Cause // of keys in looking that wait to be looked at; only where there are traces
}

const (
	turn         = time.Minute      // after which a key that is still due lets others have its slot
	answer       = 15 * time.Second // of the database, to what is asked to find work and to get it: a lock may be waited for twice. Later it has vanished
	drainTimeout = 10 * time.Minute // after which a holder is cut off: lanes end their drains long before
	fetchers     = 100              // jobs taken up at once
	mostCauses   = 8                // of looking at a key once that are remembered
	leastInHand  = 2000             // see Engine.mostInHand, however few workers there are
)

// NewEngine makes an engine for lanes, which must all have different names. From Start on, what waker wakes of
// them is looked at in this process.
func NewEngine(waker *Waker, opt Options, lanes ...Lane) (*Engine, error) {
	if opt.Workers == 0 {
		opt.Workers = 200
	}
	if opt.LeaseTTL == 0 {
		opt.LeaseTTL = 15 * time.Second
	}
	if opt.Sweep == 0 {
		opt.Sweep = 2 * time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{waker: waker, db: waker.db, opt: opt, holder: uuid.New(), lanes: map[string]Lane{},
		slots: map[string]chan struct{}{}, shares: map[string]*shares{}, mostInHand: max(leastInHand, 2*opt.Workers), hungry: make(chan string, len(lanes)), pauses: newPauses(opt.Sweep, opt.Now), looking: map[wakeUp]bool{}, waiting: map[wakeUp]*claim{}, causes: map[wakeUp][]traces.Cause{}, inHand: map[string]int{}}
	queues, parts := map[string]river.QueueConfig{}, newParts(e.db.Part)
	if opt.Undivided {
		parts = nil
	}
	for _, l := range lanes {
		e.lanes[l.Name()] = l
		e.slots[l.Name()] = make(chan struct{}, opt.Workers)
		if owned, ok := l.(Owned); ok {
			e.shares[l.Name()] = newShares(owned, opt.Workers, e.mostInHand, parts, func() bool { return e.refill(l.Name()) })
		}
		queues[l.Name()] = river.QueueConfig{MaxWorkers: fetchers}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[wakeUp]) error {
		e.here(job.Args, traces.Cause{}, true) // the job has done its part: should this process end now, the sweep of another finds the key
		return nil
	}))
	var err error
	e.client, err = river.NewClient(riverpgxv5.New(e.db.Pool), &river.Config{
		Queues:                      queues,
		Workers:                     workers,
		FetchCooldown:               10 * time.Millisecond, // its default of 100 ms bounds throughput and adds to latency
		CompletedJobRetentionPeriod: 10 * time.Minute,
		CancelledJobRetentionPeriod: 10 * time.Minute,
		DiscardedJobRetentionPeriod: 10 * time.Minute,
		ReindexerIndexNames:         []string{}, // none: cut off by lock_timeout it leaves indexes behind that nobody uses, and there are few jobs
		Logger:                      slog.New(quiet{opt.Log.With("room", "queue").Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	return e, nil
}

// Start begins the work, until Stop.
func (e *Engine) Start(ctx context.Context) error {
	ctx = e.db.Sharing(context.WithoutCancel(ctx))
	e.working, e.cutOff = context.WithCancel(ctx)
	e.sweeping, e.stopSweep = context.WithCancel(e.working)
	if err := e.client.Start(ctx); err != nil {
		e.cutOff()
		return fmt.Errorf("start the job queue: %w", err)
	}
	for name := range e.lanes {
		e.waker.engines.Store(name, e)
	}
	e.swept.Store(time.Now().UnixNano()) // it has its time for the first one
	e.running.Go(e.sweep)
	return nil
}

// Stop takes no new work and waits for the work in hand; when ctx ends, that is cut off.
func (e *Engine) Stop(ctx context.Context) error {
	if e.stopSweep == nil { // it was never started
		return nil
	}
	for name := range e.lanes {
		e.waker.engines.CompareAndDelete(name, e)
	}
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

// Turned is when this engine has last looked through all its lanes for what is due; zero: never.
func (e *Engine) Turned() time.Time {
	if at := e.swept.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Busy counts the keys that this engine works on, by lane.
func (e *Engine) Busy() map[string]int {
	out := map[string]int{}
	for lane, taken := range e.slots {
		out[lane] = len(taken)
	}
	return out
}

// traced looks at a key, and tells of it.
func (e *Engine) traced(ctx context.Context, w wakeUp, c *claim, causes []traces.Cause) (more bool) {
	ctx, span := e.opt.Traces.Work(ctx, w.Lane, w.ID, causes)
	defer span.End()
	outcome, more := e.look(ctx, w, c)
	if span.Set(traces.Outcome(outcome)); outcome == failed {
		span.Fail("work_failed")
	}
	return more
}

// What has come of looking at a key.
const (
	done      = "done"
	elsewhere = "elsewhere" // somebody else works on it
	failed    = "failed"
)

// look works on a key for as long as it is due, unless somebody else does. More is true when its turn is over, or its claim is none any more.
func (e *Engine) look(ctx context.Context, w wakeUp, c *claim) (outcome string, more bool) {
	lane := e.lanes[w.Lane]
	log := e.opt.Log.With("lane", w.Lane, "id", w.ID)
	for begin := time.Now(); ctx.Err() == nil; {
		again, held, err := e.drain(ctx, lane, w.ID)
		if err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "work failed; it is taken up again", "pause", e.pauses.failed(w), "error", err)
			return failed, false
		}
		e.pauses.done(w)
		if !held { // the holder looks once more after letting go, so nothing is missed
			return elsewhere, false
		}
		if again > 0 {
			e.after(w, again)
		}
		due, err := lane.Due(store.Within(ctx, answer), w.ID)
		if err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "could not look once more; the sweep will", "error", err)
		}
		if err != nil || !due {
			return done, false
		}
		if time.Since(begin) > turn || c.stale(w.ID) {
			return done, true
		}
	}
	return done, false
}

// drain takes the lease, lets the lane do what is due, and releases. Held is false when it did not get it.
func (e *Engine) drain(ctx context.Context, lane Lane, id uuid.UUID) (again time.Duration, held bool, err error) {
	lease, err := take(ctx, e.db, lane.Name()+":"+id.String(), e.holder, e.opt.LeaseTTL)
	if err != nil || lease == nil {
		return 0, false, err
	}
	limited, end := context.WithTimeout(Under(ctx, lease), drainTimeout)
	defer end()
	working, cancel := context.WithCancelCause(limited)
	var keeping sync.WaitGroup
	lease.lose = cancel
	keeping.Go(func() { lease.keep(working, e.opt.LeaseTTL) })
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
		e.here(w, traces.Cause{}, false)
	})
	if old, loaded := e.timers.Swap(w, t); loaded {
		old.(*time.Timer).Stop()
	}
}

// quiet leaves out what the queue says about itself in normal times.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
