package console_test

import (
	"net/http"
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
