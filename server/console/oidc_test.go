package console_test

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

//go:embed testdata/oidc
var providerFiles embed.FS

// person is a person of the provider.
type person struct {
	Email    string   `json:"email"`
	Verified bool     `json:"email_verified"`
	Name     string   `json:"name"`
	Groups   []string `json:"groups"`
}

// startProvider starts an OpenID Connect provider from npm, and returns its URL.
func startProvider(t *testing.T, redirect string, people map[string]person) string {
	t.Helper()
	files, err := fs.Sub(providerFiles, "testdata/oidc")
	if err != nil {
		t.Fatal(err)
	}
	lab, err := gateways.Install(t.Context(), "oidc", files, 20)
	if err != nil {
		storetest.Missing(t, "oidc-provider: %v", err)
	}
	config, err := json.Marshal(map[string]any{"redirect": redirect, "people": people})
	if err != nil {
		t.Fatal(err)
	}
	var ready struct{ URL string }
	p, err := lab.Run("provider.cjs", &ready, testenv.Timeout(time.Minute), string(config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return ready.URL
}

// newOIDCBed returns a server whose operators sign in at a provider only. Browsers reach it at its public URL.
func newOIDCBed(t *testing.T, people map[string]person) *bed {
	t.Helper()
	var server atomic.Pointer[url.URL]
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server.Load()) },
	})
	t.Cleanup(front.Close)
	roles, err := operator.ParseRoleClaim("groups=admin:ops,viewer:staff")
	if err != nil {
		t.Fatal(err)
	}
	issuer := startProvider(t, front.URL+"/console/oidc/callback", people)
	b := newBed(t, func(c *app.Config) {
		c.PublicURL = front.URL
		c.Console.NoLocalSignIn = true
		c.Console.OIDC = operator.OIDC{
			Issuer:       issuer,
			ClientID:     "deviceaccess",
			ClientSecret: "provider-secret",
			Roles:        roles,
		}
	})
	target, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	server.Store(target)
	b.console = front.URL
	return b
}

// atProvider signs a person in at the provider.
func atProvider(login string) []browser.Step {
	return slices.Concat(
		[]browser.Step{chromedp.Click(`//a[contains(., "Sign in with your organization")]`)},
		logsIn(login),
		[]browser.Step{
			chromedp.WaitVisible(`//button[.="Continue"]`),
			chromedp.Click(`//button[.="Continue"]`),
		},
	)
}

// logsIn fills in the login of the provider.
func logsIn(login string) []browser.Step {
	return []browser.Step{
		chromedp.SetValue(chromedp.CSS(`[name="login"]`), login),
		chromedp.SetValue(chromedp.CSS(`[name="password"]`), "any"),
		chromedp.Click(chromedp.CSS(`button[type="submit"]`)),
	}
}

// People sign in at a real provider, with PKCE, and get their role from a group. Passwords are off.
func TestOIDC_RealProvider(t *testing.T) {
	t.Parallel()
	b := newOIDCBed(t, map[string]person{
		"jane":    {Email: "jane@example.com", Verified: true, Name: "Jane", Groups: []string{"ops"}},
		"visitor": {Email: "visitor@example.com", Verified: true, Groups: []string{"guests"}},
	})
	w := browser.Open(t)
	w.Do(
		chromedp.Navigate(b.page("/locks")),
		browser.Shows("h1", "Sign in"),
	)
	if fields := browser.Ask(w, chromedp.Evaluate[int](`document.querySelectorAll("input").length`)); fields != 0 {
		t.Errorf("%d fields although passwords are off", fields)
	}
	w.Do(atProvider("jane")...)
	w.Do(
		browser.Shows("h1", "Locks"),
		chromedp.Navigate(b.console+"/console/profile"),
		browser.Shows("td", "organization"),
		chromedp.Navigate(b.console+"/console/access"),
		browser.Shows("td", "admin"),
		chromedp.Navigate(b.console+"/console/confirm?next=/console/profile"),
		chromedp.Click(`//a[contains(., "Confirm with your organization")]`),
	)
	w.Do(logsIn("jane")...)
	w.Do(browser.Shows("h1", "Your sign-in and sessions"))
	w.Do(signsOut()...)

	other := browser.Open(t)
	other.Do(chromedp.Navigate(b.console + "/console/sign-in"))
	other.Do(atProvider("visitor")...)
	other.Do(browser.Shows("p", "Your account may not use this server."))

	all, err := b.App.Access.Operators.ListOperators(t.Context())
	if err != nil || len(all) != 1 || all[0].RoleIn(uuid.Nil) != domain.RoleAdmin || all[0].Name != "Jane" {
		t.Errorf("%+v %v", all, err)
	}
	status, _ := b.post(t, "/sign-in", url.Values{"email": {"jane@example.com"}, "password": {password}})
	if status != http.StatusForbidden {
		t.Errorf("a password: status %d", status)
	}
}
