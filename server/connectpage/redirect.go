package connectpage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// maxCodeLength is the maximum length in bytes of a code or state from a vendor's page.
const maxCodeLength = 4096

// authorize leads the person to the vendor's own pages. It is a link and not a form, because the content security policy
// would limit to which sites the vendor's pages may redirect a form. It counts as an attempt; the return does not.
func (h *handler) authorize(v *visit) {
	vendor, known := v.vendor()
	switch {
	case v.webview.Status == account.WebviewAuthorized:
		h.redirect(v, v.path(""))
		return
	case !known || vendor.Callback == "":
		h.render(v.w, v.r, http.StatusNotFound, gonePage(pathToRoot(v.r)))
		return
	case v.r.Method == http.MethodHead:
		v.w.WriteHeader(http.StatusOK)
		return
	}
	to, err := h.startRedirect(v, vendor)
	e, _ := errors.AsType[*domain.Error](err)
	switch {
	case err == nil:
		h.redirect(v, to)
	case account.IsTooManyLogins(err):
		h.tooManyAttempts(v)
	case e != nil && e.Kind == domain.NotFound:
		h.redirect(v, v.path(""))
	default:
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
	}
}

// startRedirect stores a login on the vendor's pages, and returns the URL of the first one.
func (h *handler) startRedirect(v *visit, vendor Vendor) (to string, err error) {
	ctx := v.r.Context()
	if err := h.Access.Accounts.BeginLogin(ctx, v.webview.ID); err != nil {
		return "", err
	}
	a := Authorization{
		RedirectURI: h.ownURL(v.r) + callbackPath + vendor.Callback,
		Verifier:    rand.Text() + rand.Text(), // 43 characters or more (RFC 7636, section 4.1)
	}
	browser := rand.Text()
	a.State, err = h.Access.Accounts.StartRedirect(ctx, v.webview.ID, account.PendingLogin{
		Provider:    vendor.Name,
		Verifier:    a.Verifier,
		Browser:     browser,
		RedirectURI: a.RedirectURI,
		Language:    chosenLanguage(ctx),
	})
	if err != nil {
		return "", err
	}
	http.SetCookie(v.w, h.browserCookie(v.r, a.State, browser, account.PendingLoginTTL))
	return h.Vendors.AuthorizeURL(v.workspace, vendor.Name, a)
}

