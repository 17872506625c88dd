package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

func (h *handler) signInRoutes() []route {
	public := func(method, pattern string, handle func(*request) error) route {
		operation := "/console/sign-in"
		if strings.HasSuffix(pattern, "/{token}") {
			operation = "/console/link"
		}
		return route{method: method, pattern: pattern, public: true, operation: operation, handle: handle}
	}
	return []route{
		public(http.MethodGet, "/sign-in", showSignIn),
		public(http.MethodPost, "/sign-in", signIn),
		public(http.MethodPost, "/sign-in/code", signInWithCode),
		public(http.MethodPost, "/sign-in/passkey/options", passkeyOptions),
		public(http.MethodPost, "/sign-in/passkey", signInWithPasskey),
		public(http.MethodGet, "/oidc", beginOIDC),
		public(http.MethodGet, "/oidc/callback", finishOIDC),
		public(http.MethodGet, "/setup/{token}", showLink),
		public(http.MethodPost, "/setup/{token}", acceptLink),
		public(http.MethodGet, "/invite/{token}", showLink),
		public(http.MethodPost, "/invite/{token}", acceptLink),
		{method: http.MethodPost, pattern: "/sign-out", operation: "/console/sign-out", handle: signOut},
		{method: http.MethodGet, pattern: "/confirm", handle: showConfirm},
		{method: http.MethodPost, pattern: "/confirm", operation: "/console/confirm", handle: confirm},
		{method: http.MethodGet, pattern: "/confirm/oidc", handle: confirmWithOIDC},
		{
			method:    http.MethodPost,
			pattern:   "/confirm/passkey/options",
			operation: "/console/confirm",
			handle:    passkeyConfirmOptions,
		},
		{
			method:    http.MethodPost,
			pattern:   "/confirm/passkey",
			operation: "/console/confirm",
			handle:    confirmWithPasskey,
		},
	}
}

// nextParam is the parameter with the page to which a sign-in leads.
const nextParam = "next"

// next returns the page to which a sign-in leads: one of the console.
func (rq *request) next() string { return ownPage(cmp.Or(rq.nextPage, rq.r.FormValue(nextParam))) }

// ownPage returns the path and the query of a page of the console, and the start for everything else.
func ownPage(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path != Path && !strings.HasPrefix(u.Path, Path+"/") ||
		strings.ContainsAny(to, "\\\r\n\t") || strings.HasPrefix(to, "//") {
		return Path
	}
	return u.RequestURI()
}

// client returns the browser of a request.
func (rq *request) client() operator.Client {
	address := ""
	if rq.h.ClientAddress != nil {
		address = rq.h.ClientAddress(rq.r)
	}
	return operator.Client{Agent: rq.r.UserAgent(), Address: address, RequestID: rq.id}
}

// origin returns the origin of the console, as the browser sees it.
func (rq *request) origin() string {
	scheme := "http://"
	if rq.h.Address.IsSecure(rq.r) {
		scheme = "https://"
	}
	return scheme + rq.h.Address.Host(rq.r)
}

// guess runs an attempt to prove who someone is, unless too many have failed from the address. It fails with TooMany.
// Only forms count: any site can make a browser send a GET, and so block the address of its user.
func (rq *request) guess(try func() error) error {
	if rq.h.Guess == nil || rq.r.Method != http.MethodPost {
		return try()
	}
	after, told := rq.h.Guess(rq.r)
	if after > 0 {
		seconds := int(after.Seconds()) + 1
		rq.w.Header().Set("Retry-After", strconv.Itoa(seconds))
		return &domain.Error{
			Kind:    domain.TooMany,
			Type:    "too_many_requests",
			Message: fmt.Sprintf("Too many sign-ins from this address have failed. Try again in %d seconds.", seconds),
		}
	}
	err := try()
	e, ok := domain.AsError(err)
	told(ok && (e.Kind == domain.Unauthorized || e.Kind == domain.NotFound))
	return err
}

// enter starts the browser's session, and leads to a page.
func (rq *request) enter(token, next string) error {
	if rq.session.ID != uuid.Nil { // the new session replaces it
		_ = rq.h.Access.Operators.EndSession(rq.r.Context(), rq.session.Operator.ID, rq.session.ID)
	}
	rq.setCookie(rq.cookieName(), token, operator.SessionLifetime)
	return rq.done(next, "")
}

// setCookie sets a cookie for the whole host. Without a lifetime, it removes the cookie.
func (rq *request) setCookie(name, value string, lifetime time.Duration) {
	age := int(lifetime.Seconds())
	if lifetime == 0 {
		age = -1
	}
	http.SetCookie(rq.w, &http.Cookie{
		Name:     name,
		Value:    value,
		Path:     "/",
		MaxAge:   age,
		HttpOnly: true,
		Secure:   rq.h.Address.IsSecure(rq.r),
		SameSite: http.SameSiteLaxMode, // the redirect of an OpenID Connect provider comes from another site
	})
}

