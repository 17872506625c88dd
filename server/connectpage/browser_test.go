package connectpage_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// TestMain names the tests whose outcome can differ with several servers.
func TestMain(m *testing.M) {
	apptest.Main(m, TestPageShowsTooManyAttempts,
		TestTenthLoginWaitsForDevices,
		TestGiveUp_AfterLogin,
		TestGuessesAreCountedByAddress)
}

// browser is a Chromium with one page open.
type browser struct {
	t   *testing.T
	ctx context.Context
	own string // the URL of the only server that pages may load from; empty: any

	mu         sync.Mutex
	complaints []string // what it has to say about the page's security and its scripts
}

// open starts a browser, which ends with the test. Without a Chromium on the machine the test is skipped.
func open(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		storetest.Missing(t, "chromium")
	}
	flags := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
	}
	for _, flag := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		flags = append(flags, chromedp.Flag(flag, true))
	}
	limited, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	allocated, free := chromedp.NewExecAllocator(limited, flags...)
	b := &browser{t: t}
	ctx, end := chromedp.NewContext(allocated, chromedp.WithListener(b.hear))
	t.Cleanup(func() {
		end()
		free()
		stop()
	})
	b.ctx = ctx
	return b
}

func (b *browser) hear(event any) {
	complaint := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if at := e.Request.URL; b.own != "" && !strings.HasPrefix(at, b.own+"/") {
			complaint = "a request to " + at
		}
	case *log.EventEntryAdded:
		// The network reports each refusal. A test can be faster than the focus.
		if e.Entry.Source != log.EntrySourceNetwork &&
			!strings.HasPrefix(e.Entry.Text, "Autofocus processing was blocked") {
			complaint = e.Entry.Text
		}
	case *runtime.EventConsoleAPICalled:
		complaint = fmt.Sprint("the console: ", e.Type)
	case *runtime.EventExceptionThrown:
		complaint = e.ExceptionDetails.Text
	}
	if complaint != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.complaints = append(b.complaints, complaint)
	}
}

func (b *browser) do(steps ...step) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.lost(err)
	}
}

func (b *browser) lost(err error) {
	b.t.Helper()
	at, _ := chromedp.Run(b.ctx, chromedp.Location())
	shown, _ := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("body")))
	b.t.Fatalf("%v; the browser is at %s and shows:\n%s", err, at, shown)
}

// showLogin is do for what has a result.
func ask[T any](b *browser, a chromedp.Action[T]) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.lost(err)
	}
	return out
}

// step is something done in a browser.
type step = chromedp.Action[chromedp.Void]

// command sends one of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func scripts(on bool) step {
	return command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// content checks that the browser has had nothing to say.
func (b *browser) content() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("the browser complains: %s", c)
	}
}

