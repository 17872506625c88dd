package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/web"
)

// bodyLimit bounds the size of a form in bytes.
const bodyLimit = 64 << 10

// errNoPage is the error for a path without a page, and for a workspace in which the operator has no role.
var errNoPage = &domain.Error{Kind: domain.NotFound, Type: "page_not_found", Message: "There is no such page."}

// request is a request of an operator, and its response.
type request struct {
	h     *handler
	w     http.ResponseWriter
	r     *http.Request
	route route
	id    uuid.UUID
	now   time.Time

	// session is zero on public pages without one.
	session operator.Session
	// csrf is the value of csrfField in the forms of the page.
	csrf string
	// workspaces are the first of those in which the operator has a role, up to pageRows.
	workspaces []account.Workspace
	// moreWorkspaces is whether there are others.
	moreWorkspaces bool
	// workspace and principal are zero outside of a workspace.
	workspace account.Workspace
	principal domain.Principal
	// nextPage is the page to which a sign-in leads, where the request does not name it.
	nextPage string
}

// serve returns the handler of a route: it checks the session, the role, and the origin of the form.
func (h *handler) serve(route route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if seen, ok := r.Context().Value(routeKey{}).(*string); ok {
			*seen = route.pattern
		}
		rq := &request{h: h, w: w, r: r, route: route, now: h.Now()}
		rq.id, _ = uuid.Parse(w.Header().Get(requestIDHeader))
		if err := rq.authorize(); err != nil {
			rq.fail(err)
			return
		}
		if err := route.handle(rq); err != nil {
			rq.fail(err)
		}
	}
}

// authorize finds the session and the workspace, and fails if the operator may not use the route.
func (rq *request) authorize() error {
	isForm := rq.r.Method != http.MethodGet && rq.r.Method != http.MethodHead
	if isForm && rq.h.Address.FormOrigin(rq.r) == web.ForeignOrigin {
		return &domain.Error{
			Kind:    domain.Forbidden,
			Type:    "foreign_form",
			Message: "The form came from another site, so nothing was changed.",
		}
	}
	rq.r.Body = http.MaxBytesReader(rq.w, rq.r.Body, bodyLimit)
	if err := rq.findSession(); err != nil {
		e, ok := domain.AsError(err)
		if signedOut := ok && e.Kind == domain.Unauthorized; !signedOut || !rq.route.public {
			return err
		}
	}
	if isForm && !rq.isOwnForm() {
		return &domain.Error{
			Kind:    domain.Forbidden,
			Type:    "stale_form",
			Message: "This form is from an earlier session, so nothing was changed. Go back, reload the page, and try again.",
		}
	}
	if err := rq.findWorkspaces(); err != nil {
		return err
	}
	if err := rq.checkRole(); err != nil {
		return err
	}
	if rq.r.Method == http.MethodPost && rq.session.ID != uuid.Nil {
		rq.r = rq.r.WithContext(audit.Acting(rq.r.Context(), audit.Act{
			Principal: rq.actor(),
			RequestID: rq.id,
			Operation: rq.route.operation,
		}))
	}
	return nil
}

// isOwnForm reports whether a form comes from a page of the console. A public form has no session's secret: the browser
// must say that it comes from here, or the form must have the secret of the browser. Otherwise, another site could
// sign a person in with an account of its own.
func (rq *request) isOwnForm() bool {
	switch {
	case rq.hasToken(rq.session.CSRF):
		return true
	case !rq.route.public:
		return false
	case rq.h.Address.FormOrigin(rq.r) == web.OwnOrigin:
		return true
	}
	cookie, err := rq.r.Cookie(rq.formCookie())
	return err == nil && cookie.Value != "" && rq.hasToken(formToken(cookie.Value))
}

// actor returns the principal for the audit log, also outside of a workspace.
func (rq *request) actor() domain.Principal {
	if rq.principal.CredentialID != uuid.Nil {
		return rq.principal
	}
	p, _ := rq.h.Operators.Principal(rq.session, uuid.Nil)
	return p
}

func (rq *request) findSession() (err error) {
	cookie, err := rq.r.Cookie(rq.cookieName())
	if err != nil {
		return &domain.Error{Kind: domain.Unauthorized, Type: "signed_out", Message: "Sign in first."}
	}
	find := rq.h.Operators.Session
	if rq.isAutomatic() {
		find = rq.h.Operators.FindSession
	}
	rq.session, err = find(rq.r.Context(), cookie.Value)
	rq.csrf = rq.session.CSRF
	return err
}

// cookieName is the name of the session's cookie. With HTTPS, its prefix makes browsers refuse a cookie that another
// host has set.
func (rq *request) cookieName() string {
	if rq.h.Address.IsSecure(rq.r) {
		return "__Host-deviceaccess"
	}
	return "deviceaccess"
}

// csrfField is the name of the form field with the session's secret, or with that of a browser without a session.
const csrfField = "csrf"

