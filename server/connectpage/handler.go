// Package connectpage serves the pages on which people log in to a vendor account. A page lets the person choose a
// vendor, takes the login, explains errors, and sends the person back. The pages work without JavaScript; with it,
// responses replace a part of the page.
//
// Any person with a page's URL can use it, so the URL must not appear in logs or be sent to other sites. The package
// must not decide about accounts (package account does) or know vendors (Vendors does).
package connectpage

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/web"
)

// Vendor describes how a person logs in to a vendor.
type Vendor struct {
	// Name is the device_provider_name of the API.
	Name string
	// DisplayName is the name for people.
	DisplayName string
	// Fields are the inputs of the login form.
	Fields []login.Field
	// Sample says what to enter if the vendor is simulated.
	Sample login.Sample
	// Kinds are the kinds of devices that the accounts of the vendor have, as in accepted_capabilities of the API.
	// Empty means locks.
	Kinds []string
	// ReadOnly reports whether new devices start out read-only, because the server's way to reach the vendor was never
	// tested with the vendor.
	ReadOnly bool
	// Adapter is the Adapter of accounts that name no vendor.
	Adapter string
	// Callback is the last part of the path that the vendor's own pages lead back to, if people can log in there. If
	// empty, people log in with Fields only.
	Callback string
}

// Authorization is a login on the vendor's own pages (OAuth 2.0 with PKCE).
type Authorization struct {
	// RedirectURI is where the vendor's pages lead back to.
	RedirectURI string
	// State and Verifier are secrets of this login.
	State, Verifier string
	// Code is what the vendor's pages return.
	Code string
}

// Vendors logs in to vendors.
type Vendors interface {
	// Vendor returns the vendor of that name, or false if people cannot log in to it in the workspace.
	Vendor(in account.Workspace, name string) (Vendor, bool)
	// LogIn tries a login with the entered values, by field name, and returns the new account. It returns a
	// *login.Refusal if the person must enter something else or try later, and a *login.Step if the person must enter
	// more.
	LogIn(
		ctx context.Context,
		in account.Workspace,
		vendor string,
		entered map[string]string,
	) (account.NewAccount, error)
	// AuthorizeURL returns the vendor's page for a login. Code is not set.
	AuthorizeURL(in account.Workspace, vendor string, a Authorization) (string, error)
	// LogInWithCode logs in with the code from the vendor's page, and returns the new account. It returns a
	// *login.Refusal if the vendor refuses the code, or does not respond.
	LogInWithCode(ctx context.Context, in account.Workspace, vendor string, a Authorization) (account.NewAccount, error)
}

// Options configures New.
type Options struct {
	// Access runs the operations on webviews and accounts.
	Access *access.Services
	// Vendors logs in to vendors.
	Vendors Vendors
	// Log receives the access log and errors. By default, nothing is logged.
	Log *slog.Logger
	// PublicURL is the URL at which people reach the server. By default, each request's own URL is used.
	PublicURL string
	// TrustForwarded reports whether X-Forwarded-Host comes from a trusted proxy.
	TrustForwarded bool
	// Guess returns how long the sender of a request must wait before the server tries a login, because too many have
	// failed. If after is 0, the caller must call told once with the result. If nil, logins are not limited.
	Guess func(r *http.Request) (after time.Duration, told func(refused bool))
	// Page counts a request for a page, or returns how long its sender must wait. If nil, requests are not limited.
	Page func(r *http.Request) (after time.Duration)
	// Observe receives each request: "connect", its status, and its duration. It can be nil.
	Observe func(operation string, status int, took time.Duration)
	// Traces receives a span of each request. It can be nil.
	Traces *traces.Traces
}

// assetsPath is the path of the files that all pages share.
const assetsPath = "/connect/assets/"

// callbackPath is the path prefix that vendors' pages lead back to. Vendors accept registered URLs only, so the path
// does not contain the token of a webview; the state of OAuth finds the webview.
const callbackPath = "/connect/back/"

type handler struct {
	Options
}

