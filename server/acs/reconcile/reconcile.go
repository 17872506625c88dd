// Package reconcile drives access systems to the desired state that package acs decides, as package
// server/reconcile does for devices. It is level-triggered: a wake-up only says "look at this
// system". The holder of a system's lease reads its complete content, receives a plan from acs,
// runs the missing writes, and reports each outcome. The next look repairs the effects of a crash.
//
// Package acs decides the desired state and what an outcome means for a user. This package must not
// know HTTP or any vendor.
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
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/recurring"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Opener opens the adapter of an account with the account's address and credentials.
type Opener func(ctx context.Context, account account.Account) (adapter.AccessSystems, error)

// Options configures a Reconciler. The zero value is for production.
type Options struct {
	// AccountInterval is the interval between two listings of an account's systems. 0 means 1 min.
	AccountInterval time.Duration
	// SystemInterval is the interval between two looks at a system without a wake-up. 0 means 5 min.
	SystemInterval time.Duration
	// DownAfter is how long a system may fail to answer before it reports an error. 0 means 10 s.
	DownAfter time.Duration
	Log       *slog.Logger
}

// Reconciler reconciles access systems and the accounts that have them.
type Reconciler struct {
	access  *access.Services
	acs     *acs.Service
	openers map[string]Opener
	opt     Options
	silent  sync.Map // silence → spell
	// problems are those of accounts and systems that the log reports.
	problems recurring.Problems

	// opening runs one open per account at a time, because a vendor may hang.
	opening adapter.SingleFlight
	mu      sync.Mutex
	open    map[uuid.UUID]*opened // by account
	closed  bool
}

// unreachable identifies an account or a system that does not answer, or with writes a system that
// refuses only writes.
type unreachable struct {
	id     uuid.UUID
	writes bool
}

// failureStreak is the observed start and end of a silence. Another server may have handled the key
// meanwhile.
type failureStreak struct{ begun, last time.Time }

type opened struct {
	config  []byte
	adapter adapter.AccessSystems
	used    time.Time // when the adapter was last requested
}

// idleTimeout is how long an idle adapter stays open and a silence is remembered. Another server may
// handle the account by now, or it may have been deleted.
const idleTimeout = 15 * time.Minute

// New creates a Reconciler. The keys of openers are adapter names.
func New(a *access.Services, s *acs.Service, openers map[string]Opener, opt Options) *Reconciler {
	if opt.AccountInterval == 0 {
		opt.AccountInterval = time.Minute
	}
	if opt.SystemInterval == 0 {
		opt.SystemInterval = 5 * time.Minute
	}
	if opt.DownAfter == 0 {
		opt.DownAfter = 10 * time.Second
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Reconciler{
		access:  a,
		acs:     s,
		openers: openers,
		opt:     opt,
		open:    map[uuid.UUID]*opened{},
	}
}

// Handles reports whether this Reconciler handles accounts of that adapter.
func (d *Reconciler) Handles(name string) bool {
	_, ok := d.openers[name]
	return ok
}

// get returns the adapter of an account with the account's current configuration.
func (d *Reconciler) get(ctx context.Context, account account.Account) (adapter.AccessSystems, error) {
	for {
		a, ok := d.cached(account)
		if ok {
			return a, nil
		}
		did, err := d.opening.Do(ctx, account.ID, func() (err error) {
			// Another caller may have opened it since.
			if a, ok = d.cached(account); !ok {
				a, err = d.openAdapter(ctx, account)
			}
			return err
		})
		if did || err != nil {
			return a, err
		}
	}
}

// cached returns the open adapter of an account if its configuration is current.
func (d *Reconciler) cached(account account.Account) (adapter.AccessSystems, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.open[account.ID]
	if !ok || !bytes.Equal(o.config, account.Config) {
		return nil, false
	}
	o.used = time.Now()
	return o.adapter, true
}

// openAdapter opens the adapter of an account and closes the previous one. A slow vendor delays
// only its own account.
func (d *Reconciler) openAdapter(ctx context.Context, account account.Account) (adapter.AccessSystems, error) {
	d.closeAdapters(func(id uuid.UUID, _ *opened) bool { return id == account.ID })
	open, ok := d.openers[account.Adapter]
	if !ok {
		return nil, fmt.Errorf("account %s needs the adapter %q, which this program does not have", account.ID,
			account.Adapter)
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

// closeAdapters closes the adapters that meant accepts.
func (d *Reconciler) closeAdapters(meant func(account uuid.UUID, o *opened) bool) {
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
			d.opt.Log.Warn("close an adapter", "connected_account_id", id, "error", err)
		}
	}
}

// closeIdle closes idle adapters and forgets old silences.
func (d *Reconciler) closeIdle() {
	d.closeAdapters(func(_ uuid.UUID, o *opened) bool { return time.Since(o.used) > idleTimeout })
	d.silent.Range(func(of, s any) bool {
		if time.Since(s.(failureStreak).last) > idleTimeout {
			d.silent.CompareAndDelete(of, s)
		}
		return true
	})
}

// Close closes all adapters, including those that are being opened.
func (d *Reconciler) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.closeAdapters(func(uuid.UUID, *opened) bool { return true })
}

