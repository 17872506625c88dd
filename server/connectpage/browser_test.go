package connectpage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// TestMain names the tests whose outcome can differ with several servers.
func TestMain(m *testing.M) {
	apptest.Main(m, TestPageShowsTooManyAttempts,
		TestTenthLoginWaitsForDevices,
		TestGiveUp_AfterLogin,
		TestGuessesAreCountedByAddress)
}

// enter fills in the form and sends it.
func enter(email, password string) browser.Step {
	return chromedp.Steps(
		chromedp.WaitVisible(chromedp.CSS("#email")),
		chromedp.SetValue(chromedp.CSS("#email"), email),
		chromedp.SendKeys(chromedp.CSS("#password"), password),
		chromedp.Click(chromedp.CSS("form button[type=submit]")),
	)
}

var back = chromedp.WaitVisible(chromedp.CSS("#back"))

// owner is the application that sends the person to the page and back.
func owner(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(
			w,
			"<!DOCTYPE html><title>back</title><p id=referrer>%s</p><p id=back>%s</p>",
			r.Referer(),
			r.URL.Path,
		)
	}))
	t.Cleanup(s.Close)
	return s
}

func webview(t *testing.T, s *apptest.Server, in map[string]any) api.ConnectWebview {
	t.Helper()
	var out api.ConnectWebviewResponse
	if status := s.Post(t, "/connect_webviews/create", in, &out); status != http.StatusOK {
		t.Fatalf("create a webview: %d", status)
	}
	return out.ConnectWebview
}

func now(t *testing.T, s *apptest.Server, w api.ConnectWebview) api.ConnectWebview {
	t.Helper()
	var out api.ConnectWebviewResponse
	s.Post(t, "/connect_webviews/get", map[string]any{"connect_webview_id": w.ConnectWebviewID}, &out)
	return out.ConnectWebview
}

// A person chooses a vendor, mistypes the password, corrects it, and returns to the application, with and without
// scripts.
func TestPersonLogsInAndIsSentBack(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	for name, c := range map[string]struct{ scripts, waits bool }{
		"with scripts": {true, false}, "without scripts": {false, false}, "with scripts, to the devices": {true, true}, "without scripts, to the devices": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := owner(t)
			w := webview(
				t,
				s,
				map[string]any{
					"accepted_providers":       []string{"nuki", "yale"},
					"custom_redirect_url":      app.URL + "/done?mine=1",
					"wait_for_device_creation": c.waits,
				},
			)
			b := browser.Open(t)
			b.Do(
				browser.Scripts(c.scripts),
				browser.Size(browser.Phone, 844),
				chromedp.Navigate(w.URL),
				chromedp.Click(
					`//a[span="Nuki"]`,
				),
				browser.Shows("h1", "Log in to Nuki"),
				enter("jane@example.com", "mistyped"),
				browser.Shows(`*[@role="alert"]`, "password is wrong"),
			)
			email, password := browser.Ask(
				b,
				chromedp.Value(chromedp.CSS("#email")),
			), browser.Ask(
				b,
				chromedp.Value(chromedp.CSS("#password")),
			)
			described := browser.Ask(b, chromedp.AttributeValue(chromedp.CSS("#password"), "aria-describedby")).Value
			if email != "jane@example.com" || password != "" || described != "password-error" {
				t.Errorf("after the refusal the fields have %q, %q, described by %q", email, password, described)
			}
			b.Do(enter("jane@example.com", "1234"), back)
			at, referrer := browser.Ask(
				b,
				chromedp.Location(),
			), browser.Ask(
				b,
				chromedp.TextContent(chromedp.CSS("#referrer")),
			)
			got := now(t, s, w)
			if got.ConnectedAccountID == nil {
				t.Fatalf("%+v", got)
			}
			want := app.URL + "/done?" + url.Values{
				"connect_webview_id":   {w.ConnectWebviewID},
				"connected_account_id": {*got.ConnectedAccountID},
				"mine":                 {"1"},
			}.Encode()
			if at != want || referrer != "" || got.Status != "authorized" {
				t.Errorf("the browser is at %s, sent by %q; want %s; the webview is %s", at, referrer, want, got.Status)
			}
			b.CheckReports()
		})
	}
}

// Pages for access systems mention only access systems.
func TestPersonConnectsAccessSystems(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(
		t,
		s,
		map[string]any{
			"accepted_capabilities":    []string{"access_control", "lock"},
			"accepted_providers":       []string{"nuki", "sandbox_access_system"},
			"wait_for_device_creation": true,
		},
	)
	b := browser.Open(t)
	b.Do(browser.Size(browser.Narrow, 844), chromedp.Navigate(w.URL), browser.Shows("h1", "Connect your devices"))
	b.CheckFits("the choice")
	b.Do(
		chromedp.Click(`//a[span="Sandbox Access"]`),
		browser.Shows("h1", "Log in to Sandbox Access"),
		browser.Shows("p", "will manage the users of the access systems"),
	)
	b.CheckFits("the form")
	b.Do(
		enter("jane@example.com", "mistyped"),
		browser.Shows(`*[@role="alert"]`, "password is wrong"),
		enter("jane@example.com", "1234"),
		browser.Shows("h1", "Connected"),
		browser.Shows("p", "can now manage the users of your access systems"),
	)
	b.CheckFits("the end")
	if got := now(t, s, w); got.Status != "authorized" || got.ConnectedAccountID == nil {
		t.Errorf("%+v", got)
	}
	b.CheckReports()
	alone := webview(t, s, map[string]any{"provider_category": "access_control_systems"})
	b.Do(chromedp.Navigate(alone.URL), browser.Shows("h1", "Log in to Sandbox Access")) // there is only one vendor
	if said := browser.Ask(b, chromedp.Text(chromedp.CSS("body"))); strings.Contains(said, "lock") {
		t.Errorf("the page speaks of locks: %s", said)
	}
}