// New returns the handler of all paths below /connect/.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{o}
	router := chi.NewRouter()
	router.Use(middleware.GetHead) // link checkers receive the same status as browsers
	router.Get(assetsPath+"{file}", files.ServeHTTP)
	router.Get("/connect/{token}", h.onWebview(h.showChoice))
	router.Get("/connect/{token}/{vendor}", h.onWebview(h.showLogin))
	router.Post("/connect/{token}/{vendor}", h.onWebview(h.logIn))
	router.Get("/connect/{token}/{vendor}/authorize", h.onWebview(h.authorize))
	// The same depth as the form before: htmx keeps the URL of a page that it changes, and links are relative.
	router.Get("/connect/{token}/{login:[0-9a-f-]{36}}", h.onWebview(h.showStep))
	router.Post("/connect/{token}/{login:[0-9a-f-]{36}}", h.onWebview(h.continueLogin))
	router.Post("/connect/{token}/{login:[0-9a-f-]{36}}/start_over", h.onWebview(h.startOver))
	router.Get(callbackPath+"{vendor}", h.comeBack)
	router.Get("/connect/{token}/look.css", h.onWebview(h.serveStylesheet))
	router.Get("/connect/{token}/waiting", h.onWebview(h.showWaiting))
	router.Post("/connect/{token}/give_up", h.onWebview(h.giveUp))
	nothing := func(w http.ResponseWriter, r *http.Request) {
		h.render(w, r, http.StatusNotFound, gonePage(pathToRoot(r)))
	}
	router.NotFound(nothing)
	router.MethodNotAllowed(nothing)
	busy := func(w http.ResponseWriter, r *http.Request) { h.busy(w, r, time.Minute) }
	return h.observe(h.limitRate(admission.Middleware(router, http.HandlerFunc(busy))))
}

// limitRate limits the rate of requests with Page. Shared files do not count.
func (h *handler) limitRate(next http.Handler) http.Handler {
	if h.Page == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, assetsPath) {
			if after := h.Page(r); after > 0 {
				h.busy(w, r, after)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// busy responds to a request that must wait. The browser retries reads automatically and keeps the entered values.
func (h *handler) busy(w http.ResponseWriter, r *http.Request, after time.Duration) {
	again := strconv.Itoa(seconds(after))
	w.Header().Set("Retry-After", again)
	looks, scripts := r.Method == http.MethodGet || r.Method == http.MethodHead, r.Header.Get("HX-Request") != ""
	switch {
	case looks && scripts:
		w.Header().Set("HX-Reswap", "none ignoreTitle:true") // the waiting page stays and polls again
	case looks:
		w.Header().Set("Refresh", again)
	case scripts:
		w.Header().Set("HX-Reswap", "afterbegin ignoreTitle:true") // above the form
		w.Header().Set("HX-Reselect", "[role=alert]")
	}
	h.render(w, r, http.StatusTooManyRequests, busyPage(pathToRoot(r), looks))
}

// observe writes the access log. It must not contain paths, which are secret, or entered values.
func (h *handler) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		seen := &recordedResponse{
			ResponseWriter: w,
			status:         http.StatusOK,
			request:        domain.NewID(),
			begun:          start,
		}
		seen.Header().Set("Seam-Request-Id", seen.request.String())
		web.SetSecurityHeaders(seen.Header())
		defer func() {
			thrown := recover()
			if thrown != nil &&
				thrown != http.ErrAbortHandler { //nolint:errorlint // a recovered value is no wrapped error
				seen.WriteHeader(http.StatusInternalServerError)
				h.Log.ErrorContext(r.Context(), "a login page failed",
					"request_id", seen.request.String(), "panic", thrown, "stack", string(debug.Stack()))
				thrown = nil
			}
			if seen.span.Set(
				traces.Status(seen.status),
				traces.RequestID(seen.request.String()),
			); seen.status >= http.StatusInternalServerError {
				seen.span.Fail("internal_error")
			}
			seen.span.End()
			took := time.Since(start)
			if h.Observe != nil {
				h.Observe("connect", seen.status, took)
			}
			h.Log.LogAttrs(seen.span.NewContext(r.Context()), slog.LevelInfo, "request",
				slog.String("method", r.Method),
				slog.String("route", "/connect"),
				slog.Int("status", seen.status),
				slog.Duration("duration", took),
				slog.String("connect_webview_id", seen.webview),
				slog.String("request_id", seen.request.String()))
			if thrown != nil {
				panic(thrown)
			}
		}()
		r = r.WithContext(withReader(r.Context(), newReader(r)))
		// The URL of the page is a secret that suffices where the browser does not say the origin.
		if isForm(r) && h.address().FormOrigin(r) == web.ForeignOrigin {
			h.render(seen, r, http.StatusForbidden, gonePage(pathToRoot(r)))
			return
		}
		r.Body = http.MaxBytesReader(seen, r.Body, bodyLimit)
		next.ServeHTTP(seen, r)
	})
}

func isForm(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// recordedResponse records what the access log needs about a response.
type recordedResponse struct {
	http.ResponseWriter
	status  int
	webview string
	begun   time.Time
	span    traces.Span // empty until the page is known
	request uuid.UUID
}

// WriteHeader records the status.
func (a *recordedResponse) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the server's writer.
func (a *recordedResponse) Unwrap() http.ResponseWriter { return a.ResponseWriter }
