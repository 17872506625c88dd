package console_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

const password = "correct horse battery"

// fill enters a text into a field.
func fill(name, text string) browser.Step {
	return chromedp.SetValue(chromedp.CSS(`[name="`+name+`"]`), text)
}

// press clicks a button with a text.
func press(text string) browser.Step {
	return chromedp.Click(`//main//button[normalize-space(.)="` + text + `"]`)
}

// signsIn signs jane@example.com in on the page.
func (b *bed) signsIn() []browser.Step {
	return []browser.Step{
		chromedp.Navigate(b.console + "/console/sign-in"),
		fill("email", "jane@example.com"), fill("password", password), press("Sign in"),
	}
}

// signsOut leaves the console by its menu.
func signsOut() []browser.Step {
	return []browser.Step{
		chromedp.Click(`//header//summary[contains(@aria-label, "Signed in as")]`),
		chromedp.Click(`//header//button[.="Sign out"]`),
		browser.Shows("p", "You are signed out."),
	}
}

// The first operator creates itself with the link of the log, without JavaScript.
func TestSetup_CreatesFirstOperator(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	token, err := b.App.Access.Operators.FirstRunLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := browser.Open(t)
	w.Do(
		browser.Scripts(false),
		chromedp.Navigate(b.console+"/console/setup/"+token),
		browser.Shows("h1", "Create the first operator"),
		fill("email", "jane@example.com"), fill("name", "Jane"), fill("password", "too short"),
		press("Set the password and sign in"),
		browser.Shows("p", "at least 12 characters"),
		fill("password", password), press("Set the password and sign in"),
		browser.Shows("h1", "Today"),
	)
	w.Do(signsOut()...)
	w.Do(
		chromedp.Navigate(b.page("/locks")),
		browser.Shows("h1", "Sign in"),
		fill("email", "jane@example.com"), fill("password", "wrong password"), press("Sign in"),
		browser.Shows("p", "The email address or the password is wrong."),
		fill("password", password), press("Sign in"),
		browser.Shows("h1", "Locks"),
		chromedp.Navigate(b.console+"/console/setup/"+token),
		browser.Shows("p", "This link has expired, was used, or isn't valid."),
	)
	w.CheckReports()
	w.CheckRequests(b.console)
}

// One-time codes are set up and used without JavaScript.
func TestProfile_OneTimeCodes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if _, err := b.App.Access.Operators.CreateFirst(t.Context(), "jane@example.com", password); err != nil {
		t.Fatal(err)
	}
	w := browser.Open(t)
	w.Do(browser.Scripts(false))
	w.Do(b.signsIn()...)
	w.Do(
		browser.Shows("h1", "Today"),
		chromedp.Navigate(b.console+"/console/profile"),
		press("Set up an authenticator app"),
		browser.Shows("h1", "Set up one-time codes"),
		chromedp.WaitVisible(chromedp.CSS(`main svg[role="img"] path`)),
		fill("code", "000000"), press("Turn on"),
		browser.Shows("p", "The code is wrong."),
	)
	secret := strings.TrimSpace(browser.Ask(w, chromedp.Text(chromedp.CSS("main pre"))))
	code := func(at time.Time) string {
		code, err := totp.GenerateCode(secret, at)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	now := time.Now()
	w.Do(fill("code", code(now)), press("Turn on"), browser.Shows("p", "now needs a code"))
	w.Do(signsOut()...)
	w.Do(b.signsIn()...)
	w.Do(
		browser.Shows("h1", "Enter a code"),
		fill("code", code(now)), press("Sign in"),
		browser.Shows("p", "was used already"),
		fill("code", code(now.Add(30*time.Second))), press("Sign in"),
		browser.Shows("h1", "Today"),
	)
	w.CheckReports()
	w.CheckRequests(b.console)
}

// A passkey is added, and signs in, with a simulated authenticator.
func TestProfile_Passkey(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.console = strings.Replace(b.console, "127.0.0.1", "localhost", 1) // browsers know no passkeys of addresses
	if _, err := b.App.Access.Operators.CreateFirst(t.Context(), "jane@example.com", password); err != nil {
		t.Fatal(err)
	}
	w := browser.Open(t)
	w.Do(
		browser.Command(webauthn.Enable, webauthn.EnableParams{}),
		browser.Command(webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
			Options: &webauthn.VirtualAuthenticatorOptions{
				Protocol:                    webauthn.AuthenticatorProtocolCtap2,
				Transport:                   webauthn.AuthenticatorTransportInternal,
				HasResidentKey:              true,
				HasUserVerification:         true,
				IsUserVerified:              true,
				AutomaticPresenceSimulation: true,
			},
		}),
	)
	w.Do(b.signsIn()...)
	w.Do(
		browser.Shows("h1", "Today"),
		chromedp.Navigate(b.console+"/console/profile"),
		chromedp.SetValue(chromedp.CSS(`form[data-passkey] [name="name"]`), "Laptop"),
		press("Add a passkey"),
		browser.Shows("p", "The passkey is added."),
		browser.Shows("td", "Laptop"),
	)
	w.Do(signsOut()...)
	w.Do(
		chromedp.Navigate(b.console+"/console/sign-in"),
		press("Sign in with a passkey"),
		browser.Shows("h1", "Today"),
		chromedp.Navigate(b.console+"/console/profile"),
		browser.Shows("td", "passkey"),
		chromedp.Navigate(b.console+"/console/confirm?next=/console/access"),
		press("Confirm with a passkey"),
		browser.Shows("h1", "Access"),
	)
	w.CheckReports()
	w.CheckRequests(b.console)
}

