// Package browser opens pages in Chromium for tests, and collects what the browser reports about them: violations of
// the content security policy, script errors, and requests to other hosts. It knows no page.
package browser

import (
	"context"
	"embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Step is something done in a browser.
type Step = chromedp.Action[chromedp.Void]

// Widths of screens in pixels.
const (
	Narrow  = 320 // the narrowest phones
	Phone   = 390
	Desktop = 1280
)

// Browser is a Chromium with one page open.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	reports  []string
	requests []string // URLs
}

// Require returns the path of Chromium. Without Chromium, it skips the test.
func Require(t testing.TB) (path string) {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	storetest.Missing(t, "chromium")
	return ""
}

// process is the Chromium that the open browsers of a test program share. It ends with the last of them.
var process struct {
	sync.Mutex
	users int
	ctx   context.Context
	end   func()
}

// acquire starts Chromium for the first user. The returned context is that of the process.
func acquire(t testing.TB) context.Context {
	t.Helper()
	path := Require(t)
	process.Lock()
	defer process.Unlock()
	if process.users == 0 {
		data, err := os.MkdirTemp("", "chromium") //nolint:usetesting // it outlives the test that starts Chromium
		if err != nil {
			t.Fatal(err)
		}
		flags := []chromedp.ExecAllocatorOption{
			chromedp.ExecPath(path),
			chromedp.UserDataDir(data),
			chromedp.NoFirstRun,
			chromedp.NoDefaultBrowserCheck,
		}
		for _, flag := range []string{
			"headless", "no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking",
			"disable-component-update", "disable-sync", "disable-dev-shm-usage",
		} {
			flags = append(flags, chromedp.Flag(flag, true))
		}
		allocated, free := chromedp.NewExecAllocator(context.Background(), flags...)
		ctx, end := chromedp.NewContext(allocated)
		process.ctx, process.end = ctx, func() {
			end()
			free()
			_ = os.RemoveAll(data)
		}
		if err := chromedp.Do(ctx); err != nil {
			process.end()
			t.Fatal(err)
		}
	}
	process.users++
	return process.ctx
}

func release() {
	process.Lock()
	defer process.Unlock()
	if process.users--; process.users == 0 {
		process.end()
	}
}

// Open opens a page with a profile of its own, which ends with the test. Without Chromium, it skips the test.
func Open(t testing.TB) *Browser {
	t.Helper()
	limited, stop := context.WithTimeout(acquire(t), testenv.Timeout(5*time.Minute))
	b := &Browser{t: t}
	ctx, end := chromedp.NewContext(limited, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	t.Cleanup(func() {
		end()
		stop()
		release()
	})
	b.ctx = ctx
	b.Do(Command(network.Enable, network.EnableParams{}))
	return b
}

func (b *Browser) hear(event any) {
	report := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		// The network reports each refusal. A test can be faster than the focus.
		if e.Entry.Source != log.EntrySourceNetwork &&
			!strings.HasPrefix(e.Entry.Text, "Autofocus processing was blocked") {
			report = e.Entry.Text
		}
	case *runtime.EventConsoleAPICalled:
		report = fmt.Sprint("the console: ", e.Type)
	case *runtime.EventExceptionThrown:
		report = e.ExceptionDetails.Text
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.requests = append(b.requests, e.Request.URL)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if report != "" && !slices.Contains(b.reports, report) {
		b.reports = append(b.reports, report)
	}
}

// Do runs steps. If one fails, so does the test.
func (b *Browser) Do(steps ...Step) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.lost(err)
	}
}

func (b *Browser) lost(err error) {
	b.t.Helper()
	at, _ := chromedp.Run(b.ctx, chromedp.Location())
	shown, _ := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("body")))
	b.t.Fatalf("%v; the browser is at %s and shows:\n%s", err, at, shown)
}

// Ask runs an action with a result.
func Ask[T any](b *Browser, a chromedp.Action[T]) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.lost(err)
	}
	return out
}

