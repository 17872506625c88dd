package connectpage_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/oauth/oauthtest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// tokenConnection is a connection with tokens of package oauthtest, which has no devices.
type tokenConnection struct{ tokens adapter.Tokens }

func (tokenConnection) Adapter() string { return "bolt" }

func (tokenConnection) Address() string { return "bolt" }

func (tokenConnection) Apply(adapter.Settings) error { return nil }

func (c tokenConnection) Check(context.Context, adapter.Env) (found adapter.Checked, err error) {
	found.Username, found.DisplayName = "jane", "Bolt"
	found.Credentials, err = json.Marshal(c.tokens)
	return found, err
}

func (tokenConnection) Open(context.Context, adapter.Env) (adapter.Adapter, error) {
	return nil, errors.New("this test opens no account")
}

// startWithRedirect starts a server whose vendor Bolt has a login on its own pages, and creates a webview for it.
func startWithRedirect(t *testing.T) (cloud *oauthtest.Server, w api.ConnectWebview) {
	t.Helper()
	cloud = oauthtest.Start(t)
	o := cloud.OAuth()
	o.Connect = func(tokens adapter.Tokens) (adapter.Connection, error) { return tokenConnection{tokens}, nil }
	vendor := adapter.Vendor{
		Adapter:     "bolt",
		Name:        "tedee",
		DisplayName: "Bolt",
		Categories:  []string{adapter.CategorySmartlocks},
		Accepts:     []string{adapter.Locks},
		New:         func() adapter.Connection { return &tokenConnection{} },
		Login: &adapter.Login{
			Fields: []login.Field{{
				Name:         "key",
				Label:        "API key",
				Kind:         "password",
				Help:         "In the app, below Settings.",
				Autocomplete: "off",
			}},
			Connect: func(map[string]string) (adapter.Connection, error) {
				return nil, &login.Refusal{Field: "key", Message: "Bolt rejects this key."}
			},
			OAuth: &o,
		},
	}
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(app.Connecting{
		Vendors: []adapter.Vendor{vendor},
		Clients: map[string]adapter.Client{"bolt": cloud.Client},
	}))
	cloud.Register(s.URL + "/connect/back/bolt")
	home, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	n := auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{home.ID}}
	key, _, err := s.App.Access.Auth.IssueCredential(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	var out api.ConnectWebviewResponse
	if status := s.PostAs(t, key, "/connect_webviews/create", map[string]any{}, &out); status != http.StatusOK {
		t.Fatalf("create a webview: %d", status)
	}
	return cloud, out.ConnectWebview
}

// A person mistypes the code of the second factor, starts over, and logs in, with and without scripts.
func TestPersonEntersSecondFactor(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	b := browser.Open(t)
	code := func(code string) browser.Step {
		return chromedp.Steps(
			chromedp.SetValue(chromedp.CSS("#code"), code),
			chromedp.Click(chromedp.CSS("form button[type=submit]")),
		)
	}
	for name, on := range map[string]bool{"with scripts": true, "without scripts": false} {
		w := webview(t, s, map[string]any{"accepted_providers": []string{"august", "nuki"}})
		b.Do(
			browser.Scripts(on),
			browser.Size(browser.Narrow, 844),
			chromedp.Navigate(w.URL+"/august"),
			enter(sandbox.People[0], sandbox.Password),
			browser.Shows("p", "Enter the code that August sent"),
		)
		b.CheckFits("the step")
		b.Do(
			code("111111"),
			browser.Shows(`*[@role="alert"]`, "The code is wrong."),
			chromedp.Click(`//button[.="Start over"]`),
			enter(sandbox.People[0], "mistyped"),
			browser.Shows(`*[@role="alert"]`, "password is wrong"),
			enter(sandbox.People[0], sandbox.Password),
			browser.Shows("p", "Enter the code that August sent"),
			chromedp.Reload(),
			browser.Shows("p", "Enter the code that August sent"),
			code(sandbox.SecondFactor),
			browser.Shows("h1", "Connected"),
		)
		if got := now(t, s, w); got.Status != "authorized" {
			t.Errorf("%s: the webview is %s", name, got.Status)
		}
	}
	b.CheckReports()
}

// A person refuses the access on the vendor's pages, mistypes a key, and then allows the access.
func TestPersonLogsInOnTheVendorsPages(t *testing.T) {
	t.Parallel()
	cloud, w := startWithRedirect(t)
	b := browser.Open(t)
	b.Do(browser.Size(browser.Narrow, 844), chromedp.Navigate(w.URL), browser.Shows("h1", "Log in to Bolt"))
	b.CheckFits("the form")
	cloud.Fail(oauthtest.AccessDenied)
	b.Do(
		chromedp.Click(`//a[.="Continue to Bolt"]`),
		browser.Shows(`*[@role="alert"]`, "You did not allow the access at Bolt."),
		chromedp.SendKeys(chromedp.CSS("#key"), "mistyped"),
		chromedp.Click(`//button[.="Log in"]`),
		browser.Shows(`*[@role="alert"]`, "Bolt rejects this key."),
	)
	b.CheckFits("the refusal")
	cloud.Fail("")
	b.Do(chromedp.Click(`//a[.="Continue to Bolt"]`), browser.Shows("h1", "Connected"))
	if at := browser.Ask(b, chromedp.Location()); at != w.URL {
		t.Errorf("the browser is at %s, want %s", at, w.URL)
	}
	b.CheckReports()
}
