package connectpage_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

// axe returns the script of axe-core, which finds barriers for people with disabilities.
func axe(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("installs npm packages")
	}
	lab, err := gateways.Install(t.Context(), "axe-core", os.DirFS("testdata/axe"), 18)
	if errors.Is(err, gateways.ErrMissing) && os.Getenv("REQUIRE_ALL") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(lab.Module("axe-core"), "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// audit is a browser that checks pages with axe-core.
type audit struct {
	*browser
	axe string
	// shots is a directory for pictures of the pages; empty: none.
	shots string
}

func newAudit(t *testing.T) *audit {
	t.Helper()
	return &audit{browser: open(t), axe: axe(t), shots: os.Getenv("DEVICEACCESS_TEST_SHOTS")}
}

func scheme(value string) step {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
	})
}

// check checks the page that is open, in both color schemes, on a phone and on a large screen.
func (a *audit) check(name string) {
	a.t.Helper()
	if a.ask(`!!window.axe`) != "true" {
		ask(a.browser, chromedp.Evaluate[bool](a.axe+"\n;true"))
	}
	for _, width := range []int64{phone, desktop} {
		a.do(size(width, 844))
		a.fits(fmt.Sprintf("%s, %d wide,", name, width))
		for _, value := range []string{"light", "dark"} {
			a.do(scheme(value))
			found := a.ask(`axe.run().then(r => r.violations.map(v => v.id + ": " +
				v.nodes.map(n => n.html + " " + n.failureSummary).join("; ")).join("\n"))`)
			if found != "" {
				a.t.Errorf("%s, %s, %d wide: %s", name, value, width, found)
			}
			a.shoot(fmt.Sprintf("%s-%d-%s.png", name, width, value))
		}
	}
}

func (a *audit) ask(script string) string {
	a.t.Helper()
	return ask(
		a.browser,
		chromedp.Evaluate[string](`(async () => String(await (`+script+`)))()`, chromedp.EvalAwaitPromise),
	)
}

func (a *audit) shoot(name string) {
	a.t.Helper()
	if a.shots == "" {
		return
	}
	picture := ask(a.browser, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(a.shots, name), picture, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

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
	a := newAudit(t)
	a.own = s.URL
	w := webview(t, s, map[string]any{"custom_redirect_failure_url": s.URL + "/x"})
	a.do(size(phone, 844), chromedp.Navigate(w.URL), shows("h1", "Connect"))
	a.check("choice")
	a.do(chromedp.Navigate(w.URL+"?q=zzz"), shows("p", "No brand matches"))
	a.check("choice-none")
	a.do(chromedp.Navigate(w.URL+"/august"), shows("h1", "Log in"))
	a.check("login")
	a.do(enter("jane@example.com", "mistyped"), shows(`*[@role="alert"]`, "password is wrong"))
	a.check("login-refused")
	a.do(enter(sandbox.People[0], sandbox.Password), shows("p", "Enter the code that August sent"))
	a.check("step")
	a.do(chromedp.Navigate(w.URL+"x"), shows("h1", "isn't valid"))
	a.check("gone")
	a.do(chromedp.Navigate(w.URL+"/"+w.ConnectWebviewID), shows("h1", "This login has expired"))
	a.check("expired")
	a.do(chromedp.Navigate(s.URL+"/connect/back/none"), shows("h1", "This login has ended"))
	a.check("no-return")
	a.do(
		chromedp.Navigate(w.URL+"/"+sandbox.Everything),
		enter(sandbox.People[0], sandbox.Password),
		shows("li", "and 2 more"),
	)
	a.check("done")
	a.content()
}

// The waiting page and the page after too many attempts have no barriers either.
func TestWaitingAndExhaustedPagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	a := newAudit(t)
	a.own = s.URL
	exhausted := webview(t, s, map[string]any{"accepted_providers": []string{"nuki"}})
	s.Exec(t, "update connect_webviews set login_attempts = 10")
	a.do(size(phone, 844), chromedp.Navigate(exhausted.URL), shows("h1", "Too many attempts"))
	a.check("exhausted")
	gate := s.Gate(t, "before insert", "devices", "true")
	for name, wait := range map[string]bool{"waiting": true, "done-pending": false} {
		w := webview(t, s, map[string]any{"accepted_providers": []string{"nuki"}, "wait_for_device_creation": wait})
		a.do(
			chromedp.Navigate(w.URL),
			enter(sandbox.People[0], sandbox.Password),
			chromedp.WaitVisible(chromedp.CSS("progress")),
		)
		a.check(name)
	}
	gate.Open()
	a.do(shows("h1", "Connected"), shows("h2", "We found 1 lock"))
	a.content()
}

// Pages stay readable with the colors of a workspace, in each language.
func TestBrandedPagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	a := newAudit(t)
	a.own = s.URL
	w := webview(t, s, nil)
	for i, look := range []map[string]any{
		{"primary_button_color": "#0a7a4b", "logo_shape": "square"},
		{"primary_button_color": "yellow", "primary_button_text_color": "white", "logo_shape": "circle"},
		{"primary_button_color": "#ffffff", "primary_button_text_color": "#eeeeee"},
	} {
		brand(t, s, look)
		lang := []string{"de", "fr", "es"}[i]
		name := strings.TrimPrefix(fmt.Sprint(look["primary_button_color"]), "#")
		a.do(chromedp.Navigate(w.URL+"?lang="+lang), chromedp.WaitVisible(chromedp.CSS("#choices")))
		a.check("branded-" + name + "-choice")
		shape := ask(
			a.browser,
			chromedp.Evaluate[string](`document.querySelector(".mark.workspace").firstElementChild.tagName`),
		)
		if want := map[any]string{"square": "rect", "circle": "circle", nil: "circle"}[look["logo_shape"]]; shape != want {
			t.Errorf("%s: the mark is a %s", name, shape)
		}
		a.do(chromedp.Navigate(w.URL+"/nuki?lang="+lang), chromedp.WaitVisible(chromedp.CSS("#email")))
		a.check("branded-" + name + "-login")
	}
	a.content()
}