func TestPersonIsSentBackAfterFailure(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	app := owner(t)
	to := map[string]any{
		"accepted_providers":          []string{"nuki"},
		"custom_redirect_url":         app.URL + "/done",
		"custom_redirect_failure_url": app.URL + "/failed",
	}
	unwilling := webview(t, s, to)
	b := browser.Open(t)
	b.Do(chromedp.Navigate(unwilling.URL), chromedp.Click(`//button[contains(., "Go back")]`), back)
	at := browser.Ask(b, chromedp.Location())
	if want := app.URL + "/failed?connect_webview_id=" + unwilling.ConnectWebviewID; at != want {
		t.Errorf("after giving up the browser is at %s, want %s", at, want)
	}
	forgetful := webview(t, s, to)
	b.Do(chromedp.Navigate(forgetful.URL))
	for n := range 10 {
		if n > 0 { // the last form is sent after too many attempts
			b.Do(chromedp.Reload())
		}
		b.Do(enter("jane@example.com", "mistyped"), browser.Shows(`*[@role="alert"]`, "password is wrong"))
	}
	b.Do(enter("jane@example.com", "1234"), back)
	at = browser.Ask(b, chromedp.Location())
	if want := app.URL + "/failed?connect_webview_id=" + forgetful.ConnectWebviewID; at != want {
		t.Errorf("after ten tries the browser is at %s, want %s", at, want)
	}
	b.CheckReports()
}

func TestPagesFitNarrowScreens(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, nil)
	b := browser.Open(t)
	for _, width := range []int64{browser.Narrow, browser.Phone, browser.Desktop} {
		at := func(page string) string { return fmt.Sprintf("%s, %d wide,", page, width) }
		b.Do(browser.Size(width, 844), chromedp.Navigate(w.URL), browser.Shows("h1", "Connect"))
		b.CheckFits(at("the choice"))
		b.Do(chromedp.Navigate(w.URL+"/nuki"), browser.Shows("h1", "Log in"))
		b.CheckFits(at("the form"))
		b.Do(
			enter("a.person.with.a.long.name.in.a.long.domain@mail.subdomain.of.a.company.example.com", "mistyped"),
			browser.Shows(`*[@role="alert"]`, "wrong"),
		)
		b.CheckFits(at("the refusal"))
		b.Do(chromedp.Navigate(w.URL+"x"), browser.Shows("h1", "isn't valid"))
		b.CheckFits(at("a bad link"))
	}
	b.Do(chromedp.Navigate(w.URL+"/nuki"), enter("jane@example.com", "1234"), browser.Shows("h1", "Connected"))
	b.CheckFits("the end")
	b.CheckReports()
}

func TestKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, map[string]any{"accepted_providers": []string{"yale", "nuki"}})
	b := browser.Open(t)
	focus := func(want string) {
		t.Helper()
		if got := browser.Ask(
			b,
			chromedp.Evaluate[string](
				`document.activeElement.id || (document.activeElement.querySelector(".name") || document.activeElement).textContent.trim()`,
			),
		); got != want {
			t.Fatalf("the focus is on %q, want %q", got, want)
		}
	}
	b.Do(
		browser.Size(browser.Desktop, 800),
		chromedp.Navigate(w.URL),
		browser.Shows("h1", "Connect"),
		chromedp.KeyEvent(kb.Tab),
	)
	focus("Nuki")
	if browser.Ask(b, chromedp.Evaluate[string](`getComputedStyle(document.activeElement).outlineStyle`)) == "none" {
		t.Error("nothing shows where the focus is")
	}
	b.Do(chromedp.KeyEvent(kb.Enter), browser.Shows("h1", "Log in to Nuki"))
	focus("email")
	b.Do(chromedp.KeyEvent("jane@example.com"), chromedp.KeyEvent(kb.Tab))
	focus("password")
	b.Do(chromedp.KeyEvent("mistyped"), chromedp.KeyEvent(kb.Enter), browser.Shows(`*[@role="alert"]`, "wrong"))
	focus("password")
	b.Do(chromedp.KeyEvent("1234"), chromedp.KeyEvent(kb.Enter), browser.Shows("h1", "Connected"))
	if now(t, s, w).Status != "authorized" {
		t.Error("the login failed")
	}
	b.CheckReports()
}
