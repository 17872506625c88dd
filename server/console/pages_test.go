package console_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// visit is a page and the selector that shows that it is complete.
type visit struct{ name, path string }

// checkLooks opens pages in light, dark, and on a phone, and checks accessibility, width, and reports.
func checkLooks(t *testing.T, b *bed, visits ...visit) {
	t.Helper()
	for _, look := range []struct {
		name, scheme string
		width        int64
	}{{"light", "light", browser.Desktop}, {"dark", "dark", browser.Desktop}, {"phone", "light", browser.Phone}} {
		t.Run(look.name, func(t *testing.T) {
			t.Parallel()
			w := browser.Open(t)
			w.Do(b.signIn(t, domain.RoleAdmin), browser.Size(look.width, 844), browser.Scheme(look.scheme))
			for _, v := range visits {
				w.Do(chromedp.Navigate(b.page(v.path)), chromedp.WaitVisible(chromedp.CSS("main h1")))
				w.CheckFits(v.name)
				w.CheckAccessibility(v.name)
				w.Picture(v.name + " " + look.name)
			}
			w.CheckReports(b.console)
		})
	}
}

func TestLooks_TodayAndLocks(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "yale"))
	checkLooks(t, b, visit{"today", ""}, visit{"locks", "/locks"}, visit{"lock", "/locks/" + b.Device(t, "august")})
}
