// Package drive brings access systems to what package acs says should be on them, as package reconcile does devices. It
// is level-triggered: a wake-up only says "look at this system". Whoever holds the system's lease reads all that is on
// it, has acs compare that with what should be, does what is missing, and reports each result. A crash at any point is
// repaired by looking again. What should be where, and what an answer means for a user, is decided by acs.
package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Opener makes the adapter of an account from its address and credentials.
type Opener func(ctx context.Context, account access.Account) (adapter.AccessSystems, error)

// Options of a Driver. The zero value is for production.
type Options struct {
	AccountEvery time.Duration // how often an account's systems are listed and looked at; 0: 1 min
	SystemEvery  time.Duration // how often a system is looked at, should nobody wake it; 0: 5 min
	DownAfter    time.Duration // how long a system may fail to answer before that is told; 0: 10 s
	Log          *slog.Logger
}

// Driver looks after access systems and the accounts that have them.
type Driver struct {
	access  *access.Service
	acs     *acs.Service
	openers map[string]Opener
	opt     Options
	silent  sync.Map // silence → spell

	opening adapter.Flights // of accounts, whose vendors may hang
	mu      sync.Mutex
	open    map[uuid.UUID]*opened // by account
	closed  bool
}

// silence is of an account or a system that does not answer, or of a system that answers all but writes.
type silence struct {
	id     uuid.UUID
	writes bool
}

// spell is from when to when something was silent, as far as is known here: another server may have looked after it since.
type spell struct{ begun, last time.Time }

type opened struct {
	config  []byte
	adapter adapter.AccessSystems
	used    time.Time // when somebody last asked for it
}

// unused is after how long an adapter is shut that nobody asks for, and a silence forgotten that nobody hears of: what was looked
// after here may be with another server by now, or be gone.
const unused = 15 * time.Minute

// New makes a Driver; openers are by the name of the adapter.
func New(a *access.Service, s *acs.Service, openers map[string]Opener, opt Options) *Driver {
	if opt.AccountEvery == 0 {
		opt.AccountEvery = time.Minute
	}
	if opt.SystemEvery == 0 {
		opt.SystemEvery = 5 * time.Minute
	}
	if opt.DownAfter == 0 {
		opt.DownAfter = 10 * time.Second
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Driver{access: a, acs: s, openers: openers, opt: opt, open: map[uuid.UUID]*opened{}}
}

// Drives says whether accounts of that adapter are looked after here.
func (d *Driver) Drives(name string) bool {
	_, ok := d.openers[name]
	return ok
}

// get is the adapter of an account, as its configuration is now.
func (d *Driver) get(ctx context.Context, account access.Account) (adapter.AccessSystems, error) {
	for {
		a, ok := d.asItIs(account)
		if ok {
			return a, nil
		}
		did, err := d.opening.Do(ctx, account.ID, func() (err error) {
			if a, ok = d.asItIs(account); !ok { // nor was it opened since
				a, err = d.opens(ctx, account)
			}
			return err
		})
		if did || err != nil {
			return a, err
		}
	}
}

// asItIs is the adapter of an account, if one is open that has its configuration.
func (d *Driver) asItIs(account access.Account) (adapter.AccessSystems, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.open[account.ID]
	if !ok || !bytes.Equal(o.config, account.Config) {
		return nil, false
	}
	o.used = time.Now()
	return o.adapter, true
}

// opens makes the adapter of an account, in the place of the one that there is. That may take as long as its vendor likes;
// those of other accounts do not wait for it.
func (d *Driver) opens(ctx context.Context, account access.Account) (adapter.AccessSystems, error) {
	d.shut(func(id uuid.UUID, _ *opened) bool { return id == account.ID })
	open, ok := d.openers[account.Adapter]
	if !ok {
		return nil, fmt.Errorf("account %s needs the adapter %q, which this program does not have", account.ID, account.Adapter)
	}
	a, err := open(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("open the adapter of account %s: %w", account.ID, err)
	}
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.open[account.ID] = &opened{account.Config, a, time.Now()}
	}
	d.mu.Unlock()
	if closed {
		return nil, errors.Join(errors.New("the adapters are closed"), a.Close())
	}
	return a, nil
}

// shut closes the adapters that are meant.
func (d *Driver) shut(meant func(account uuid.UUID, o *opened) bool) {
	d.mu.Lock()
	leave := map[uuid.UUID]*opened{}
	for id, o := range d.open {
		if meant(id, o) {
			leave[id] = o
			delete(d.open, id)
		}
	}
	d.mu.Unlock()
	for id, o := range leave {
		if err := o.adapter.Close(); err != nil {
			d.opt.Log.Warn("close an adapter", "account", id, "error", err)
		}
	}
}

