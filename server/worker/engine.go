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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/recurring"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Options configures an Engine. The zero value is for production.
type Options struct {
	// Workers is the number of keys of one lane that the engine works on concurrently; 0 means 200.
	Workers int
	// LeaseTTL is the duration of a lease, after which the keys of a crashed instance are free; 0 means 15 s.
	LeaseTTL time.Duration
	// Sweep is the mean interval between sweeps for overdue keys; 0 means 2 s.
	Sweep time.Duration
	// NoConnQuotas disables connection quotas per owner. It is for lanes whose work holds few database connections for
	// long.
	NoConnQuotas bool
	// Now is the clock for the backoff of failing keys; nil means time.Now.
	Now func() time.Time
	// Log receives failures of work and of sweeps; nil discards them.
	Log *slog.Logger
	// Traces receives a span for each look at a key; nil disables traces.
	Traces *traces.Traces
}

// Engine works on the keys of its lanes in this process.
type Engine struct {
	waker  *Waker
	db     *store.DB
	opt    Options
	holder uuid.UUID
	// maxInHand is the number of keys of a lane that are being worked on or waiting. Wake-ups may add as many again
	// until their owners are known, so that owners with few keys have room. The sweep finds keys that are rejected
	// here.
	maxInHand int
	lanes     map[string]Lane
	client    *river.Client[pgx.Tx]

	// ends when the engine accepts no new work
	sweeping  context.Context
	stopSweep context.CancelFunc
	// ends when Stop cuts off running work
	working context.Context
	cutOff  context.CancelFunc
	running sync.WaitGroup           // the sweep and the workers
	timers  sync.Map                 // wakeUp → *time.Timer
	slots   map[string]chan struct{} // lane → semaphore of workers
	// lane → shares of its owners; nil if its keys have no owners
	shares   map[string]*shares
	backoffs *backoffs // backoff of failing keys
	// lanes with room again, to sweep early
	sweepRequests chan string
	// end of the last successful sweep of all lanes, in Unix nanoseconds; 0 means never
	lastSweep atomic.Int64
	// heartbeat is the time in Unix nanoseconds at which the sweep last made progress, whether it succeeded or not.
	heartbeat atomic.Int64
	mu        sync.Mutex
	// lane → number of its keys in looking
	inHand map[string]int
	// looking holds the keys that are being worked on or waiting for a slot here. The value is true if the key was
	// woken again meanwhile.
	looking map[wakeUp]bool
	// waiting has the claims of keys in looking that wait for their owners' slots.
	waiting map[wakeUp]*claim
	// causes are the traces that woke keys in looking; only with traces enabled.
	causes map[wakeUp][]traces.Cause
}

const (
	// maxTurn is how long a key that stays due keeps its slot while others wait.
	maxTurn = time.Minute
	// queryTimeout bounds the queries that find and claim work; they may wait for a lock twice. After it, the database
	// counts as unreachable.
	queryTimeout = 15 * time.Second
	// drainTimeout bounds one Drain; lanes return much earlier.
	drainTimeout = 10 * time.Minute
	fetchers     = 100 // jobs fetched concurrently
	// maxCauses is the number of causes remembered for one look at a key.
	maxCauses = 8
	// minInHand is the least Engine.maxInHand, for any number of workers.
	minInHand = 2000
)

