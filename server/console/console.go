// Package console serves the pages on which operators see and change what is in a workspace: what is wrong now, locks,
// codes, people, accounts, webhooks, and who may do what. The pages are complete without JavaScript; with it, they
// refresh themselves and have keyboard shortcuts.
//
// Handlers call the same operations of the domain as the API, with the operator as principal. The package must not
// decide about resources, and must not show PINs, except in reveal.go.
package console

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/web"
)

// Path is the path of all pages.
const Path = "/console"

// Operators says who an operator is and what the operator may do.
type Operators interface {
	// Session returns the session of a token, and records its use, which extends it. It fails with Unauthorized.
	Session(ctx context.Context, token string) (operator.Session, error)
	// FindSession is Session without a record of the use.
	FindSession(ctx context.Context, token string) (operator.Session, error)
	// Principal returns the operator as the actor in a workspace, or false if the operator has no role there.
	Principal(s operator.Session, workspace uuid.UUID) (domain.Principal, bool)
}

// Options configures New.
type Options struct {
	Access    *access.Services
	ACS       *acs.Service
	Operators Operators
	// Accounts connects accounts. If nil, the pages offer no such form.
	Accounts Accounts
	// LinkURL is the URL of the connect pages; empty: the URL at which the browser reaches the console.
	LinkURL string
	// Tester sends test events. If nil, the pages offer none.
	Tester WebhookTester
	// Health returns the state of the server's parts. It can be nil.
	Health func(context.Context) []Part
	// Address says how browsers reach the server.
	Address web.Address
	// ClientAddress returns the address of a client. It can be nil.
	ClientAddress func(r *http.Request) string
	// Guess returns how long the sender of a request must wait before the server tries a sign-in, because too many have
	// failed. If after is 0, the caller must call told once with the result. If nil, sign-ins are not limited.
	Guess func(r *http.Request) (after time.Duration, told func(refused bool))
	// Reveal allows operators to see single PINs.
	Reveal bool
	// Version is the version of the program.
	Version string
	// Log receives the access log and errors. If nil, nothing is logged.
	Log *slog.Logger
	// Observe receives each request: "console", its status, and its duration. It can be nil.
	Observe func(operation string, status int, took time.Duration)
	// Now is the clock. If nil, it is time.Now.
	Now func() time.Time
	// Live are the intervals of live pages.
	Live LiveOptions
	// Settings are what the flags of the server set, as the page Settings shows it.
	Settings []Setting
	// OwnDatabase says that the server runs its own PostgreSQL, so that it knows of its backups.
	OwnDatabase bool
	// ResetSandbox does what /workspaces/reset_sandbox does. If nil, the console does not offer it.
	ResetSandbox func(context.Context, domain.Principal) error
}

type handler struct {
	Options

	live *liveHub
}

// New returns the handler of all paths below Path.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &handler{Options: o, live: newLiveHub()}
	return h.observe(h.router())
}