// Disconnect makes a simulated vendor refuse the credentials of an account.
func (d *Reconciler) Disconnect(ctx context.Context, account uuid.UUID) error {
	kept, err := d.access.Accounts.GetAccount(ctx, account)
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

// DrainAccount lists and records the systems of an account, which wakes each of them.
func (d *Reconciler) DrainAccount(
	ctx context.Context,
	lease *worker.Lease,
	acct account.Account,
) (time.Duration, error) {
	if acct.Deleted {
		d.closeAdapters(func(id uuid.UUID, _ *opened) bool { return id == acct.ID })
		return 0, nil
	}
	if wait := min(d.access.Devices.InventoryDelay(acct.ID), d.opt.AccountInterval); wait > 0 && !acct.Failing {
		return wait, d.access.Accounts.ScheduleAccount(ctx, acct.ID, acct.Seq, wait)
	}
	a, err := d.get(ctx, acct)
	if err != nil {
		return 0, err
	}
	// Hold the memory of the answer until the systems are recorded.
	held, release := adapter.WithMemoryPermit(ctx)
	defer release()
	systems, err := a.Systems(held)
	switch e := adapter.AsError(err); {
	case err == nil:
		d.silent.Delete(unreachable{acct.ID, false})
		d.problems.End(d.accountLog(acct), accountKey(acct.ID), "the account works again")
		found := make([]acs.FoundSystem, len(systems))
		for i, s := range systems {
			found[i] = acs.FoundSystem{
				Ref:      string(s.Ref),
				Name:     s.Name,
				TimeZone: s.TimeZone,
				Online:   s.Online,
			}
		}
		if err := d.acs.RecordSystems(ctx, lease, acct.ID, found); err != nil {
			return 0, err
		}
	case errors.Is(err, adapter.ErrSaturated) && ctx.Err() == nil:
		pause := jittered(overloadPause)
		return pause, d.access.Accounts.ScheduleAccount(ctx, acct.ID, acct.Seq, pause)
	case e == nil || ctx.Err() != nil:
		return 0, err
	case e.Class == adapter.AuthRevoked:
		d.problems.Warn(
			d.accountLog(acct).With("message", adapter.SafeMessage(e.Message, "")),
			accountKey(acct.ID),
			"the vendor refuses the account's credentials",
		)
		if err := d.access.Accounts.RecordAccountRefused(ctx, lease, acct.ID, e.Message); err != nil {
			return 0, err
		}
		if err := d.acs.WakeSystems(ctx, lease, acct.ID); err != nil {
			return 0, err
		}
	// Simulated vendors are down only while the server stops.
	case e.Class == adapter.GatewayDown && acct.Adapter != account.SandboxAccessAdapter:
		// The gateway may be restarting.
		if wait := d.graceLeft(unreachable{acct.ID, false}); wait > 0 {
			return wait, d.access.Accounts.ScheduleAccount(ctx, acct.ID, acct.Seq, wait)
		}
		d.problems.Warn(
			d.accountLog(acct).With("message", adapter.SafeMessage(e.Message, "")),
			accountKey(acct.ID),
			"the account's gateway is unreachable; the server keeps retrying",
		)
		if err := d.access.Accounts.RecordAccountUnreachable(ctx, lease, acct.ID, e.Message); err != nil {
			return 0, err
		}
	default:
		d.problems.Warn(
			d.accountLog(acct).With("message", adapter.SafeMessage(e.Message, "")),
			accountKey(acct.ID),
			"failed to list the account's access systems; the server retries",
		)
	}
	pause := jittered(d.opt.AccountInterval)
	if e := adapter.AsError(err); e != nil {
		pause = max(pause, e.RetryAfter)
	}
	return pause, d.access.Accounts.ScheduleAccount(ctx, acct.ID, acct.Seq, pause)
}

// accountLog returns the log for lines about an account.
func (d *Reconciler) accountLog(a account.Account) *slog.Logger {
	return d.opt.Log.With("connected_account_id", a.ID, "account", a.DisplayName, "vendor", a.Adapter)
}

// accountKey is the key of the problems of an account in the log.
func accountKey(id uuid.UUID) string { return "account:" + id.String() }

// systemKey is the key of the problems of an access system in the log.
func systemKey(id uuid.UUID) string { return "system:" + id.String() }

// graceLeft notes a silence and returns how long it may last before it is reported.
func (d *Reconciler) graceLeft(of unreachable) time.Duration {
	now := time.Now()
	s := failureStreak{begun: now}
	if was, ok := d.silent.Load(of); ok && now.Sub(was.(failureStreak).last) <= idleTimeout {
		s = was.(failureStreak)
	}
	s.last = now
	d.silent.Store(of, s)
	return d.opt.DownAfter - now.Sub(s.begun)
}

// jittered spreads periodic work so that it does not run in step.
func jittered(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }

// Lane returns the kind of work that a worker.Engine runs.
func (d *Reconciler) Lane() worker.Lane { return systemLane{d} }

type systemLane struct{ *Reconciler }

func (systemLane) Name() string { return acs.SystemLane }

func (l systemLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	return l.acs.SystemDue(ctx, id)
}

func (l systemLane) Sweep(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	l.closeIdle()
	return l.acs.DueSystems(ctx, limit, but)
}

// Owners implements worker.Owned.
func (l systemLane) Owners(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	return l.acs.SystemOwners(ctx, ids)
}

func (l systemLane) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return l.drainSystem(adapter.WithLeaseCheck(ctx, lease.Held), lease, id)
}
