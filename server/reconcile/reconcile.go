// Package reconcile drives devices to the desired state that package device decides. It is
// level-triggered: a wake-up only says "look at this device". The holder of a device's lease reads
// the observed state, receives a plan from package device, runs the missing operations, and reports each
// outcome. The next look repairs the effects of a crash.
//
// Package device decides which codes belong on which device and what an outcome means for a code.
// This package decides which calls to make and in which order. It must not know HTTP or any vendor.
package reconcile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/recurring"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Options configures a Reconciler. The zero value is for production.
type Options struct {
	// AccountInterval is the interval between two listings of an account's devices. 0 means 1 min.
	AccountInterval time.Duration
	// Paces are the paces of adapters that differ from AccountInterval and from the interval of rereads.
	Paces map[string]adapter.Pace
	// Unverified says what adapters were tested with that never met their vendor, by adapter. Devices warn about them.
	Unverified map[string]string
	// OfflineRetryInterval is the interval between two tries of an offline device. 0 means 5 min.
	OfflineRetryInterval time.Duration
	// DownAfter is how long a gateway may be unreachable before the account reports an error. 0
	// means 10 s.
	DownAfter time.Duration
	Log       *slog.Logger

	// AccessSystems handles the accounts that have no devices. nil means there are none.
	AccessSystems AccountReconciler
}

// AccountReconciler handles the accounts of some adapters in place of a Reconciler.
type AccountReconciler interface {
	// Handles reports whether it handles accounts of that adapter.
	Handles(adapter string) bool
	// DrainAccount does the due work of an account, like Drain of a worker.Lane. It also receives
	// accounts that were deleted.
	DrainAccount(ctx context.Context, lease *worker.Lease, account account.Account) (time.Duration, error)
	// Disconnect makes a simulated vendor refuse the credentials of an account.
	Disconnect(ctx context.Context, account uuid.UUID) error
}

// delegated reports whether another AccountReconciler handles accounts of that adapter.
func (r *Reconciler) delegated(adapter string) bool {
	return r.opt.AccessSystems != nil && r.opt.AccessSystems.Handles(adapter)
}

// Reconciler reconciles devices and accounts.
type Reconciler struct {
	access   *access.Services
	adapters *Adapters
	opt      Options
	// written maps a device that needs a gap between writes to the time of its last write.
	written sync.Map
	// busy maps a device to the time until which its vendor accepts no codes.
	busy sync.Map
	// slow maps a device that does not show a write at once to the time when that was noticed.
	slow sync.Map
	down outages
	// problems are those of accounts and devices that the log reports.
	problems recurring.Problems
}

// New creates a Reconciler that reaches the vendors through adapters.
func New(a *access.Services, adapters *Adapters, opt Options) *Reconciler {
	if opt.AccountInterval == 0 {
		opt.AccountInterval = time.Minute
	}
	if opt.OfflineRetryInterval == 0 {
		opt.OfflineRetryInterval = 5 * time.Minute
	}
	if opt.DownAfter == 0 {
		opt.DownAfter = 10 * time.Second
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Reconciler{access: a, adapters: adapters, opt: opt}
}

// Lanes returns the kinds of work that a worker.Engine runs.
func (r *Reconciler) Lanes() []worker.Lane { return []worker.Lane{deviceLane{r}, accountLane{r}} }

type deviceLane struct{ *Reconciler }

var _ worker.Transactional = deviceLane{}

func (deviceLane) Name() string { return domain.DeviceLane }

func (l deviceLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	return l.access.Devices.DeviceDue(ctx, id)
}

// DueIn implements worker.Transactional. A pass starts with a transaction.
func (l deviceLane) DueIn(ctx context.Context, tx store.Tx, id uuid.UUID) (bool, error) {
	return l.access.Devices.DeviceDueIn(ctx, tx, id)
}

func (l deviceLane) Sweep(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	return l.access.Devices.DueDevices(ctx, limit, but)
}

// Owners implements worker.Owned.
func (l deviceLane) Owners(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	return l.access.Devices.DeviceOwners(ctx, ids)
}

func (l deviceLane) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return l.drainDevice(adapter.WithLeaseCheck(ctx, lease.Held), lease, id)
}

type accountLane struct{ *Reconciler }

func (accountLane) Name() string { return domain.AccountLane }

func (l accountLane) Due(ctx context.Context, id uuid.UUID) (bool, error) {
	return l.access.Accounts.AccountDue(ctx, id)
}

func (l accountLane) Sweep(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	return l.access.Accounts.DueAccounts(ctx, limit, but)
}

// Owners implements worker.Owned.
func (l accountLane) Owners(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	return l.access.Accounts.AccountOwners(ctx, ids)
}

func (l accountLane) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	return l.drainAccount(adapter.WithLeaseCheck(ctx, lease.Held), lease, id)
}

// fail converts an adapter's error to its meaning for a code.
func fail(err error) *lockstate.Failure {
	e := adapter.AsError(err)
	class, ok := map[adapter.Class]lockstate.FailureClass{
		adapter.Duplicate: lockstate.FailedDuplicate, adapter.Full: lockstate.FailedFull, adapter.Invalid: lockstate.FailedInvalid,
		adapter.NotSupported: lockstate.FailedUnsupported,
	}[e.Class]
	if !ok {
		class = lockstate.FailedForNow
	}
	return &lockstate.Failure{
		Class:       class,
		Message:     e.Message,
		RetryAfter:  e.RetryAfter,
		ConflictRef: string(e.Conflict),
		Unsure:      e.Class == adapter.Unconfirmed,
	}
}
