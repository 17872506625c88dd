// Package rest serves the HTTP API. It decodes and validates requests, authenticates callers, and encodes responses
// and errors. It must not decide anything about codes, devices or webhooks: each handler maps a request to one
// operation of the domain, and the result to a response.
//
// A request passes through these steps: the request ID and the access log (request_context.go), CORS (cors.go),
// authentication (credential.go), validation of the method, the content type and the body (normalize.go), the
// generated handler (package openapi), idempotency (idempotency.go), the limit on new workspaces (rate_limit.go), and
// a method of handlers.
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
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Options configures NewHandler.
type Options struct {
	// Access runs the operations on workspaces, accounts, devices and codes.
	Access *access.Services
	// ACS runs the operations on access systems and their users.
	ACS *acs.Service
	// Simulator changes simulated devices.
	Simulator Simulator
	// Tester sends test events to webhooks.
	Tester WebhookTester

	// Vendors are the vendors that are not simulated.
	Vendors []adapter.Vendor
	// Connectable are those of Vendors that can be connected in workspaces that are no sandboxes.
	Connectable []adapter.Vendor

	// CursorKeys returns the keys of page cursors. The first one signs, and cursors of all of them are valid. Each has
	// at least 32 random bytes.
	CursorKeys func() [][]byte
	// PublicURL is the URL at which clients reach the service. By default, each request's own URL is used.
	PublicURL string
	// TrustForwarded reports whether X-Forwarded-Proto, -Host and -For come from a trusted proxy.
	TrustForwarded bool

	// Limiter limits the rate of requests. It can be shared with other handlers. By default, there is no limit.
	Limiter *ratelimit.Limiter

	// Health returns the health of the server. If nil, it is unknown.
	Health func(context.Context) Health

	// Logger receives the access log and errors. By default, nothing is logged.
	Logger *slog.Logger

	// Observe receives each request: its operation (a path of the contract, or "unknown"), its status, and its
	// duration. It can be nil.
	Observe func(operation string, status int, took time.Duration)

	// Traces receives a span of each request. It can be nil.
	Traces *traces.Traces
}

// Simulator does to a simulated device what a person does to a real one. Its methods return an access.Error of kind
// NotFound, or of kind Invalid if the device or the account is real.
type Simulator interface {
	// SetOnline connects or disconnects a device.
	SetOnline(ctx context.Context, p domain.Principal, deviceID string, online bool) error
	// RemoveDevice removes a device from its vendor account.
	RemoveDevice(ctx context.Context, p domain.Principal, deviceID string) error
	// SetHub connects or disconnects the hub of a device.
	SetHub(ctx context.Context, p domain.Principal, deviceID string, online bool) error
	// SetSubscription ends or renews the subscription for access codes.
	SetSubscription(ctx context.Context, p domain.Principal, deviceID string, expired bool) error
	// EnterCode enters a PIN at the keypad of a device.
	EnterCode(ctx context.Context, p domain.Principal, deviceID, pin string) (device.Attempt, error)
	// LockByHand locks a device with the button on its keypad.
	LockByHand(ctx context.Context, p domain.Principal, deviceID string) (device.Attempt, error)
	// TriggerNoise makes noise at a noise sensor.
	TriggerNoise(ctx context.Context, p domain.Principal, deviceID string) error
	// AdjustThermostat changes the setting of a thermostat as a person does.
	AdjustThermostat(ctx context.Context, p domain.Principal, deviceID string, setting climate.Setting) error
	// SetTemperature changes the temperature in the room of a thermostat to a number of °C.
	SetTemperature(ctx context.Context, p domain.Principal, deviceID string, celsius float64) error
	// DisconnectAccount makes the vendor reject the credentials of an account.
	DisconnectAccount(ctx context.Context, p domain.Principal, accountID string) error
	// NewAccount returns an account with the simulated devices of a new sandbox workspace.
	NewAccount(workspace uuid.UUID) (account.NewAccount, error)
	// Forget deletes the simulated devices of accounts that were removed.
	Forget(ctx context.Context, accounts []account.Account)
	// AddUnmanagedCode adds a code at the keypad of a device.
	AddUnmanagedCode(ctx context.Context, p domain.Principal, deviceID, name, pin string) (device.Code, error)
}

// NewHandler returns the handler of the whole API.
func NewHandler(o Options) (http.Handler, error) {
	if o.CursorKeys == nil || len(o.CursorKeys()) == 0 || len(o.CursorKeys()[0]) < 32 {
		return nil, errors.New("the cursor key has fewer than 32 bytes")
	}
	pager := pager{keys: o.CursorKeys, trustForwarded: o.TrustForwarded}
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
	h := &handlers{
		access:      o.Access,
		acs:         o.ACS,
		simulator:   o.Simulator,
		tester:      o.Tester,
		vendors:     o.Vendors,
		connectable: o.Connectable,
		pager:       pager,
		logger:      o.Logger,
		health:      o.Health,
	}
	return newEdge(h, o.Access.Auth.Authenticate, o, h.replay)
}

// edge is the code between HTTP and the handlers.
type edge struct {
	operations   map[string]*operation // by path
	authenticate authenticate
	limiter      *ratelimit.Limiter
	repeats      *ratelimit.Repeats
	// hasAccountOf reports whether a workspace has an account of an adapter with one of the login names; nil: never.
	hasAccountOf func(ctx context.Context, workspace uuid.UUID, adapterName string, users []string) (bool, error)
	// admitPublic reports whether an act of a public caller gets an entry of the audit log; nil: always.
	admitPublic func(workspace uuid.UUID) bool

	trustForwarded bool

	logger   *slog.Logger
	observed func(operation string, status int, took time.Duration) // may be nil
	traces   *traces.Traces                                         // may be nil
}

// newEdge wraps the handlers. It returns an error if the contract uses keywords that requests are not checked for.
func newEdge(
	handlers openapi.StrictServerInterface,
	authenticate authenticate,
	o Options,
	around ...openapi.StrictMiddlewareFunc,
) (http.Handler, error) {
	c, err := compiled()
	if err != nil {
		return nil, err
	}
	if o.Limiter == nil {
		o.Limiter = ratelimit.New(ratelimit.Limits{})
	}
	e := &edge{
		authenticate:   authenticate,
		limiter:        o.Limiter,
		repeats:        ratelimit.NewRepeats(),
		operations:     c.operations,
		trustForwarded: o.TrustForwarded,
		logger:         o.Logger,
		observed:       o.Observe,
		traces:         o.Traces,
	}
	if o.Access != nil {
		e.admitPublic, e.hasAccountOf = o.Access.Audit.AdmitPublic, o.Access.Accounts.HasAccountOf
	}
	router := chi.NewRouter()
	router.Use(e.observe, cors, e.queueFairly, e.canonical)
	router.NotFound(e.notFound)
	router.MethodNotAllowed(e.notFound) // only for methods that HTTP does not define
	router.HandleFunc("/openapi.json", e.serveDocument(c.document))
	around = slices.Concat([]openapi.StrictMiddlewareFunc{e.limitWorkspaces}, around) // innermost first
	return openapi.HandlerWithOptions(
		openapi.NewStrictHandlerWithOptions(handlers, around, openapi.StrictHTTPServerOptions{
			RequestErrorHandlerFunc:  e.fail,
			ResponseErrorHandlerFunc: e.fail,
		}),
		openapi.ChiServerOptions{BaseRouter: router},
	), nil
}
