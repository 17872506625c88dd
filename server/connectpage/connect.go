// Package connect is the page on which a person logs in to a vendor account: it lets them choose a vendor, takes what
// they enter, says what was wrong with it, and sends them back to where they came from. Everything on it works without
// JavaScript; with it, answers replace a part of the page.
//
// Whoever has a page's URL may use it, so the URL stands in no log and goes to no other site. The package decides nothing
// about accounts, which package access does, and knows no vendor: Vendors does.
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
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Vendor is how somebody logs in to one vendor.
type Vendor struct {
	Name        string // device_provider_name of the API
	DisplayName string
	Fields      []Field
	Samples     []Sample // what to enter where the vendor is simulated
	// AccessSystems is whether its accounts have those, and no locks.
	AccessSystems bool
}

// Field is something to enter.
type Field struct {
	Name         string
	Label        string
	Kind         string // type of the input: text, email, password or url
	Value        string // what stands there already
	Placeholder  string
	Help         string
	Autocomplete string
	Optional     bool
}

// Sample is what can be entered in a field.
type Sample struct{ Label, Value string }

// Vendors knows how to log in.
type Vendors interface {
	// Vendor is the one of that name, which the workspace is offered.
	Vendor(name string) (Vendor, bool)
	// LogIn tries what was entered, by the names of the fields, and says how the account is reached. It fails with a
	// *Refusal where the person has to enter something else, or has to be told to try later.
	LogIn(ctx context.Context, in access.Workspace, vendor string, entered map[string]string) (access.NewAccount, error)
}

// Refusal is why a login has come to nothing, in words for the person. It quotes nothing that was entered.
type Refusal struct {
	Field   string // that is wrong; empty: none in particular
	Message string
}

func (r *Refusal) Error() string { return "the login was refused: " + r.Message }

// Options of New.
type Options struct {
	Access  *access.Service
	Vendors Vendors
	Log     *slog.Logger
	// PublicURL is where people reach the server; empty: where each request says that it was sent.
	PublicURL string
	// TrustForwarded is whether X-Forwarded-Host comes from a proxy of ours.
	TrustForwarded bool
	// Guess says how long whoever sends a request has to wait before a login of his is tried, because too many have failed.
	// 0 is not at all, and told is called then, once: whether it was refused. nil: nobody has to.
	Guess func(r *http.Request) (after time.Duration, told func(refused bool))
	// Page takes one request for a page, or says how long whoever sends it has to wait; nil: nobody has to.
	Page func(r *http.Request) (after time.Duration)
	// Observe is told of each request: "connect", its status and how long it took. nil: nobody.
	Observe func(operation string, status int, took time.Duration)
	Traces  *traces.Traces // nil: there are none
}

// assetsPath is where what all pages share is found.
const assetsPath = "/connect/assets/"

type handler struct {
	Options
}

// New makes the handler of all paths below /connect/.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{o}
	router := chi.NewRouter()
	router.Use(middleware.GetHead) // those who look whether a link is good are told, as who opens it is
	router.Get(assetsPath+"{file}", asset)
	router.Get("/connect/{token}", h.onWebview(h.choose))
	router.Get("/connect/{token}/{vendor}", h.onWebview(h.ask))
	router.Post("/connect/{token}/{vendor}", h.onWebview(h.logIn))
	router.Get("/connect/{token}/look.css", h.onWebview(h.style))
	router.Get("/connect/{token}/waiting", h.onWebview(h.wait))
	router.Post("/connect/{token}/give_up", h.onWebview(h.giveUp))
	nothing := func(w http.ResponseWriter, r *http.Request) { h.render(w, r, http.StatusNotFound, gonePage(upFrom(r))) }
	router.NotFound(nothing)
	router.MethodNotAllowed(nothing)
	return h.observe(h.paced(admission.InTurn(router, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.busy(w, r, time.Minute) }))))
}

// paced lets next show pages as often as Page lets it. What all pages share is not counted.
func (h *handler) paced(next http.Handler) http.Handler {
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

// busy is for whoever has to come again after a while. Browsers do so by themselves where nothing was entered, and keep what was.
func (h *handler) busy(w http.ResponseWriter, r *http.Request, after time.Duration) {
	again := strconv.Itoa(seconds(after))
	w.Header().Set("Retry-After", again)
	looks, scripts := r.Method == http.MethodGet || r.Method == http.MethodHead, r.Header.Get("HX-Request") != ""
	switch {
	case looks && scripts:
		w.Header().Set("HX-Reswap", "none ignoreTitle:true") // the page that waits stays, and asks again
	case looks:
		w.Header().Set("Refresh", again)
	case scripts:
		w.Header().Set("HX-Reswap", "afterbegin ignoreTitle:true") // above the form
		w.Header().Set("HX-Reselect", "[role=alert]")
	}
	h.render(w, r, http.StatusTooManyRequests, busyPage(upFrom(r), looks))
}

// observe writes the access log: never a path, for it is a secret, and never what was entered.
func (h *handler) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		seen := &answer{ResponseWriter: w, status: http.StatusOK, request: access.NewID(), begun: start}
		seen.Header().Set("Seam-Request-Id", seen.request.String())
		guard(seen.Header())
		defer func() {
			thrown := recover()
			if thrown != nil && thrown != http.ErrAbortHandler { //nolint:errorlint // a recovered value is no wrapped error
				seen.WriteHeader(http.StatusInternalServerError)
				h.Log.ErrorContext(r.Context(), "a page for logging in has failed", "request_id", seen.request.String(), "panic", thrown, "stack", string(debug.Stack()))
				thrown = nil
			}
			if seen.span.Set(traces.Status(seen.status), traces.RequestID(seen.request.String())); seen.status >= http.StatusInternalServerError {
				seen.span.Fail("internal_error")
			}
			seen.span.End()
			took := time.Since(start)
			if h.Observe != nil {
				h.Observe("connect", seen.status, took)
			}
			h.Log.LogAttrs(seen.span.In(r.Context()), slog.LevelInfo, "request", slog.String("method", r.Method), slog.String("route", "/connect"), slog.Int("status", seen.status),
				slog.Duration("duration", took), slog.String("connect_webview_id", seen.webview), slog.String("request_id", seen.request.String()))
			if thrown != nil {
				panic(thrown)
			}
		}()
		if !h.ownOrigin(r) {
			h.render(seen, r, http.StatusForbidden, gonePage(upFrom(r)))
			return
		}
		r.Body = http.MaxBytesReader(seen, r.Body, bodyLimit)
		next.ServeHTTP(seen, r)
	})
}

// answer is what the log is told of an answer.
type answer struct {
	http.ResponseWriter
	status  int
	webview string
	begun   time.Time
	span    traces.Span // none until the page is known
	request uuid.UUID
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer of the server.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