// tidy shuts what nobody asks for, and forgets silences that nobody hears of.
func (d *Driver) tidy() {
	d.shut(func(_ uuid.UUID, o *opened) bool { return time.Since(o.used) > unused })
	d.silent.Range(func(of, s any) bool {
		if time.Since(s.(spell).last) > unused {
			d.silent.CompareAndDelete(of, s)
		}
		return true
	})
}

// Close ends all adapters, also those that are being opened.
func (d *Driver) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.shut(func(uuid.UUID, *opened) bool { return true })
}

// Disconnect has a simulated vendor refuse the credentials of an account.
func (d *Driver) Disconnect(ctx context.Context, account uuid.UUID) error {
	kept, err := d.access.GetAccount(ctx, account)
	if err != nil {
		return err
	}
	a, err := d.get(ctx, kept)
	if err != nil {
		return err
	}
	sim, ok := a.(adapter.AccessSimulator)
	if !ok {
		return fmt.Errorf("the adapter of account %s cannot simulate", account)
	}
	return sim.Disconnect(ctx)
}

// DrainAccount lists the systems of an account, which has each be looked at.
func (d *Driver) DrainAccount(ctx context.Context, lease *worker.Lease, account access.Account) (time.Duration, error) {
	if account.Deleted {
		d.shut(func(id uuid.UUID, _ *opened) bool { return id == account.ID })
		return 0, nil
	}
	if wait := min(d.access.Owing(account.ID), d.opt.AccountEvery); wait > 0 && !account.Failing {
		return wait, d.access.ScheduleAccount(ctx, account.ID, account.Seq, wait)
	}
	a, err := d.get(ctx, account)
	if err != nil {
		return 0, err
	}
	held, release := adapter.Hold(ctx) // until they are written down
	defer release()
	systems, err := a.Systems(held)
	switch e := adapter.AsError(err); {
	case err == nil:
		d.silent.Delete(silence{account.ID, false})
		found := make([]acs.FoundSystem, len(systems))
		for i, s := range systems {
			found[i] = acs.FoundSystem{Ref: string(s.Ref), Name: s.Name, TimeZone: s.TimeZone, Online: s.Online}
		}
		if err := d.acs.RecordSystems(ctx, lease, account.ID, found); err != nil {
			return 0, err
		}
	case errors.Is(err, adapter.ErrCrowded) && ctx.Err() == nil:
		pause := jittered(crowded)
		return pause, d.access.ScheduleAccount(ctx, account.ID, account.Seq, pause)
	case e == nil || ctx.Err() != nil:
		return 0, err
	case e.Class == adapter.AuthRevoked:
		d.opt.Log.Warn("the vendor refuses the account's credentials", "account", account.ID)
		if err := d.access.RecordAccountRefused(ctx, lease, account.ID, e.Message); err != nil {
			return 0, err
		}
		if err := d.acs.WakeSystems(ctx, lease, account.ID); err != nil {
			return 0, err
		}
	case e.Class == adapter.GatewayDown && account.Adapter != access.SandboxAccessAdapter: // what is simulated is down only while we stop
		if wait := d.patience(silence{account.ID, false}); wait > 0 { // it may be restarting
			return wait, d.access.ScheduleAccount(ctx, account.ID, account.Seq, wait)
		}
		if err := d.access.RecordAccountUnreachable(ctx, lease, account.ID, e.Message); err != nil {
			return 0, err
		}
	default:
		d.opt.Log.Warn("the account's access systems could not be listed; it is repeated", "account", account.ID, "error", err)
	}
	pause := jittered(d.opt.AccountEvery)
	if e := adapter.AsError(err); e != nil {
		pause = max(pause, e.RetryAfter)
	}
	return pause, d.access.ScheduleAccount(ctx, account.ID, account.Seq, pause)
}

// patience is how long what does not answer may go on like that before it is told.
func (d *Driver) patience(of silence) time.Duration {
	now := time.Now()
	s := spell{begun: now}
	if was, ok := d.silent.Load(of); ok && now.Sub(was.(spell).last) <= unused {
		s = was.(spell)
	}
	s.last = now
	d.silent.Store(of, s)
	return d.opt.DownAfter - now.Sub(s.begun)
}

// jittered keeps what is looked at from being looked at in step.
func jittered(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }

// Lane is the kind of work that an engine has to be given.
func (d *Driver) Lane() worker.Lane { return systemLane{d} }

type systemLane struct{ *Driver }

func (systemLane) Name() string { return acs.SystemLane }

func (l systemLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	return l.acs.SystemDue(ctx, id)
}

func (l systemLane) Sweep(ctx context.Context, limit int32, but worker.Crowds) ([]uuid.UUID, error) {
	l.tidy()
	return l.acs.DueSystems(ctx, limit, but)
}

// Owners implements work.Owned.
func (l systemLane) Owners(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	return l.acs.SystemOwners(ctx, ids)
}

func (l systemLane) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return l.drainSystem(adapter.While(ctx, lease.Held), lease, id)
}