// refused returns the error to show on a form, with its status. Other errors have their own page.
func refused(err error) (e *domain.Error, status int) {
	e, ok := domain.AsError(err)
	if !ok {
		return nil, 0
	}
	if e.Kind == domain.Unauthorized {
		return e, http.StatusUnprocessableEntity // 401 would need a WWW-Authenticate header
	}
	return e, statusOf(e.Kind)
}

func showSignIn(rq *request) error {
	if rq.session.ID != uuid.Nil {
		return rq.done(rq.next(), "")
	}
	return rq.show(signInPage(rq, "", nil))
}

func signIn(rq *request) error {
	var token, pending string
	err := rq.guess(func() (err error) {
		token, pending, err = rq.h.Access.Operators.SignIn(
			rq.r.Context(), rq.form("email"), rq.r.PostFormValue("password"), rq.client())
		return err
	})
	if e, status := refused(err); e != nil {
		return rq.render(status, signInPage(rq, rq.form("email"), e))
	}
	if err != nil {
		return err
	}
	if pending != "" {
		return rq.show(secondFactorPage(rq, pending, nil))
	}
	return rq.enter(token, rq.next())
}

func signInWithCode(rq *request) error {
	pending := rq.form("pending")
	var token string
	err := rq.guess(func() (err error) {
		token, err = rq.h.Access.Operators.SecondFactor(rq.r.Context(), pending, rq.form("code"), rq.client())
		return err
	})
	if e, status := refused(err); e != nil {
		if e.Type == "sign_in_expired" {
			return rq.render(status, signInPage(rq, "", e))
		}
		return rq.render(status, secondFactorPage(rq, pending, e))
	}
	if err != nil {
		return err
	}
	return rq.enter(token, rq.next())
}

// ceremony is what a script needs for navigator.credentials.
type ceremony struct {
	Options json.RawMessage `json:"options"`
	State   string          `json:"state"`
}

// answer sends a value to a script.
func (rq *request) answer(value any) error {
	rq.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rq.w).Encode(value) // the client has disconnected
	return nil
}

func passkeyOptions(rq *request) error {
	options, state, err := rq.h.Access.Operators.BeginPasskeySignIn(rq.r.Context(), rq.origin())
	if err != nil {
		return err
	}
	return rq.answer(ceremony{options, state})
}

func signInWithPasskey(rq *request) error {
	var token string
	err := rq.guess(func() (err error) {
		token, err = rq.h.Access.Operators.FinishPasskeySignIn(rq.r.Context(), operator.PasskeyAnswer{
			Origin: rq.origin(),
			State:  rq.form("state"),
			Answer: []byte(rq.form("answer")),
		}, rq.client())
		return err
	})
	if e, status := refused(err); e != nil {
		return rq.render(status, signInPage(rq, "", e))
	}
	if err != nil {
		return err
	}
	return rq.enter(token, rq.next())
}

// oidcCookie is the name of the cookie with the state of a sign-in at the provider.
func (rq *request) oidcCookie() string { return rq.cookieName() + "-oidc" }

// callbackPath is the path to which the provider redirects.
const callbackPath = Path + "/oidc/callback"

// maxNext is the maximum length of a page to which a sign-in at the provider leads, because a cookie keeps it.
const maxNext = 1024

func beginOIDC(rq *request) error {
	return rq.toProvider(nil, func(e *domain.Error) templ.Component { return signInPage(rq, "", e) })
}

// confirmWithOIDC lets the provider ask for the login again.
func confirmWithOIDC(rq *request) error {
	return rq.toProvider(&rq.session, func(e *domain.Error) templ.Component { return confirmPage(rq, e) })
}

// toProvider leads to the provider, which signs a person in or confirms a session. page shows a refusal.
func (rq *request) toProvider(confirms *operator.Session, page func(*domain.Error) templ.Component) error {
	next := rq.next()
	if len(next) > maxNext {
		next = Path
	}
	to, state, err := rq.h.Access.Operators.BeginOIDC(rq.r.Context(), operator.OIDCRequest{
		RedirectURL: rq.origin() + callbackPath,
		Next:        next,
		Confirm:     confirms,
	})
	if e, status := refused(err); e != nil {
		return rq.render(status, page(e))
	}
	if err != nil {
		return err
	}
	rq.setCookie(rq.oidcCookie(), state, 5*time.Minute)
	http.Redirect(rq.w, rq.r, to, http.StatusSeeOther)
	return nil
}