// A sign-in leads only to pages of the console.
func TestSignIn_LeadsOnlyToConsole(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if _, err := b.App.Access.Operators.CreateFirst(t.Context(), "jane@example.com", password); err != nil {
		t.Fatal(err)
	}
	for next, want := range map[string]string{
		"":                            "/console",
		"/console/access?all=1":       "/console/access?all=1",
		"https://evil.example":        "/console",
		"//evil.example/console/":     "/console",
		"/\\evil.example/console/":    "/console",
		"/console/\\..\\evil.example": "/console",
		"/v1":                         "/console",
		"javascript:alert(1)":         "/console",
		"/consoles":                   "/console",
	} {
		status, header := b.post(t, "/sign-in", url.Values{
			"email": {"jane@example.com"}, "password": {password}, "next": {next},
		})
		if status != http.StatusSeeOther || header.Get("Location") != want {
			t.Errorf("%q leads to %q with %d", next, header.Get("Location"), status)
		}
		cookie := header.Get("Set-Cookie")
		if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") ||
			!strings.HasPrefix(cookie, "deviceaccess=") {
			t.Errorf("the cookie is %q", regexp.MustCompile(`=[^;]+`).ReplaceAllString(cookie, "=…"))
		}
	}
}

// post sends a public form.
func (b *bed) post(t *testing.T, path string, form url.Values) (int, http.Header) {
	t.Helper()
	got := b.send(t, "", http.MethodPost, b.console+"/console"+path, form, nil)
	return got.StatusCode, got.Header
}

// Wrong passwords, and wrong links, soon cost a pause.
func TestSignIn_IsLimited(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]func(*bed) (int, http.Header){
		"password": func(b *bed) (int, http.Header) {
			return b.post(t, "/sign-in", url.Values{"email": {"jane@example.com"}, "password": {"wrong password"}})
		},
		"code": func(b *bed) (int, http.Header) { return b.post(t, "/sign-in/code", url.Values{"code": {"1"}}) },
		"link": func(b *bed) (int, http.Header) { return b.post(t, "/invite/guess", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, withFailures(2))
			statuses := map[int]int{}
			for range 6 {
				status, header := try(b)
				statuses[status]++
				if status == http.StatusTooManyRequests && header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			}
			if statuses[http.StatusTooManyRequests] != 2 {
				t.Errorf("statuses %v", statuses)
			}
		})
	}
}

// A form whose origin the browser does not say signs in only with the secret of a page of this console: by plain
// HTTP, a form of another site can look like that.
func TestSignIn_RefusesFormsOfUnknownOrigin(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	o, link, err := b.App.Access.Operators.CreateOperator(t.Context(), operator.NewOperator{
		Email: "jane@example.com",
		Roles: map[uuid.UUID]domain.Role{uuid.Nil: domain.RoleViewer},
	})
	if err != nil {
		t.Fatal(err)
	}
	post := func(path, secret string, cookie *http.Cookie, origin string) answer {
		t.Helper()
		form := url.Values{"password": {password}, "email": {o.Email}, "csrf": {secret}}
		return b.send(t, "", http.MethodPost, b.console+"/console"+path, form, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			if cookie != nil {
				r.AddCookie(cookie)
			}
		})
	}
	page := func(path string) (secret string, cookie *http.Cookie) {
		t.Helper()
		got := b.send(t, "", http.MethodGet, b.console+"/console"+path, nil, nil)
		found := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(got.body)
		if found == nil || len(got.Cookies()) != 1 || found[1] == got.Cookies()[0].Value {
			t.Fatalf("%s has no secret, or %d cookies", path, len(got.Cookies()))
		}
		return found[1], got.Cookies()[0]
	}
	for _, path := range []string{"/invite/" + link, "/sign-in"} {
		secret, cookie := page(path)
		other, another := page(path)
		for name, got := range map[string]answer{
			"null":                  post(path, "", nil, "null"),
			"no origin":             post(path, "", nil, ""),
			"no secret":             post(path, "", cookie, "null"),
			"no cookie":             post(path, secret, nil, "null"),
			"the secret of another": post(path, other, cookie, "null"),
			"the cookie of another": post(path, secret, another, "null"),
			"another site":          post(path, secret, cookie, "https://evil.example"),
		} {
			if got.StatusCode != http.StatusForbidden || len(got.Cookies()) > 1 {
				t.Errorf("%s with %s: status %d", path, name, got.StatusCode)
			}
		}
		if got := post(path, secret, cookie, "null"); got.StatusCode != http.StatusSeeOther {
			t.Errorf("%s with the secret of the page: status %d", path, got.StatusCode)
		}
	}
}