func (rq *request) hasToken(want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(rq.r.PostFormValue(csrfField)), []byte(want)) == 1
}

// formCookie is the name of the cookie with the secret of a browser without a session.
func (rq *request) formCookie() string { return rq.cookieName() + "-form" }

// formToken returns the value of csrfField for the secret of a browser.
func formToken(secret string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("form"))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// keepFormSecret gives a browser without a session its secret, for the forms of the page.
func (rq *request) keepFormSecret() {
	secret := rand.Text()
	if cookie, err := rq.r.Cookie(rq.formCookie()); err == nil && len(cookie.Value) >= len(secret) {
		secret = cookie.Value
	}
	rq.csrf = formToken(secret)
	rq.setCookie(rq.formCookie(), secret, operator.SessionLifetime)
}

// findWorkspaces finds the first workspaces of the operator, and the one in the path.
func (rq *request) findWorkspaces() error {
	if rq.session.ID == uuid.Nil {
		return nil
	}
	own, next, err := rq.ownWorkspaces("", overview.Position{})
	if err != nil {
		return err
	}
	rq.workspaces, rq.moreWorkspaces = own, next != (overview.Position{})
	id, _ := uuid.Parse(chi.URLParam(rq.r, "workspace"))
	p, ok := rq.h.Operators.Principal(rq.session, id)
	if id == uuid.Nil || !ok {
		return nil
	}
	w, err := rq.h.Access.Accounts.GetWorkspace(rq.r.Context(), id)
	if e, known := domain.AsError(err); known && e.Kind == domain.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	rq.workspace, rq.principal = w, p
	rq.principal.Suspended = w.IsSuspended
	return nil
}

// ownWorkspaces returns a page of the workspaces in which the operator has a role, and where the next page starts.
func (rq *request) ownWorkspaces(
	search string,
	after overview.Position,
) (page []account.Workspace, next overview.Position, err error) {
	roles := rq.session.Operator.Roles
	page, err = rq.h.Access.Accounts.ListWorkspacesPage(rq.r.Context(), account.WorkspacePage{
		Everywhere: roles[uuid.Nil] != "",
		IDs:        slices.Collect(maps.Keys(roles)),
		Search:     search,
		AfterAt:    after.At,
		AfterID:    after.ID,
		Limit:      pageRows + 1,
	})
	if err != nil || len(page) <= pageRows {
		return page, next, err
	}
	page = page[:pageRows]
	return page, overview.Position{At: page[pageRows-1].CreatedAt, ID: page[pageRows-1].ID}, nil
}

func (rq *request) checkRole() error {
	inWorkspace := rq.route.inWorkspace()
	switch {
	case rq.route.public || rq.route.role == "":
		return nil
	case inWorkspace && rq.workspace.ID == uuid.Nil:
		return errNoPage
	case !rq.may(rq.route.role):
		return &domain.Error{
			Kind:    domain.Forbidden,
			Type:    "forbidden",
			Message: "This needs the role " + string(rq.route.role) + ". Ask an administrator of this server for it.",
		}
	case inWorkspace && rq.workspace.IsSuspended && rq.r.Method == http.MethodPost:
		return auth.WorkspaceSuspended()
	}
	return nil
}

// may reports whether the operator has a role in the workspace of the page or, outside of workspaces, everywhere.
func (rq *request) may(role domain.Role) bool {
	if rq.route.inWorkspace() {
		return rq.principal.Role.Includes(role)
	}
	return rq.session.Operator.RoleIn(uuid.Nil).Includes(role)
}

// reader returns the principal for reads. It is a viewer, so that nothing it reads contains a PIN.
func (rq *request) reader() domain.Principal {
	p := rq.principal
	p.Role = domain.RoleViewer
	return p
}

// param returns a parameter of the path.
func (rq *request) param(name string) string { return chi.URLParam(rq.r, name) }

// query returns a parameter of the URL's query, without surrounding space.
func (rq *request) query(name string) string { return strings.TrimSpace(rq.r.URL.Query().Get(name)) }

// form returns a field of the form, without surrounding space.
func (rq *request) form(name string) string { return strings.TrimSpace(rq.r.PostFormValue(name)) }

// url returns the URL of a page of the workspace, with pairs of names and values as its query. Empty values are left
// out.
func (rq *request) url(path string, query ...string) string {
	to := Path + path
	if rq.workspace.ID != uuid.Nil {
		to = Path + "/w/" + rq.workspace.ID.String() + path
	}
	return withQuery(to, query...)
}

// here returns the URL of this page with changed parameters of its query. Empty values remove a parameter.
func (rq *request) here(query ...string) string {
	values := rq.r.URL.Query()
	values.Del(noticeParam)
	for i := 0; i+1 < len(query); i += 2 {
		values.Del(query[i])
		if query[i+1] != "" {
			values.Set(query[i], query[i+1])
		}
	}
	if len(values) == 0 {
		return rq.r.URL.Path
	}
	return rq.r.URL.Path + "?" + values.Encode()
}

