// Package account keeps workspaces, the connected accounts in them, and the connect webviews on which people log in to
// accounts. It knows no codes, and no vendor's protocol.
package account

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// MostWorkspaces is the default of Options.MostWorkspaces.
const MostWorkspaces = 1000

// Options of a Service. The zero value is for production.
type Options struct {
	MostWorkspaces int              // workspaces of a credential that creates them; 0: MostWorkspaces
	MostFound      int              // devices of an account, with those that have left; 0: 50,000
	MostSystems    int              // access systems of an account, with those that have left; 0: 1000
	Now            func() time.Time // the clock; nil: the system's
	Log            *slog.Logger

	// Providers are the vendors that people of a workspace can log in to; nil: none.
	Providers func(Workspace) []Provider
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
}

// Rooms are the other rooms that a Service calls.
type Rooms struct {
	Events     *event.Service
	Auth       *auth.Service
	Webhooks   *webhook.Service
	ServerKeys *keyrotation.Service
}

// New creates a Service. db must be migrated.
func New(db *store.DB, keys *encryption.Keys, waker *worker.Waker, r Rooms, opt Options) *Service {
	opt.MostWorkspaces = cmp.Or(opt.MostWorkspaces, MostWorkspaces)
	opt.MostFound = cmp.Or(opt.MostFound, 50_000)
	opt.MostSystems = cmp.Or(opt.MostSystems, 1000)
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