// By plain HTTP, browsers do not say from where the console's own forms come. They work nevertheless.
func TestSignIn_ByPlainHTTP(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.console = throughNetwork(t, b.URL)
	if _, err := b.App.Access.Operators.CreateFirst(t.Context(), "jane@example.com", password); err != nil {
		t.Fatal(err)
	}
	w := browser.Open(t)
	w.Do(
		chromedp.Navigate(b.console+"/console/sign-in"),
		fill("email", "jane@example.com"), fill("password", "wrong password"), press("Sign in"),
		browser.Shows("p", "The email address or the password is wrong."),
		fill("password", password), press("Sign in"),
		browser.Shows("h1", "Today"),
	)
	w.Do(signsOut()...)
}

// throughNetwork returns the URL of a server at an address of this machine that browsers do not trust, unlike
// 127.0.0.1.
func throughNetwork(t *testing.T, server string) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		network, ok := a.(*net.IPNet)
		if !ok || network.IP.IsLoopback() || network.IP.To4() == nil {
			continue
		}
		var config net.ListenConfig
		listener, err := config.Listen(t.Context(), "tcp", net.JoinHostPort(network.IP.String(), "0"))
		if err != nil {
			continue
		}
		target, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewUnstartedServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host
			},
		})
		front.Listener.Close()
		front.Listener = listener
		front.Start()
		t.Cleanup(front.Close)
		return front.URL
	}
	t.Skip("this machine has no network address")
	return ""
}

// Requests that any site can make a browser send do not block its address: they are not guesses.
func TestSignIn_CountsNoGets(t *testing.T) {
	t.Parallel()
	b := newBed(t, withFailures(2))
	if _, err := b.App.Access.Operators.CreateFirst(t.Context(), "jane@example.com", password); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/oidc/callback?state=x&code=x", "/invite/guess", "/setup/guess"} {
		for range 6 {
			got := b.send(t, "", http.MethodGet, b.console+"/console"+path, nil, nil)
			if got.StatusCode != http.StatusNotFound {
				t.Errorf("%s: status %d", path, got.StatusCode)
			}
		}
	}
	status, _ := b.post(t, "/sign-in", url.Values{"email": {"jane@example.com"}, "password": {password}})
	if status != http.StatusSeeOther {
		t.Errorf("sign in: status %d", status)
	}
}

// An action that needs a recent sign-in asks for the password again.
func TestConfirm_BeforeSensitiveActions(t *testing.T) {
	t.Parallel()
	clock := newClock()
	b := newBed(t, clock.option())
	if _, err := b.App.Access.Operators.CreateFirst(t.Context(), "jane@example.com", password); err != nil {
		t.Fatal(err)
	}
	w := browser.Open(t)
	w.Do(browser.Scripts(false))
	w.Do(b.signsIn()...)
	w.Do(browser.Shows("h1", "Today"), chromedp.Navigate(b.console+"/console/profile"))
	clock.pass(11 * time.Minute)
	w.Do(
		press("Set up an authenticator app"),
		browser.Shows("h1", "Confirm that it is you"),
		fill("password", "wrong password"), press("Confirm"),
		browser.Shows("p", "The password is wrong."),
		fill("password", password), press("Confirm"),
		browser.Shows("h1", "Your sign-in and sessions"),
		press("Set up an authenticator app"),
		browser.Shows("h1", "Set up one-time codes"),
	)
}

func TestLooks_SignIn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	token, err := b.App.Access.Operators.FirstRunLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := browser.Open(t)
	for name, path := range map[string]string{"sign-in": "/sign-in", "setup": "/setup/" + token} {
		w.Do(chromedp.Navigate(b.console+"/console"+path), chromedp.WaitVisible(chromedp.CSS("main h1")))
		w.CheckLooks(name)
	}
	w.CheckReports()
	w.CheckRequests(b.console)
}

func TestLooks_ProfileAndAccess(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	o, _, err := b.App.Access.Operators.CreateOperator(t.Context(), operator.NewOperator{
		Email: "invited@example.com",
		Name:  "Joe",
		Roles: map[uuid.UUID]domain.Role{uuid.Nil: domain.RoleViewer},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := browser.Open(t)
	w.Do(b.signIn(t, domain.RoleAdmin))
	for _, path := range []string{"/profile", "/confirm", "/access", "/access/operators/" + o.ID.String()} {
		w.Do(chromedp.Navigate(b.console+"/console"+path), chromedp.WaitVisible(chromedp.CSS("main h1")))
		w.CheckLooks(path)
	}
	w.Do(
		chromedp.Navigate(b.console+"/console/profile"),
		press("Set up an authenticator app"),
		browser.Shows("h1", "Set up one-time codes"),
	)
	w.CheckLooks("one-time codes")
	w.CheckReports()
	w.CheckRequests(b.console)
}
