package vendorstory

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// chromium returns the path of the browser. It skips the test if there is none.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	storetest.Missing(t, "chromium")
	return ""
}

// openBrowser starts a browser with one page, which ends with the returned function.
func openBrowser(t testing.TB) (ctx context.Context, end func()) {
	t.Helper()
	flags := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium(t)),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
	}
	for _, flag := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking",
		"disable-component-update", "disable-sync", "disable-dev-shm-usage",
	} {
		flags = append(flags, chromedp.Flag(flag, true))
	}
	limited, stop := context.WithTimeout(t.Context(), testenv.Timeout(2*time.Minute))
	allocated, free := chromedp.NewExecAllocator(limited, flags...)
	ctx, closePage := chromedp.NewContext(allocated)
	return ctx, func() {
		closePage()
		free()
		stop()
	}
}

// logIn connects the account on a connect page. It enters the values of Pages, and waits for the page "Connected".
func (r *run) logIn() {
	r.t.Helper()
	var page api.ConnectWebviewResponse
	r.post("/connect_webviews/create", map[string]any{}, &page)
	ctx, end := openBrowser(r.t)
	defer end()
	steps := []chromedp.Action[chromedp.Void]{
		chromedp.Navigate(page.ConnectWebview.URL + "/" + r.vendor().Name),
	}
	for _, values := range r.Pages {
		for field, value := range values {
			input := chromedp.CSS("#" + field)
			steps = append(steps, chromedp.WaitVisible(input), chromedp.SetValue(input, value))
		}
		steps = append(steps, chromedp.Click(chromedp.CSS("form button:not([type=button])")))
	}
	steps = append(steps, chromedp.WaitVisible(fmt.Sprintf(`//h1[contains(., %q)]`, "Connected")))
	if err := chromedp.Do(ctx, steps...); err != nil {
		shown, _ := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body")))
		r.t.Fatalf("log in on the connect page: %v; it shows:\n%s", err, shown)
	}
}