// Command sends a command of the Chrome DevTools Protocol.
func Command[P, R any](c cdp.Command[P, R], params P) Step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// Scripts turns scripts of pages on or off.
func Scripts(on bool) Step {
	return Command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// Size sets the size of the screen. Narrow ones are phones.
func Size(width, height int64) Step {
	return Command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width:             width,
		Height:            height,
		DeviceScaleFactor: 1,
		Mobile:            width < 600,
	})
}

// Scheme sets what the system prefers: "light" or "dark".
func Scheme(scheme string) Step {
	return Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// Cookie sets a cookie for a URL.
func Cookie(at, name, value string) Step {
	return Command(network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: at})
}

// Shows waits for an element with a text in it.
func Shows(element, text string) Step {
	return chromedp.WaitVisible(fmt.Sprintf(`//%s[contains(., %q)]`, element, text))
}

// CheckReports fails the test for each report of the browser.
func (b *Browser) CheckReports() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.reports {
		b.t.Errorf("the browser reports: %.300s", r)
	}
}

// CheckRequests fails the test for each request to another host than that of the URL own.
func (b *Browser) CheckRequests(own string) {
	b.t.Helper()
	u, err := url.Parse(own)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		to, err := url.Parse(r)
		if err != nil || to.Host != u.Host && to.Scheme != "data" && to.Scheme != "about" && to.Scheme != "blob" {
			b.t.Errorf("the page requests %.100s", r)
		}
	}
}

// CheckFits fails the test if the page is wider than the screen.
func (b *Browser) CheckFits(what string) {
	b.t.Helper()
	over := Ask(
		b,
		chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`),
	)
	if over > 0 {
		b.t.Errorf("%s is %d pixels wider than the screen", what, over)
	}
}

//go:embed package.json package-lock.json
var packages embed.FS

// axe is the script of axe-core, from npm.
var axe = sync.OnceValues(func() (string, error) {
	lab, err := gateways.Install(context.Background(), "axe", packages, 18)
	if err != nil {
		return "", err
	}
	script, err := os.ReadFile(filepath.Join(lab.Module("axe-core"), "axe.min.js"))
	return string(script), err
})

// runAxe ends the transitions that a change of the color scheme starts, because colors within a transition have less
// contrast.
const runAxe = `document.getAnimations().forEach((a) => { if (a instanceof CSSTransition) a.finish() });
  axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) =>
  v.nodes.map((n) => v.id + ": " + n.failureSummary + " " + n.html.slice(0, 300))))`

// CheckLooks checks the page in light and dark, wide, and on a phone: accessibility by axe-core, and that it fits the
// screen. It saves a picture of each. It needs npm, and skips the test without it.
func (b *Browser) CheckLooks(name string) {
	b.t.Helper()
	script, err := axe()
	if err != nil {
		storetest.Missing(b.t, "axe-core: %v", err)
	}
	b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: script})
		return err
	}))
	for _, look := range []struct {
		name, scheme string
		width        int64
	}{{"light", "light", Desktop}, {"dark", "dark", Desktop}, {"phone", "light", Phone}} {
		what := name + " " + look.name
		b.Do(Size(look.width, 844), Scheme(look.scheme))
		b.CheckFits(what)
		for _, found := range Ask(b, chromedp.Evaluate[[]string](runAxe, chromedp.EvalAwaitPromise)) {
			b.t.Errorf("%s: %s", what, found)
		}
		b.Picture(what)
	}
}

// Picture saves a picture of the page if the environment variable SCREENSHOTS names a directory.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	directory := os.Getenv("SCREENSHOTS")
	if directory == "" {
		return
	}
	picture := Ask(b, chromedp.FullScreenshot(100))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		b.t.Fatal(err)
	}
	file := filepath.Join(directory, strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' {
			return '-'
		}
		return r
	}, name)+".png")
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
