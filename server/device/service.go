// Package device keeps devices and access codes: what should be on each device, what was last seen on it, and what there
// is to do about the difference. How to get it there is the business of package reconcile, which reports back what it
// has found and done. Each operation is one transaction and says which errors it returns; besides those, any may fail
// because the database does. The package knows neither HTTP nor any vendor.
package device

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Options of a Service. The zero value is for production.
type Options struct {
	AttemptTimeout      time.Duration    // when a pending action attempt is given up; 0: 10 min
	ConfirmTimeout      time.Duration    // when an accepted write that has not shown counts as failed; well after ReadLag; 0: 60 s
	ReadLag             time.Duration    // how long a device's list may lag behind what it has confirmed; 0: 10 s
	EmptyListGrace      time.Duration    // how long an unexpectedly empty code list is ignored before its codes count as removed; 0: 15 s
	RereadInterval      time.Duration    // the longest time between two reads of a device whose vendor may lose events; 0: 6 h
	AttemptPollInterval time.Duration    // how often a request that waits for an attempt checks whether another instance has ended it; 0: 1 s
	LockCommandTimeout  time.Duration    // when an attempt to lock or unlock is given up; 0: 30 s
	OperationLag        time.Duration    // how late a vendor may report a bolt's move that shows elsewhere; 0: 10 s
	OfflineDebounce     time.Duration    // how long a device has to be offline before an event reports it; 0: 30 s
	DelayAfter          time.Duration    // when a code that is not yet set, or removed, is reported as late; 0: 10 min
	VendorEventRate     float64          // events about an account, beyond which what its vendor lists is processed later; 0: 100
	VendorEventBurst    int              // the burst of these; 0: 200,000
	Now                 func() time.Time // the clock; nil: the system's
	Log                 *slog.Logger
}

// Service keeps devices, access codes and action attempts.
type Service struct {
	db          *store.DB
	keys        *encryption.Keys
	waker       *worker.Waker
	events      *event.Service
	auth        *auth.Service
	accounts    *account.Service
	idempotency *idempotency.Service
	opt         Options
	waiting     waiting
	budget      *inventoryBudget
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
	opt.VendorEventRate = cmp.Or(opt.VendorEventRate, 100)
	opt.VendorEventBurst = cmp.Or(opt.VendorEventBurst, 200_000)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	s := &Service{
		db:          db,
		keys:        keys,
		waker:       waker,
		events:      r.Events,
		auth:        r.Auth,
		accounts:    r.Accounts,
		idempotency: r.Idempotency,
		opt:         opt,
		budget:      newInventoryBudget(opt.VendorEventRate, opt.VendorEventBurst),
	}
	r.Events.OnEmit(s.count)
	r.Accounts.AtEndOfAccount(s.removeAll)
	return s
}

// Now returns the time by the clock that the rules use.
func (s *Service) Now() time.Time { return s.opt.Now() }
