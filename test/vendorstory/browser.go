package vendorstory

import (
	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// logIn connects the account on a connect page. It enters the values of Pages, and waits for the page "Connected".
func (r *run) logIn() {
	r.t.Helper()
	var page api.ConnectWebviewResponse
	r.post("/connect_webviews/create", map[string]any{}, &page)
	steps := []browser.Step{
		chromedp.Navigate(page.ConnectWebview.URL + "/" + r.vendor().Name),
	}
	for _, values := range r.Pages {
		for field, value := range values {
			input := chromedp.CSS("#" + field)
			steps = append(steps, chromedp.WaitVisible(input), chromedp.SetValue(input, value))
		}
		steps = append(steps, chromedp.Click(chromedp.CSS("form button:not([type=button])")))
	}
	browser.Open(r.t).Do(append(steps, browser.Shows("h1", "Connected"))...)
}