func withQuery(to string, query ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			values.Set(query[i], query[i+1])
		}
	}
	if len(values) == 0 {
		return to
	}
	return to + "?" + values.Encode()
}

// render sends a page.
func (rq *request) render(status int, page templ.Component) error {
	if rq.route.public && rq.session.ID == uuid.Nil {
		rq.keepFormSecret()
	}
	rq.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	rq.w.WriteHeader(status)
	if rq.r.Method == http.MethodHead {
		return nil
	}
	_ = page.Render(rq.r.Context(), rq.w) // the client has disconnected
	return nil
}

// show sends a page with status 200.
func (rq *request) show(page templ.Component) error { return rq.render(http.StatusOK, page) }

// done redirects after an action. notice is a key of notices, shown on the next page; it can be empty.
func (rq *request) done(to, notice string) error {
	if notice != "" {
		separator := "?"
		if strings.Contains(to, "?") {
			separator = "&"
		}
		to += separator + noticeParam + "=" + url.QueryEscape(notice)
	}
	http.Redirect(rq.w, rq.r, to, http.StatusSeeOther)
	return nil
}

// fail sends the page of an error. Signed-out readers are led to the sign-in and back.
func (rq *request) fail(err error) {
	domainErr, known := domain.AsError(err)
	if !known {
		if rq.r.Context().Err() != nil {
			return // the client has disconnected
		}
		rq.h.Log.ErrorContext(rq.r.Context(), "a page of the console failed",
			"route", rq.route.pattern, "request_id", rq.id.String(), "error", err)
		domainErr = &domain.Error{
			Type:    "internal_error",
			Message: "Something went wrong in the server. Its log has more under the request id " + rq.id.String() + ".",
		}
	}
	if domainErr.Kind == domain.Unauthorized && rq.session.ID == uuid.Nil {
		rq.toSignIn()
		return
	}
	_ = rq.render(statusOf(domainErr.Kind), errorPage(rq, domainErr))
}

// toSignIn redirects to the sign-in, which leads back to a page that was asked for.
func (rq *request) toSignIn() {
	next := ""
	if rq.r.Method == http.MethodGet && rq.r.URL.Path != Path {
		next = rq.r.URL.RequestURI()
	}
	http.Redirect(rq.w, rq.r, withQuery(Path+"/sign-in", "next", next), http.StatusSeeOther)
}

// statusOf returns the HTTP status of a kind of error.
func statusOf(kind domain.Kind) int {
	switch kind {
	case domain.Invalid:
		return http.StatusUnprocessableEntity
	case domain.NotFound:
		return http.StatusNotFound
	case domain.Conflict, domain.Mismatch:
		return http.StatusConflict
	case domain.Unauthorized:
		return http.StatusUnauthorized
	case domain.Forbidden:
		return http.StatusForbidden
	case domain.Unavailable:
		return http.StatusServiceUnavailable
	case domain.TooMany:
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

const requestIDHeader = "Seam-Request-Id"

// busy responds while too many requests run.
func (h *handler) busy(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "5")
	rq := &request{h: h, w: w, r: r, now: h.Now()}
	rq.fail(&domain.Error{
		Kind:    domain.Unavailable,
		Type:    "busy",
		Message: "The server has too many requests at the moment. Try again in a few seconds.",
	})
}

// observe writes the access log, which must not contain values of forms or queries, and survives panics.
func (h *handler) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, id, pattern := time.Now(), domain.NewID(), ""
		r = r.WithContext(context.WithValue(r.Context(), routeKey{}, &pattern))
		seen := &recordedResponse{ResponseWriter: w, status: http.StatusOK}
		seen.Header().Set(requestIDHeader, id.String())
		web.SetSecurityHeaders(seen.Header())
		defer func() {
			thrown := recover()
			err, _ := thrown.(error)
			if thrown != nil && !errors.Is(err, http.ErrAbortHandler) {
				seen.WriteHeader(http.StatusInternalServerError)
				h.Log.ErrorContext(r.Context(), "a page of the console failed",
					"request_id", id.String(), "panic", thrown, "stack", string(debug.Stack()))
				thrown = nil
			}
			took := time.Since(start)
			if h.Observe != nil && !isStream(pattern) {
				h.Observe("console", seen.status, took)
			}
			h.Log.InfoContext(
				r.Context(),
				"request",
				"method",
				r.Method,
				"route",
				Path+pattern,
				"status",
				seen.status,
				"duration",
				took,
				"request_id",
				id.String(),
			)
			if thrown != nil {
				panic(thrown)
			}
		}()
		next.ServeHTTP(seen, r)
	})
}

// routeKey is the key of a *string that receives the pattern of the matched route, which contains no identifiers and
// tokens.
type routeKey struct{}

// recordedResponse records the status for the access log.
type recordedResponse struct {
	http.ResponseWriter
	status int
}

// WriteHeader records the status.
func (w *recordedResponse) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the server's writer.
func (w *recordedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