func finishOIDC(rq *request) error {
	state := ""
	if cookie, err := rq.r.Cookie(rq.oidcCookie()); err == nil {
		state = cookie.Value
	}
	rq.setCookie(rq.oidcCookie(), "", 0)
	end, err := rq.h.Access.Operators.FinishOIDC(rq.r.Context(), state, operator.Callback{
		State:   rq.query("state"),
		Code:    rq.query("code"),
		Error:   rq.query("error"),
		Session: rq.session.ID,
	}, rq.client())
	next := ownPage(end.Next)
	if e, status := refused(err); e != nil {
		rq.nextPage = next
		// A person without a role has lost the session.
		if end.Confirms && rq.session.ID != uuid.Nil && e.Kind != domain.Forbidden {
			return rq.render(status, confirmPage(rq, e))
		}
		return rq.render(status, signInPage(rq, "", e))
	}
	if err != nil {
		return err
	}
	if end.Confirms {
		return rq.done(next, "")
	}
	return rq.enter(end.Token, next)
}

func signOut(rq *request) error {
	err := rq.h.Access.Operators.EndSession(rq.r.Context(), rq.session.Operator.ID, rq.session.ID)
	if e, ok := domain.AsError(err); err != nil && (!ok || e.Kind != domain.NotFound) {
		return err
	}
	rq.setCookie(rq.cookieName(), "", 0)
	return rq.done(Path+"/sign-in", "signed-out")
}

func showLink(rq *request) error {
	link, err := rq.openLink()
	if err != nil {
		return err
	}
	return rq.show(invitationPage(rq, link, operator.Acceptance{Name: link.Name}, nil))
}

func (rq *request) openLink() (link operator.Link, err error) {
	err = rq.guess(func() error {
		link, err = rq.h.Access.Operators.OpenLink(rq.r.Context(), rq.param("token"))
		return err
	})
	return link, err
}

func acceptLink(rq *request) error {
	link, err := rq.openLink()
	if err != nil {
		return err
	}
	a := operator.Acceptance{
		Email:    rq.form("email"),
		Name:     rq.form("name"),
		Password: rq.r.PostFormValue("password"),
	}
	token, err := rq.h.Access.Operators.AcceptLink(rq.r.Context(), rq.param("token"), a, rq.client())
	if e, status := refused(err); e != nil && e.Kind == domain.Invalid {
		return rq.render(status, invitationPage(rq, link, a, e))
	}
	if err != nil {
		return err
	}
	return rq.enter(token, Path)
}

// recentSignIn is how long after a sign-in an operator may do what needs a recent one.
const recentSignIn = 10 * time.Minute

// signedInRecently reports whether the operator has recently proved who it is.
func (rq *request) signedInRecently() bool { return rq.now.Sub(rq.session.SignedInAt) < recentSignIn }

// confirmURL returns the page on which an operator proves again who it is, and which leads to a page.
func confirmURL(next string) string { return withQuery(Path+"/confirm", nextParam, next) }

// recently returns the handler of an action that needs a recent sign-in. Without one, it leads to the confirmation, and
// from there to the page of the action.
func recently(page string, handle func(*request) error) func(*request) error {
	return func(rq *request) error {
		if !rq.signedInRecently() {
			return rq.done(confirmURL(page), "")
		}
		return handle(rq)
	}
}

func showConfirm(rq *request) error { return rq.show(confirmPage(rq, nil)) }

func confirm(rq *request) error {
	err := rq.guess(func() error {
		return rq.h.Access.Operators.Confirm(
			rq.r.Context(), rq.session, rq.r.PostFormValue("password"), rq.form("code"))
	})
	if e, status := refused(err); e != nil {
		return rq.render(status, confirmPage(rq, e))
	}
	if err != nil {
		return err
	}
	return rq.done(rq.next(), "")
}

func passkeyConfirmOptions(rq *request) error {
	options, state, err := rq.h.Access.Operators.BeginPasskeyConfirm(rq.r.Context(), rq.session, rq.origin())
	if err != nil {
		return err
	}
	return rq.answer(ceremony{options, state})
}

func confirmWithPasskey(rq *request) error {
	err := rq.guess(func() error {
		return rq.h.Access.Operators.FinishPasskeyConfirm(rq.r.Context(), rq.session, operator.PasskeyAnswer{
			Origin: rq.origin(),
			State:  rq.form("state"),
			Answer: []byte(rq.form("answer")),
		})
	})
	if e, status := refused(err); e != nil {
		return rq.render(status, confirmPage(rq, e))
	}
	if err != nil {
		return err
	}
	return rq.done(rq.next(), "")
}

// confirmations are the ways in which an operator can confirm here.
type confirmations struct{ password, passkey, oidc bool }

func (rq *request) confirmations() confirmations {
	o, operators := rq.session.Operator, rq.h.Access.Operators
	local := operators.LocalSignIn()
	return confirmations{
		password: local && o.HasPassword,
		passkey:  local && o.Passkeys > 0 && operator.CanUsePasskeys(rq.origin()),
		oidc:     operators.CanUseOIDC(o),
	}
}

// linkTitle is the title of the page of a link.
func linkTitle(link operator.Link) string {
	switch link.Purpose {
	case operator.Setup:
		return "Create the first operator"
	case operator.Reset:
		return "Set a new password"
	}
	return "Set your password"
}