// NewEngine creates an Engine for lanes, which must have different names. After Start, this process works on the keys
// that waker wakes in these lanes.
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
	e := &Engine{
		waker:         waker,
		db:            waker.db,
		opt:           opt,
		holder:        uuid.New(),
		lanes:         map[string]Lane{},
		slots:         map[string]chan struct{}{},
		shares:        map[string]*shares{},
		maxInHand:     max(minInHand, 2*opt.Workers),
		sweepRequests: make(chan string, len(lanes)),
		backoffs:      newBackoffs(opt.Sweep, opt.Now),
		looking:       map[wakeUp]bool{},
		waiting:       map[wakeUp]*claim{},
		causes:        map[wakeUp][]traces.Cause{},
		inHand:        map[string]int{},
	}
	queues, parts := map[string]river.QueueConfig{}, newConnQuotas(e.db.Part)
	if opt.NoConnQuotas {
		parts = nil
	}
	for _, l := range lanes {
		e.lanes[l.Name()] = l
		e.slots[l.Name()] = make(chan struct{}, opt.Workers)
		if owned, ok := l.(Owned); ok {
			e.shares[l.Name()] = newShares(
				owned,
				opt.Workers,
				e.maxInHand,
				parts,
				func() bool { return e.requestSweep(l.Name()) },
			)
		}
		queues[l.Name()] = river.QueueConfig{MaxWorkers: fetchers}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[wakeUp]) error {
		// The job is complete. If this process ends now, the sweep of another instance finds the key.
		e.enqueue(job.Args, traces.Cause{}, true)
		return nil
	}))
	var err error
	e.client, err = river.NewClient(queueDriver{riverpgxv5.New(e.db.Pool), e.db}, &river.Config{
		Queues:  queues,
		Workers: workers,
		// The default of 100 ms limits throughput and adds latency.
		FetchCooldown:               10 * time.Millisecond,
		CompletedJobRetentionPeriod: 10 * time.Minute,
		CancelledJobRetentionPeriod: 10 * time.Minute,
		DiscardedJobRetentionPeriod: 10 * time.Minute,
		// No reindexing: there are few jobs, and a run that lock_timeout interrupts leaves unused indexes behind.
		ReindexerIndexNames: []string{},
		Logger:              slog.New(queueLog{opt.Log, &recurring.Problems{}}),
	})
	if err != nil {
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	return e, nil
}

// Start starts the engine, which runs until Stop. It fails if the job queue does not start.
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
	// so that LastSweep is valid until the first sweep ends
	e.lastSweep.Store(time.Now().UnixNano())
	e.beat()
	e.running.Go(e.sweep)
	return nil
}

// Stop accepts no new work and waits for running work. When ctx ends, it cancels that work.
func (e *Engine) Stop(ctx context.Context) error {
	if e.stopSweep == nil { // never started
		return nil
	}
	for name := range e.lanes {
		e.waker.engines.CompareAndDelete(name, e)
	}
	e.mu.Lock() // no work starts after that
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

// LastSweep returns the end of this engine's last successful sweep of all lanes, and the zero time if there was none.
func (e *Engine) LastSweep() time.Time {
	if at := e.lastSweep.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Heartbeat returns when the sweep last made progress, whether its queries succeeded or not. Queries have timeouts, so an
// old heartbeat means that this process is stuck, and not its database.
func (e *Engine) Heartbeat() time.Time { return time.Unix(0, e.heartbeat.Load()) }

func (e *Engine) beat() { e.heartbeat.Store(time.Now().UnixNano()) }

// Busy counts the keys that this engine is working on, by lane.
func (e *Engine) Busy() map[string]int {
	out := map[string]int{}
	for lane, taken := range e.slots {
		out[lane] = len(taken)
	}
	return out
}

// processTraced is process with a span.
func (e *Engine) processTraced(ctx context.Context, w wakeUp, c *claim, causes []traces.Cause) (more bool) {
	ctx, span := e.opt.Traces.Work(ctx, w.Lane, w.ID, causes)
	defer span.End()
	outcome, more := e.process(ctx, w, c)
	if span.Set(traces.Outcome(outcome)); outcome == failed {
		span.Fail("work_failed")
	}
	return more
}

// Outcomes of process.
const (
	done          = "done"
	heldElsewhere = "skipped" // another instance holds the lease
	failed        = "failed"
)

// process works on a key while it is due, unless another instance holds its lease. More is true if the key is still due
// when its turn is over or its claim is outdated.
func (e *Engine) process(ctx context.Context, w wakeUp, c *claim) (outcome string, more bool) {
	lane := e.lanes[w.Lane]
	log := e.opt.Log.With("lane", w.Lane, "id", w.ID)
	for begin := time.Now(); ctx.Err() == nil; {
		d, err := e.drainLeased(ctx, lane, w)
		if err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "work failed; the server retries it", "pause", e.backoffs.failed(w), "error", err)
			return failed, false
		}
		e.backoffs.succeeded(w)
		// The holder checks once more when it releases the lease, so nothing is missed.
		if !d.held {
			return heldElsewhere, false
		}
		e.schedule(w, d.again)
		due, woken := d.due, false
		if !d.checked {
			woken = e.takeWakeUps(w)
			due, err = lane.Due(store.WithStatementTimeout(ctx, queryTimeout), w.ID)
		}
		if err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "could not check for more work; the next sweep does", "error", err)
		}
		if err != nil {
			return done, woken
		}
		if !due {
			return done, false
		}
		if time.Since(begin) > maxTurn || c.outdated(w.ID) {
			return done, true
		}
	}
	return done, false
}

