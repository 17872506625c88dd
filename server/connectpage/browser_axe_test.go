package connectpage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// brand sets the look of the workspace.
func brand(t *testing.T, s *apptest.Server, look map[string]any) {
	t.Helper()
	in := map[string]any{"connect_partner_name": "Oak Rentals", "connect_webview_customization": look}
	if status := s.Post(t, "/workspaces/update", in, nil); status != http.StatusOK {
		t.Fatalf("update the workspace: %d", status)
	}
}

// Pages have no barriers that axe-core finds, load nothing from elsewhere, and cause no complaints of the browser.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithLocks(12))
	b := browser.Open(t)
	w := webview(t, s, map[string]any{"custom_redirect_failure_url": s.URL + "/x"})
	b.Do(browser.Size(browser.Phone, 844), chromedp.Navigate(w.URL), browser.Shows("h1", "Connect"))
	b.CheckLooks("choice")
	b.Do(chromedp.Navigate(w.URL+"?q=zzz"), browser.Shows("p", "No brand matches"))
	b.CheckLooks("choice-none")
	b.Do(chromedp.Navigate(w.URL+"/august"), browser.Shows("h1", "Log in"))
	b.CheckLooks("login")
	b.Do(enter("jane@example.com", "mistyped"), browser.Shows(`*[@role="alert"]`, "password is wrong"))
	b.CheckLooks("login-refused")
	b.Do(enter(sandbox.People[0], sandbox.Password), browser.Shows("p", "Enter the code that August sent"))
	b.CheckLooks("step")
	b.Do(chromedp.Navigate(w.URL+"x"), browser.Shows("h1", "isn't valid"))
	b.CheckLooks("gone")
	b.Do(chromedp.Navigate(w.URL+"/"+w.ConnectWebviewID), browser.Shows("h1", "This login has expired"))
	b.CheckLooks("expired")
	b.Do(chromedp.Navigate(s.URL+"/connect/back/none"), browser.Shows("h1", "This login has ended"))
	b.CheckLooks("no-return")
	b.Do(
		chromedp.Navigate(w.URL+"/"+sandbox.Everything),
		enter(sandbox.People[0], sandbox.Password),
		browser.Shows("li", "and 2 more"),
	)
	b.CheckLooks("done")
	b.CheckReports()
	b.CheckRequests(s.URL)
}

// The waiting page and the page after too many attempts have no barriers either.
func TestWaitingAndExhaustedPagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	b := browser.Open(t)
	exhausted := webview(t, s, map[string]any{"accepted_providers": []string{"nuki"}})
	s.Exec(t, "update connect_webviews set login_attempts = 10")
	b.Do(browser.Size(browser.Phone, 844), chromedp.Navigate(exhausted.URL), browser.Shows("h1", "Too many attempts"))
	b.CheckLooks("exhausted")
	gate := s.Gate(t, "before insert", "devices", "true")
	for name, wait := range map[string]bool{"waiting": true, "done-pending": false} {
		w := webview(t, s, map[string]any{"accepted_providers": []string{"nuki"}, "wait_for_device_creation": wait})
		b.Do(
			chromedp.Navigate(w.URL),
			enter(sandbox.People[0], sandbox.Password),
			chromedp.WaitVisible(chromedp.CSS("progress")),
		)
		b.CheckLooks(name)
	}
	gate.Open()
	b.Do(browser.Shows("h1", "Connected"), browser.Shows("h2", "We found 1 lock"))
	b.CheckReports()
	b.CheckRequests(s.URL)
}

// Pages stay readable with the colors of a workspace, in each language.
func TestBrandedPagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	b := browser.Open(t)
	w := webview(t, s, nil)
	for i, look := range []map[string]any{
		{"primary_button_color": "#0a7a4b", "logo_shape": "square"},
		{"primary_button_color": "yellow", "primary_button_text_color": "white", "logo_shape": "circle"},
		{"primary_button_color": "#ffffff", "primary_button_text_color": "#eeeeee"},
	} {
		brand(t, s, look)
		lang := []string{"de", "fr", "es"}[i]
		name := strings.TrimPrefix(fmt.Sprint(look["primary_button_color"]), "#")
		b.Do(chromedp.Navigate(w.URL+"?lang="+lang), chromedp.WaitVisible(chromedp.CSS("#choices")))
		b.CheckLooks("branded-" + name + "-choice")
		shape := browser.Ask(
			b,
			chromedp.Evaluate[string](`document.querySelector(".mark.workspace").firstElementChild.tagName`),
		)
		if want := map[any]string{"square": "rect", "circle": "circle", nil: "circle"}[look["logo_shape"]]; shape != want {
			t.Errorf("%s: the mark is a %s", name, shape)
		}
		b.Do(chromedp.Navigate(w.URL+"/nuki?lang="+lang), chromedp.WaitVisible(chromedp.CSS("#email")))
		b.CheckLooks("branded-" + name + "-login")
	}
	b.CheckReports()
	b.CheckRequests(s.URL)
}
