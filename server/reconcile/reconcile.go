// Package reconcile drives devices to what package access says should be on them. It is level-triggered: a
// wake-up only says "look at this device". Whoever holds the device's lease reads what is on it, has access
// compare that with what should be, does what is missing, and reports each result. A crash at any point is
// repaired by looking again. Which codes should be where, and what an answer means for a code, is decided
// by access; the order of calls, and which of them to make, here.
package reconcile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Options of a Reconciler. The zero value is for production.
type Options struct {
	AccountEvery time.Duration // how often an account's devices are listed, should its vendor not tell of changes; 0: 1 min
	OfflineEvery time.Duration // how often a device that is offline is tried, should nobody tell of its return; 0: 5 min
	DownAfter    time.Duration // how long a gateway may be away before that is told; 0: 10 s
	Log          *slog.Logger

	// Elsewhere looks after accounts that have no devices; nil: there are none.
	Elsewhere Elsewhere
}

// Elsewhere looks after the accounts of some adapters in place of a Reconciler.
type Elsewhere interface {
	// Drives says whether it looks after accounts of that adapter.
	Drives(adapter string) bool
	// DrainAccount does for an account what there is to do, as a lane's Drain. The end of an account it is told of, too.
	DrainAccount(ctx context.Context, lease *worker.Lease, account access.Account) (time.Duration, error)
	// Disconnect has a simulated vendor refuse the credentials of an account.
	Disconnect(ctx context.Context, account uuid.UUID) error
}

// elsewhere says whether somebody else looks after accounts of that adapter.
func (r *Reconciler) elsewhere(adapter string) bool {
	return r.opt.Elsewhere != nil && r.opt.Elsewhere.Drives(adapter)
}

// Reconciler looks after devices and accounts.
type Reconciler struct {
	access   *access.Service
	adapters *Adapters
	opt      Options
	written  sync.Map // when a device that needs a pause between writes was last written to
	busy     sync.Map // until when a device whose vendor has said so takes no codes
	down     outages
}

// New makes a Reconciler; adapters reaches the vendors.
func New(a *access.Service, adapters *Adapters, opt Options) *Reconciler {
	if opt.AccountEvery == 0 {
		opt.AccountEvery = time.Minute
	}
	if opt.OfflineEvery == 0 {
		opt.OfflineEvery = 5 * time.Minute
	}
	if opt.DownAfter == 0 {
		opt.DownAfter = 10 * time.Second
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Reconciler{access: a, adapters: adapters, opt: opt}
}

// Lanes are the kinds of work that an engine has to be given.
func (r *Reconciler) Lanes() []worker.Lane { return []worker.Lane{deviceLane{r}, accountLane{r}} }

type deviceLane struct{ *Reconciler }

func (deviceLane) Name() string { return access.DeviceLane }

func (l deviceLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	return l.access.DeviceDue(ctx, id)
}

func (l deviceLane) Sweep(ctx context.Context, limit int32, but worker.Crowds) ([]uuid.UUID, error) {
	return l.access.DueDevices(ctx, limit, but)
}

// Owners implements work.Owned.
func (l deviceLane) Owners(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	return l.access.DeviceOwners(ctx, ids)
}

func (l deviceLane) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return l.drainDevice(adapter.While(ctx, lease.Held), lease, id)
}

type accountLane struct{ *Reconciler }

func (accountLane) Name() string { return access.AccountLane }

func (l accountLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	return l.access.AccountDue(ctx, id)
}

func (l accountLane) Sweep(ctx context.Context, limit int32, but worker.Crowds) ([]uuid.UUID, error) {
	return l.access.DueAccounts(ctx, limit, but)
}

// Owners implements work.Owned.
func (l accountLane) Owners(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	return l.access.AccountOwners(ctx, ids)
}

func (l accountLane) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return l.drainAccount(adapter.While(ctx, lease.Held), lease, id)
}

// fail turns an adapter's error into what it means for a code.
func fail(err error) *access.Failure {
	e := adapter.AsError(err)
	class, ok := map[adapter.Class]access.FailureClass{
		adapter.Duplicate: access.FailedDuplicate, adapter.Full: access.FailedFull, adapter.Invalid: access.FailedInvalid,
		adapter.NotSupported: access.FailedUnsupported,
	}[e.Class]
	if !ok {
		class = access.FailedForNow
	}
	return &access.Failure{Class: class, Message: e.Message, RetryAfter: e.RetryAfter, ConflictRef: string(e.Conflict),
		Unsure: e.Class == adapter.Unconfirmed}
}
