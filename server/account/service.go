// Package account keeps workspaces, the connected accounts in them, and the connect webviews on which people log in to
// accounts. It knows no codes, and no vendor's protocol.
package account

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// MaxWorkspaces is the default of Options.MaxWorkspaces.
const MaxWorkspaces = 1000

// Options of a Service. The zero value is for production.
type Options struct {
	MaxWorkspaces int // workspaces of a credential that creates them; 0: MaxWorkspaces
	// UnclaimedWebviews is the maximum number of unused webviews in a workspace of client sessions that were created
	// with a publishable key and reach nothing; 0: UnclaimedWebviews.
	UnclaimedWebviews int

	MaxDevices int              // devices of an account, with those that have left; 0: 50,000
	MaxSystems int              // access systems of an account, with those that have left; 0: 1000
	Now        func() time.Time // the clock; nil: the system's
	Log        *slog.Logger

	// Providers are the vendors that people of a workspace can log in to; nil: none.
	Providers func(Workspace) []Provider
	// Unverified says what adapters were tested with that never met their vendor, by adapter. Their accounts are
	// read-only until AllowWrites.
	Unverified map[string]string
}

// Service keeps workspaces, accounts and connect webviews.
type Service struct {
	db           *store.DB
	keys         *encryption.Keys
	waker        *worker.Waker
	events       *event.Service
	auth         *auth.Service
	webhooks     *webhook.Service
	serverKeys   *keyrotation.Service
	opt          Options
	endOfAccount []EndOfAccount
	unclaimed    domain.Headroom // of webviews
}

// Services are the other services that a Service calls.
type Services struct {
	Events     *event.Service
	Auth       *auth.Service
	Webhooks   *webhook.Service
	ServerKeys *keyrotation.Service
}

// New creates a Service. db must be migrated.
func New(db *store.DB, keys *encryption.Keys, waker *worker.Waker, r Services, opt Options) *Service {
	opt.MaxWorkspaces = cmp.Or(opt.MaxWorkspaces, MaxWorkspaces)
	opt.UnclaimedWebviews = cmp.Or(opt.UnclaimedWebviews, UnclaimedWebviews)
	opt.MaxDevices = cmp.Or(opt.MaxDevices, 50_000)
	opt.MaxSystems = cmp.Or(opt.MaxSystems, 1000)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	return &Service{
		db:         db,
		keys:       keys,
		waker:      waker,
		events:     r.Events,
		auth:       r.Auth,
		webhooks:   r.Webhooks,
		serverKeys: r.ServerKeys,
		opt:        opt,
	}
}