// drained is the result of drainLeased.
type drained struct {
	held    bool          // false: another instance holds the lease
	again   time.Duration // as Lane.Drain returns it
	checked bool          // due is known
	due     bool          // the key has more work
}

// drainLeased acquires the lease, drains the key, and releases the lease.
func (e *Engine) drainLeased(ctx context.Context, lane Lane, w wakeUp) (d drained, err error) {
	limited, end := context.WithTimeout(ctx, drainTimeout)
	defer end()
	working, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	lease := &Lease{
		key:         lane.Name() + ":" + w.ID.String(),
		holder:      e.holder,
		ttl:         e.opt.LeaseTTL,
		db:          e.db,
		working:     working,
		cancel:      cancel,
		takeWakeUps: func() { e.takeWakeUps(w) },
	}
	transactional, _ := lane.(Transactional)
	if transactional == nil {
		if held, err := lease.acquire(ctx); err != nil || !held {
			return d, err
		}
	}
	d.again, err = drain(WithLease(working, lease), lane, lease, w.ID)
	if lost := context.Cause(working); errors.Is(lost, ErrLeaseLost) {
		err = lost
	}
	cancel(nil)
	lease.keeping.Wait()
	if lease.fence.Load() == 0 && errors.Is(err, errHeldElsewhere) {
		return d, nil
	}
	d.held = true
	if lease.released.Load() {
		d.checked, d.due = true, lease.due
		return d, err
	}
	if err != nil {
		return d, errors.Join(err, lease.release(ctx))
	}
	var check func(context.Context, store.Tx) error
	if transactional != nil {
		e.takeWakeUps(w)
		d.checked = true
		check = func(ctx context.Context, tx store.Tx) (err error) {
			d.due, err = transactional.DueIn(ctx, tx, w.ID)
			return err
		}
	}
	if err = lease.end(ctx, check); err != nil {
		err = errors.Join(err, lease.release(ctx))
	}
	return d, err
}

// drain calls lane.Drain and returns a panic as an error, so that one key does not end the work on all others.
func drain(ctx context.Context, lane Lane, lease *Lease, id uuid.UUID) (again time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return lane.Drain(ctx, lease, id)
}

// takeWakeUps reports whether a key was woken since its turn began or since the last call. A query that begins
// afterwards sees everything that the wake-ups are about.
func (e *Engine) takeWakeUps(w wakeUp) (woken bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	woken = e.looking[w]
	e.looking[w] = false
	return woken
}

// schedule enqueues a key after d; 0 means never. It replaces an earlier timer of the key. Timers may be lost, because
// the sweep finds due keys.
func (e *Engine) schedule(w wakeUp, d time.Duration) {
	if d <= 0 {
		if old, loaded := e.timers.LoadAndDelete(w); loaded {
			old.(*time.Timer).Stop()
		}
		return
	}
	t := time.AfterFunc(d, func() {
		e.timers.Delete(w)
		e.enqueue(w, traces.Cause{}, false)
	})
	if old, loaded := e.timers.Swap(w, t); loaded {
		old.(*time.Timer).Stop()
	}
}
