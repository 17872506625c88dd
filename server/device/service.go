// Package device owns devices and access codes: the desired state, the last observed state, and the plan that reconciles
// them. Package reconcile runs the plan and reports each outcome. Each operation is one transaction and documents its
// errors; a database error is possible in all of them. The package must not know HTTP or any vendor.
package device

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Options of a Service. The zero value is for production.
type Options struct {
	// AttemptTimeout is when a pending action attempt fails. The default is 10 min.
	AttemptTimeout time.Duration
	// ConfirmTimeout is how long an accepted write may stay invisible before it counts as failed. It must be well
	// above ReadLag. The default is 60 s.
	ConfirmTimeout time.Duration
	// ReadLag is how long a device's list may lag behind what the device has confirmed. The default is 10 s.
	ReadLag time.Duration
	// EmptyListGrace is how long an unexpectedly empty code list is ignored before its codes count as removed. The
	// default is 15 s.
	EmptyListGrace time.Duration
	// RereadInterval is the longest time between two reads of a device whose vendor may lose events. The default is
	// 6 h.
	RereadInterval time.Duration
	// AttemptPollInterval is how often a request that waits for an attempt checks whether another instance has ended
	// it. The default is 1 s.
	AttemptPollInterval time.Duration
	// LockCommandTimeout is when an attempt to lock or unlock fails. The default is 30 s.
	LockCommandTimeout time.Duration
	// OperationLag is how long after a change of the lock state the vendor may still report its cause. The default is
	// 10 s.
	OperationLag time.Duration
	// OfflineDebounce is how long a device must be offline before an event reports it. The default is 30 s.
	OfflineDebounce time.Duration
	// DelayAfter is when a code that is not yet set, or not yet removed, is reported as late. The default is 10 min.
	DelayAfter time.Duration
	// InventoryEventRate is the number of inventory events of an account per second; the server defers the excess.
	// The default is 100.
	InventoryEventRate float64
	// InventoryEventBurst is the burst of InventoryEventRate. The default is 200,000.
	InventoryEventBurst int
	// Now is the clock. The default is the system's.
	Now func() time.Time
	Log *slog.Logger
}

// Service keeps devices, access codes and action attempts.
type Service struct {
	db             *store.DB
	keys           *encryption.Keys
	waker          *worker.Waker
	events         *event.Service
	auth           *auth.Service
	accounts       *account.Service
	idempotency    *idempotency.Service
	opt            Options
	waiting        waiting
	inventoryLimit *inventoryLimiter
	found          []func(context.Context, store.Tx, dbsqlc.Device, FoundDevice) error
}

// Services are the other services that a Service calls.
type Services struct {
	Events      *event.Service
	Auth        *auth.Service
	Accounts    *account.Service
	Idempotency *idempotency.Service
}

// New creates a Service. db must be migrated. It registers with r what happens to devices when an account
// ends, and how events count against an account's budget.
func New(db *store.DB, keys *encryption.Keys, waker *worker.Waker, r Services, opt Options) *Service {
	opt.AttemptTimeout = cmp.Or(opt.AttemptTimeout, 10*time.Minute)
	opt.ConfirmTimeout = cmp.Or(opt.ConfirmTimeout, 60*time.Second)
	opt.ReadLag = cmp.Or(opt.ReadLag, 10*time.Second)
	opt.EmptyListGrace = cmp.Or(opt.EmptyListGrace, 15*time.Second)
	opt.RereadInterval = cmp.Or(opt.RereadInterval, 6*time.Hour)
	opt.AttemptPollInterval = cmp.Or(opt.AttemptPollInterval, time.Second)
	opt.LockCommandTimeout = cmp.Or(opt.LockCommandTimeout, 30*time.Second)
	opt.OperationLag = cmp.Or(opt.OperationLag, 10*time.Second)
	opt.OfflineDebounce = cmp.Or(opt.OfflineDebounce, 30*time.Second)
	opt.DelayAfter = cmp.Or(opt.DelayAfter, 10*time.Minute)
	opt.InventoryEventRate = cmp.Or(opt.InventoryEventRate, 100)
	opt.InventoryEventBurst = cmp.Or(opt.InventoryEventBurst, 200_000)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	s := &Service{
		db:             db,
		keys:           keys,
		waker:          waker,
		events:         r.Events,
		auth:           r.Auth,
		accounts:       r.Accounts,
		idempotency:    r.Idempotency,
		opt:            opt,
		inventoryLimit: newInventoryLimiter(opt.InventoryEventRate, opt.InventoryEventBurst),
	}
	r.Events.OnEmit(s.count)
	r.Accounts.OnDisconnect(s.removeAll)
	return s
}

// Now returns the time by the clock that the rules use.
func (s *Service) Now() time.Time { return s.opt.Now() }

// EmptyListGrace returns how long an unexpectedly empty list of a vendor is ignored.
func (s *Service) EmptyListGrace() time.Duration { return s.opt.EmptyListGrace }

// GracePeriodStart returns the start of the grace period for an empty list (lockstate.GracePeriodStart).
func (s *Service) GracePeriodStart(since *time.Time, now time.Time) *time.Time {
	return lockstate.GracePeriodStart(since, now, s.opt.EmptyListGrace)
}

// ConfirmTimeout returns when an unconfirmed write counts as lost.
func (s *Service) ConfirmTimeout() time.Duration { return s.opt.ConfirmTimeout }
