// Package access creates the services of the domain, each with those that it calls. It has no rules of its own.
package access

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noisesensor"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/phone"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/thermostat"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Options of Services. The zero value is for production. Each is described where it is used: in the options of device,
// thermostat, account, auth, webhook, idempotency and keyrotation.
type Options struct {
	AttemptTimeout         time.Duration
	ConfirmTimeout         time.Duration
	ReadLag                time.Duration
	EmptyListGrace         time.Duration
	RereadInterval         time.Duration
	AttemptPollInterval    time.Duration
	LockCommandTimeout     time.Duration
	OperationLag           time.Duration
	OfflineDebounce        time.Duration
	RotationWait           time.Duration
	IdempotencyWaitTimeout time.Duration
	DelayAfter             time.Duration
	UnclaimedSessions      int
	UnclaimedWebviews      int
	PublicKeys             int
	PublicEntries          int
	MaxWebhooks            int
	MaxWorkspaces          int
	MaxDevices             int
	MaxSystems             int
	PollInterval           time.Duration // of thermostats
	InventoryEventRate     float64
	InventoryEventBurst    int
	InventoryTTL           time.Duration // of health.Service
	Now                    func() time.Time
	Log                    *slog.Logger
	RefusedAddress         func(netip.Addr) bool
	Providers              func(account.Workspace) []account.Provider
	Unverified             map[string]string // as for account.Options
	Operators              operator.Options
}

// Services are the services of the domain, one per package.
type Services struct {
	Accounts     *account.Service
	Audit        *audit.Service
	Auth         *auth.Service
	Devices      *device.Service
	Events       *event.Service
	Health       *health.Service
	Idempotency  *idempotency.Service
	NoiseSensors *noisesensor.Service
	Operators    *operator.Service
	Retention    *retention.Service
	ServerKeys   *keyrotation.Service
	Webhooks     *webhook.Service
	Overview     *overview.Service
	Phones       *phone.Service
	Thermostats  *thermostat.Service
}

// New creates the services. db must be migrated.
func New(db *store.DB, keys *encryption.Keys, waker *worker.Waker, opt Options) *Services {
	r := &Services{
		Audit:  audit.New(db, audit.Options{PublicEntries: opt.PublicEntries, Now: opt.Now, Log: opt.Log}),
		Events: event.New(db, keys, waker),
		Health: health.New(db, keys, opt.InventoryTTL),
		Idempotency: idempotency.New(
			db,
			keys,
			idempotency.Options{
				WaitTimeout: opt.IdempotencyWaitTimeout,
				PublicKeys:  opt.PublicKeys,
				Now:         opt.Now,
				Log:         opt.Log,
			},
		),
		ServerKeys: keyrotation.New(db, keys, keyrotation.Options{RotationWait: opt.RotationWait}),
	}
	r.Overview = overview.New(db)
	opt.Operators.Now, opt.Operators.Log = opt.Now, opt.Log
	r.Operators = operator.New(db, keys, opt.Operators)
	r.Phones = phone.New(db, r.Events)
	r.Auth = auth.New(
		db,
		keys,
		r.Events,
		r.ServerKeys,
		auth.Options{UnclaimedSessions: opt.UnclaimedSessions, Now: opt.Now},
	)
	r.Webhooks = webhook.NewService(db, keys, waker, r.Events, webhook.ServiceOptions{
		MaxWebhooks: opt.MaxWebhooks, RefusedAddress: opt.RefusedAddress, Now: opt.Now,
	})
	r.Accounts = account.New(db, keys, waker,
		account.Services{
			Events:     r.Events,
			Auth:       r.Auth,
			Webhooks:   r.Webhooks,
			ServerKeys: r.ServerKeys,
		},
		account.Options{
			MaxWorkspaces:     opt.MaxWorkspaces,
			UnclaimedWebviews: opt.UnclaimedWebviews,
			MaxDevices:        opt.MaxDevices,
			MaxSystems:        opt.MaxSystems,
			Now:               opt.Now,
			Log:               opt.Log,
			Providers:         opt.Providers,
			Unverified:        opt.Unverified,
		})
	r.Devices = device.New(db, keys, waker,
		device.Services{
			Events:      r.Events,
			Auth:        r.Auth,
			Accounts:    r.Accounts,
			Idempotency: r.Idempotency,
		},
		device.Options{
			AttemptTimeout:      opt.AttemptTimeout,
			ConfirmTimeout:      opt.ConfirmTimeout,
			ReadLag:             opt.ReadLag,
			EmptyListGrace:      opt.EmptyListGrace,
			RereadInterval:      opt.RereadInterval,
			AttemptPollInterval: opt.AttemptPollInterval,
			LockCommandTimeout:  opt.LockCommandTimeout,
			OperationLag:        opt.OperationLag,
			OfflineDebounce:     opt.OfflineDebounce,
			DelayAfter:          opt.DelayAfter,
			InventoryEventRate:  opt.InventoryEventRate,
			InventoryEventBurst: opt.InventoryEventBurst,
			Now:                 opt.Now,
			Log:                 opt.Log,
		})
	r.NoiseSensors = noisesensor.New(db, r.Devices, r.Accounts, r.Events)
	r.Thermostats = thermostat.New(
		db,
		thermostat.Services{Events: r.Events, Accounts: r.Accounts, Devices: r.Devices},
		thermostat.Options{
			ConfirmTimeout: opt.ConfirmTimeout,
			ReadLag:        opt.ReadLag,
			PollInterval:   opt.PollInterval,
			Now:            opt.Now,
		},
	)
	r.Retention = retention.New(db, retention.Services{
		Auth:        r.Auth,
		Operators:   r.Operators,
		Webhooks:    r.Webhooks,
		Devices:     r.Devices,
		Idempotency: r.Idempotency,
		Audit:       r.Audit,
	}, opt.Now, opt.Log)
	return r
}