// browserCookie returns the cookie that binds a state to the browser that starts the login: who sends another person a
// URL of a login of their own, or has the URL of another person's login, finishes nothing. Each state has its own
// cookie, so that logins in several tabs do not end each other. Without a value, it deletes the cookie.
func (h *handler) browserCookie(r *http.Request, state, value string, ttl time.Duration) *http.Cookie {
	c := &http.Cookie{
		Name:     cookieOf(state),
		Value:    value,
		Path:     strings.TrimSuffix(callbackPath, "/"),
		MaxAge:   int(ttl.Seconds()),
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode, // the vendor's page leads back with a GET of the whole page
	}
	if u, err := url.Parse(h.ownURL(r)); err == nil {
		c.Path = strings.TrimRight(u.Path, "/") + c.Path
		c.Secure = u.Scheme == "https"
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// cookieOf returns the name of the cookie of a state. It does not reveal the state.
func cookieOf(state string) string {
	hash := sha256.Sum256([]byte(state))
	return "deviceaccess_login_" + hex.EncodeToString(hash[:8])
}

// ownURL returns the URL of the server, as the browser knows it.
func (h *handler) ownURL(r *http.Request) string {
	if h.PublicURL != "" {
		return strings.TrimRight(h.PublicURL, "/")
	}
	scheme := "http"
	if h.address().IsSecure(r) {
		scheme = "https"
	}
	return scheme + "://" + h.address().Host(r)
}

// comeBack receives a person from the vendor's pages, in the browser that started the login. It then redirects, so that
// the code does not stay in the address bar. Others get a page without a link, because the link of the login is a secret.
func (h *handler) comeBack(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	state, code := query.Get("state"), query.Get("code")
	if state == "" || len(state) > maxCodeLength || len(code) > maxCodeLength || r.Method == http.MethodHead {
		h.render(w, r, http.StatusNotFound, noReturnPage(pathToRoot(r)))
		return
	}
	after, told := h.guess(r)
	if after > 0 {
		h.busy(w, r, after)
		return
	}
	guessed := false
	defer func() { told(guessed) }()
	browser := ""
	if c, err := r.Cookie(cookieOf(state)); err == nil {
		browser = c.Value
	}
	back, err := h.Access.Accounts.UseState(r.Context(), state, browser)
	if e, ok := errors.AsType[*domain.Error](err); ok && e.Kind == domain.NotFound {
		guessed = true
		h.render(w, r, http.StatusNotFound, noReturnPage(pathToRoot(r)))
		return
	}
	if err != nil {
		h.serverError(w, r, pathToRoot(r), err)
		return
	}
	if back.Ended {
		h.render(w, r, http.StatusNotFound, noReturnPage(pathToRoot(r)))
		return
	}
	http.SetCookie(w, h.browserCookie(r, state, "", 0))
	if i, ok := localeOf(back.Language); ok {
		r = r.WithContext(withReader(r.Context(), readerOf(i, true)))
	}
	r = h.observeWebview(w, r, callbackPath+"{vendor}", back.Webview, back.Workspace)
	guessed = h.finishReturn(h.visit(w, r, back.Webview, back.Workspace), back, code, query.Get("error"))
}

// finishReturn logs in with the code, and leads the person on. guessed means that the code may have been guessed.
func (h *handler) finishReturn(v *visit, back account.Return, code, problem string) (guessed bool) {
	vendor, offered := v.vendorNamed(back.Provider)
	if v.webview.Status == account.WebviewAuthorized {
		h.redirect(v, v.path(""))
		return false
	}
	refused := problemOfReturn(vendor, code, problem)
	var webview account.Webview
	var err error
	switch {
	case !offered || vendor.Callback != v.r.PathValue("vendor"):
		h.render(v.w, v.r, http.StatusNotFound, noReturnPage(pathToRoot(v.r)))
		return true
	case refused != nil:
		err = h.Access.Accounts.FailLogin(v.r.Context(), v.webview.ID, vendor.Name)
	default:
		a := Authorization{RedirectURI: back.RedirectURI, Verifier: back.Verifier, Code: code}
		webview, err = h.tryCounted(v.r.Context(), v, vendor, func(ctx context.Context) (account.NewAccount, error) {
			return h.Vendors.LogInWithCode(ctx, v.workspace, vendor.Name, a)
		})
		guessed = isGuess(err)
		if r, ok := errors.AsType[*login.Refusal](err); ok {
			refused, err = r, nil
		} else if e, ok := errors.AsType[*domain.Error](err); ok && e.Kind == domain.Conflict {
			refused, err = &login.Refusal{Message: e.Message}, nil
		}
	}
	if err == nil && refused != nil {
		h.refuseReturn(v, back, refused)
		return guessed
	}
	h.answer(v, attempt{vendor: vendor, fields: vendor.Fields}, webview, err)
	return guessed
}

// refuseReturn records why a login failed, and leads the person to the page that says so.
func (h *handler) refuseReturn(v *visit, back account.Return, refused *login.Refusal) {
	if err := h.Access.Accounts.RefuseReturn(v.r.Context(), back.ID, *refused); err != nil {
		h.serverError(v.w, v.r, pathToRoot(v.r), err)
		return
	}
	h.redirect(v, v.path(back.ID.String()))
}

// problemOfReturn returns why a return from the vendor's pages cannot log in, or nil. It quotes nothing of the URL.
func problemOfReturn(vendor Vendor, code, problem string) *login.Refusal {
	name := []any{vendor.DisplayName}
	switch {
	case problem == "access_denied":
		return &login.Refusal{Message: "You did not allow the access at %s. Please try again.", Args: name}
	case problem == "temporarily_unavailable":
		return &login.Refusal{
			Message: "%s is not available right now. Please try again in a few minutes.",
			Args:    name,
		}
	case problem != "" || code == "":
		return &login.Refusal{Message: "%s could not log you in. Please try again.", Args: name}
	}
	return nil
}

// observeWebview records the webview of a request for the access log and the trace.
func (h *handler) observeWebview(
	w http.ResponseWriter,
	r *http.Request,
	route string,
	webview account.Webview,
	workspace account.Workspace,
) *http.Request {
	seen, ok := w.(*recordedResponse)
	if !ok {
		return r
	}
	seen.webview = webview.ID.String()
	seen.span = h.Traces.Request(r.Context(), nil, seen.begun, r.Method, route)
	seen.span.Set(traces.Webview(webview.ID), traces.Workspace(workspace.ID))
	return r.WithContext(seen.span.NewContext(r.Context()))
}