// fits checks that nothing has to be scrolled sideways.
func (b *browser) fits(what string) {
	b.t.Helper()
	if over := ask(
		b,
		chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`),
	); over > 0 {
		b.t.Errorf("%s is %d pixels wider than the screen", what, over)
	}
}

// size is that of a screen; narrow ones are phones.
func size(width, height int64) step {
	return command(
		emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{
			Width:             width,
			Height:            height,
			DeviceScaleFactor: 1,
			Mobile:            width < 600,
		},
	)
}

const (
	small   = 320 // the narrowest phones
	phone   = 390
	desktop = 1280
)

// enter fills in the form and sends it.
func enter(email, password string) step {
	return chromedp.Steps(
		chromedp.WaitVisible(chromedp.CSS("#email")),
		chromedp.SetValue(chromedp.CSS("#email"), email),
		chromedp.SendKeys(chromedp.CSS("#password"), password),
		chromedp.Click(chromedp.CSS("form button[type=submit]")),
	)
}

// shows waits for an element with a text in it.
func shows(element, text string) step {
	return chromedp.WaitVisible(fmt.Sprintf(`//%s[contains(., %q)]`, element, text))
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
			b := open(t)
			b.do(
				scripts(c.scripts),
				size(phone, 844),
				chromedp.Navigate(w.URL),
				chromedp.Click(
					`//a[span="Nuki"]`,
				),
				shows("h1", "Log in to Nuki"),
				enter("jane@example.com", "mistyped"),
				shows(`*[@role="alert"]`, "password is wrong"),
			)
			email, password := ask(
				b,
				chromedp.Value(chromedp.CSS("#email")),
			), ask(
				b,
				chromedp.Value(chromedp.CSS("#password")),
			)
			described := ask(b, chromedp.AttributeValue(chromedp.CSS("#password"), "aria-describedby")).Value
			if email != "jane@example.com" || password != "" || described != "password-error" {
				t.Errorf("after the refusal the fields have %q, %q, described by %q", email, password, described)
			}
			b.do(enter("jane@example.com", "1234"), back)
			at, referrer := ask(b, chromedp.Location()), ask(b, chromedp.TextContent(chromedp.CSS("#referrer")))
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
			b.content()
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
	b := open(t)
	b.do(size(small, 844), chromedp.Navigate(w.URL), shows("h1", "Connect your devices"))
	b.fits("the choice")
	b.do(
		chromedp.Click(`//a[span="Sandbox Access"]`),
		shows("h1", "Log in to Sandbox Access"),
		shows("p", "will manage the users of the access systems"),
	)
	b.fits("the form")
	b.do(
		enter("jane@example.com", "mistyped"),
		shows(`*[@role="alert"]`, "password is wrong"),
		enter("jane@example.com", "1234"),
		shows("h1", "Connected"),
		shows("p", "can now manage the users of your access systems"),
	)
	b.fits("the end")
	if got := now(t, s, w); got.Status != "authorized" || got.ConnectedAccountID == nil {
		t.Errorf("%+v", got)
	}
	b.content()
	alone := webview(t, s, map[string]any{"provider_category": "access_control_systems"})
	b.do(chromedp.Navigate(alone.URL), shows("h1", "Log in to Sandbox Access")) // there is only one vendor
	if said := ask(b, chromedp.Text(chromedp.CSS("body"))); strings.Contains(said, "lock") {
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
	b := open(t)
	b.do(chromedp.Navigate(unwilling.URL), chromedp.Click(`//button[contains(., "Go back")]`), back)
	at := ask(b, chromedp.Location())
	if want := app.URL + "/failed?connect_webview_id=" + unwilling.ConnectWebviewID; at != want {
		t.Errorf("after giving up the browser is at %s, want %s", at, want)
	}
	forgetful := webview(t, s, to)
	b.do(chromedp.Navigate(forgetful.URL))
	for n := range 10 {
		if n > 0 { // the last form is sent after too many attempts
			b.do(chromedp.Reload())
		}
		b.do(enter("jane@example.com", "mistyped"), shows(`*[@role="alert"]`, "password is wrong"))
	}
	b.do(enter("jane@example.com", "1234"), back)
	at = ask(b, chromedp.Location())
	if want := app.URL + "/failed?connect_webview_id=" + forgetful.ConnectWebviewID; at != want {
		t.Errorf("after ten tries the browser is at %s, want %s", at, want)
	}
	b.content()
}

func TestPagesFitNarrowScreens(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, nil)
	b := open(t)
	for _, width := range []int64{small, phone, desktop} {
		at := func(page string) string { return fmt.Sprintf("%s, %d wide,", page, width) }
		b.do(size(width, 844), chromedp.Navigate(w.URL), shows("h1", "Connect"))
		b.fits(at("the choice"))
		b.do(chromedp.Navigate(w.URL+"/nuki"), shows("h1", "Log in"))
		b.fits(at("the form"))
		b.do(
			enter("a.person.with.a.long.name.in.a.long.domain@mail.subdomain.of.a.company.example.com", "mistyped"),
			shows(`*[@role="alert"]`, "wrong"),
		)
		b.fits(at("the refusal"))
		b.do(chromedp.Navigate(w.URL+"x"), shows("h1", "isn't valid"))
		b.fits(at("a bad link"))
	}
	b.do(chromedp.Navigate(w.URL+"/nuki"), enter("jane@example.com", "1234"), shows("h1", "Connected"))
	b.fits("the end")
	b.content()
}

func TestKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, map[string]any{"accepted_providers": []string{"yale", "nuki"}})
	b := open(t)
	focus := func(want string) {
		t.Helper()
		if got := ask(
			b,
			chromedp.Evaluate[string](
				`document.activeElement.id || (document.activeElement.querySelector(".name") || document.activeElement).textContent.trim()`,
			),
		); got != want {
			t.Fatalf("the focus is on %q, want %q", got, want)
		}
	}
	b.do(size(desktop, 800), chromedp.Navigate(w.URL), shows("h1", "Connect"), chromedp.KeyEvent(kb.Tab))
	focus("Nuki")
	if ask(b, chromedp.Evaluate[string](`getComputedStyle(document.activeElement).outlineStyle`)) == "none" {
		t.Error("nothing shows where the focus is")
	}
	b.do(chromedp.KeyEvent(kb.Enter), shows("h1", "Log in to Nuki"))
	focus("email")
	b.do(chromedp.KeyEvent("jane@example.com"), chromedp.KeyEvent(kb.Tab))
	focus("password")
	b.do(chromedp.KeyEvent("mistyped"), chromedp.KeyEvent(kb.Enter), shows(`*[@role="alert"]`, "wrong"))
	focus("password")
	b.do(chromedp.KeyEvent("1234"), chromedp.KeyEvent(kb.Enter), shows("h1", "Connected"))
	if now(t, s, w).Status != "authorized" {
		t.Error("the login failed")
	}
	b.content()
}
