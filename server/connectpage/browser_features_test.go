package connectpage_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// A button shows the password, and keeps its name.
func TestShowPassword(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, map[string]any{"accepted_providers": []string{"nuki"}})
	b := browser.Open(t)
	state := func(want string) {
		t.Helper()
		if got := browser.Ask(b, chromedp.Evaluate[string](`[...document.querySelectorAll("button.show")].map(b =>
			[b.textContent, b.type, b.getAttribute("aria-pressed"), document.getElementById("password").type].join()).join(";")`)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	b.Do(chromedp.Navigate(w.URL+"/nuki"), chromedp.WaitVisible(chromedp.CSS("button.show")))
	state("Show password,button,false,password")
	b.Do(chromedp.Click(chromedp.CSS("button.show")))
	state("Show password,button,true,text")
	b.Do(
		enter("jane@example.com", "mistyped"),
		chromedp.WaitVisible(chromedp.CSS(".field:has(#password-error) button.show")),
	)
	state("Show password,button,false,password") // the form of the response has one button, too
	b.Do(
		chromedp.Clear(chromedp.CSS("#email")),
		chromedp.SendKeys(chromedp.CSS("#password"), "1234"),
		chromedp.Click(chromedp.CSS("form button[type=submit]")),
		browser.Shows(`*[@id="email-error"]`, "Enter your email address."),
	)
	if got := browser.Ask(b, chromedp.Evaluate[string](`[...document.querySelectorAll("input")].map(i =>
		[i.id, i.getAttribute("aria-invalid"), i.getAttribute("aria-describedby")].join()).join(";")`)); got != "email,true,email-error;password,," {
		t.Errorf("the fields are %s", got)
	}
	b.Do(browser.Scripts(false), chromedp.Navigate(w.URL+"/nuki"), browser.Shows("h1", "Log in to Nuki"))
	state("")
	b.CheckReports()
}

// A person searches for a brand, with and without scripts.
func TestSearchForBrand(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, nil)
	b := browser.Open(t)
	const shown = `[...document.querySelectorAll("#choices li")].filter(e => e.checkVisibility()).map(e => e.querySelector(".name").textContent).join()`
	choices := func(want string) {
		t.Helper()
		if got := browser.Ask(b, chromedp.Evaluate[string](shown)); got != want {
			t.Errorf("the page shows %q, want %q", got, want)
		}
	}
	b.Do(
		chromedp.Navigate(w.URL+"?lang=de"),
		chromedp.WaitVisible(chromedp.CSS("#search")),
		chromedp.SendKeys(chromedp.CSS("#search"), "salto k"),
	)
	choices("Salto KS")
	b.Do(chromedp.SendKeys(chromedp.CSS("#search"), "x"), browser.Shows(`*[@role="status"]`, "Keine Marke"))
	choices("")
	b.Do(
		browser.Scripts(false),
		chromedp.Navigate(w.URL+"?lang=de"),
		chromedp.SendKeys(chromedp.CSS("#search"), "NUKI"+kb.Enter),
		chromedp.WaitVisible(`//a[contains(., "Alle Marken anzeigen")]`),
	)
	choices("Nuki")
	b.Do(chromedp.Click(`//a[span="Nuki"]`), browser.Shows("h1", "Bei Nuki anmelden"))
	b.Do(
		enter(sandbox.People[0], "mistyped"),
		browser.Shows(`*[@role="alert"]`, "Passwort ist falsch"),
		enter(sandbox.People[0], sandbox.Password),
		browser.Shows("h1", "Verbunden"),
	)
	b.Do(chromedp.Navigate(webview(t, s, nil).URL), chromedp.WaitVisible(chromedp.CSS("#choices")))
	if got := browser.Ask(
		b,
		chromedp.Evaluate[string](`document.querySelector("#choices .name").textContent`),
	); got != "Nuki" {
		t.Errorf("the brand in use is not the first one, but %s", got)
	}
	b.CheckReports()
}
