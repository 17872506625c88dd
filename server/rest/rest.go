// Package rest is the HTTP edge: it knows how requests are written, who makes them, what the contract asks of them,
// and how answers and errors look. It decides nothing about codes, devices or webhooks: each handler maps a request
// to one operation of package access and its result back.
//
// A request passes, in this order: its id and the access log (exchange.go), CORS (cors.go), authentication
// (credential.go), the method, the content type and the check against the contract (canonical.go), the generated
// handler, for what has an Idempotency-Key the answer that was given before (once.go), for some the pace at which they may
// come (pace.go), and one of ours.
package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Options of NewHandler.
type Options struct {
	Access    *access.Service
	ACS       *acs.Service
	Simulator Simulator

	// CursorKey seals page cursors: at least 32 random bytes, kept for as long as cursors shall be good.
	CursorKey []byte
	// PublicURL is where callers reach the service; empty: where each request says that it was sent.
	PublicURL string
	// TrustForwarded is whether X-Forwarded-Proto, -Host and -For come from a proxy of ours.
	TrustForwarded bool

	Limits  Limits
	Callers *Callers // also of others than this handler; nil: of it alone

	Health func(context.Context) Health // how the server is; nil: nobody knows

	Logger *slog.Logger // nil: none

	// Observe is told of each request: its operation, a path of the contract or "unknown", and its status. nil: nobody.
	Observe func(operation string, status int, took time.Duration)

	Traces *traces.Traces // nil: there are none
}

// Simulator does by hand what a person would do to a simulated device. It fails with an access.Error of kind NotFound,
// and of kind Invalid for a device or an account that is real.
type Simulator interface {
	SetOnline(ctx context.Context, p access.Principal, deviceID string, online bool) error
	RemoveDevice(ctx context.Context, p access.Principal, deviceID string) error
	SetHub(ctx context.Context, p access.Principal, deviceID string, online bool) error
	SetSubscription(ctx context.Context, p access.Principal, deviceID string, expired bool) error
	EnterCode(ctx context.Context, p access.Principal, deviceID, pin string) (access.Attempt, error)
	LockByHand(ctx context.Context, p access.Principal, deviceID string) (access.Attempt, error)
	DisconnectAccount(ctx context.Context, p access.Principal, accountID string) error
	// NewAccount is an account with simulated devices that a sandbox workspace begins with.
	NewAccount(workspace uuid.UUID) (access.NewAccount, error)
	// Forget has simulated devices forgotten that nobody reaches any more.
	Forget(ctx context.Context, accounts []access.Account)
	AddUnmanagedCode(ctx context.Context, p access.Principal, deviceID, name, pin string) (access.Code, error)
}

// NewHandler makes the handler of the whole API.
func NewHandler(o Options) (http.Handler, error) {
	if len(o.CursorKey) < 32 {
		return nil, errors.New("the cursor key has fewer than 32 bytes")
	}
	pager := pager{key: o.CursorKey, trustForwarded: o.TrustForwarded}
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("the public URL %q does not begin with https:// or http:// and a host", o.PublicURL)
		}
		pager.publicURL = u
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handlers{access: o.Access, acs: o.ACS, simulator: o.Simulator, pager: pager, logger: o.Logger, health: o.Health}
	return newEdge(h, o.Access.Authenticate, o, h.once)
}

// edge is everything between HTTP and the handlers.
type edge struct {
	operations   map[string]*operation // by path
	authenticate authenticate
	callers      *callers
	repeats      *repeats

	trustForwarded bool

	logger   *slog.Logger
	observed func(operation string, status int, took time.Duration) // nil: nobody is told
	traces   *traces.Traces                                         // nil: there are none
}

// newEdge puts the edge around the handlers. It fails when the contract asks for what requests are not checked for.
func newEdge(handlers openapi.StrictServerInterface, authenticate authenticate, o Options, around ...openapi.StrictMiddlewareFunc) (http.Handler, error) {
	c, err := compiled()
	if err != nil {
		return nil, err
	}
	if o.Callers == nil {
		o.Callers = NewCallers(o.Limits)
	}
	e := &edge{authenticate: authenticate, callers: o.Callers.callers, repeats: newRepeats(), operations: c.operations, trustForwarded: o.TrustForwarded, logger: o.Logger, observed: o.Observe, traces: o.Traces}
	router := chi.NewRouter()
	router.Use(e.observe, cors, e.inTurn, e.canonical)
	router.NotFound(e.notFound)
	router.MethodNotAllowed(e.notFound) // for methods that HTTP does not have; the others never come here
	router.HandleFunc("/openapi.json", e.serveDocument(c.document))
	around = slices.Concat([]openapi.StrictMiddlewareFunc{e.paced}, around) // the first is the innermost
	return openapi.HandlerWithOptions(openapi.NewStrictHandlerWithOptions(handlers, around, openapi.StrictHTTPServerOptions{
		RequestErrorHandlerFunc: e.fail, ResponseErrorHandlerFunc: e.fail,
	}), openapi.ChiServerOptions{BaseRouter: router}), nil
}
