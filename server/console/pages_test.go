package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// visit is a page of the workspace.
type visit struct{ name, path string }

// checkLooks opens pages, and checks their looks, reports, and requests.
func checkLooks(t *testing.T, b *bed, visits ...visit) {
	t.Helper()
	w := browser.Open(t)
	w.Do(b.signIn(t, domain.RoleAdmin))
	for _, v := range visits {
		w.Do(chromedp.Navigate(b.page(v.path)), chromedp.WaitVisible(chromedp.CSS("main h1")))
		w.CheckLooks(v.name)
	}
	w.CheckReports()
	w.CheckRequests(b.console)
}

// Today has findings of several kinds, and codes that begin and end.
func TestLooks_TodayAndLocks(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "yale", "schlage"))
	august, yale := b.Device(t, "august"), b.Device(t, "yale")
	begins := time.Now().Add(3 * time.Hour).UTC().Format(time.RFC3339)
	ends := time.Now().Add(9 * time.Hour).UTC().Format(time.RFC3339)
	b.newCode(t, map[string]any{"device_id": august, "name": "Cleaning", "starts_at": begins, "ends_at": ends})
	b.newCode(t, map[string]any{"device_id": august, "name": "Smith family", "starts_at": begins, "ends_at": ends})
	b.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": yale}, nil)
	apptest.Until(t, "the lock is offline", func() bool {
		return strings.Contains(b.open(t, domain.RoleViewer, "").body, "The device is offline.")
	})
	checkLooks(t, b, visit{"today", ""}, visit{"locks", "/locks"}, visit{"lock today", "/locks/" + august})
}
