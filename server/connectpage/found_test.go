package connectpage_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// The last page lists the locks by the vendor's names, as long as the account has them, and until the link ends.
func TestDonePage_ListsLocks(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	for what, c := range map[string]struct {
		change func(w api.ConnectWebview)
		shows  string
	}{
		"after the end of the link": {func(w api.ConnectWebview) {
			s.Exec(t, "update connect_webviews set expires_at = now() where connect_webview_id = $1", w.ConnectWebviewID)
		}, "Your account is connected."},
		"without locks": {func(w api.ConnectWebview) {
			for _, id := range devicesOf(t, s, w) {
				s.Post(t, "/devices/simulate/remove", map[string]any{"device_id": id}, nil)
			}
		}, "There are no locks in this account yet"},
	} {
		w := webview(t, s, map[string]any{"wait_for_device_creation": true})
		form := url.Values{"email": {sandbox.People[0]}, "password": {sandbox.Password}}
		if what == "without locks" {
			form.Set("email", sandbox.People[1])
		}
		visit(t, &http.Client{}, http.MethodPost, w.URL+"/nuki", form)
		apptest.Until(t, "the login is through", func() bool { return now(t, s, w).Status == "authorized" })
		s.Exec(t, "update devices set nickname = 'internal note'")
		_, page := visit(t, &http.Client{}, http.MethodGet, w.URL, nil)
		if !strings.Contains(page, "We found 1 lock<") || strings.Contains(page, "internal note") {
			t.Errorf("the page is %s", page)
		}
		c.change(w)
		apptest.Until(t, what, func() bool {
			_, page := visit(t, &http.Client{}, http.MethodGet, w.URL, nil)
			return strings.Contains(page, c.shows) && !strings.Contains(page, "We found")
		})
	}
}

// devicesOf returns the devices of the account that was connected on a page.
func devicesOf(t *testing.T, s *apptest.Server, w api.ConnectWebview) (ids []string) {
	t.Helper()
	var out api.DevicesResponse
	s.Post(t, "/devices/list", map[string]any{"connect_webview_id": w.ConnectWebviewID}, &out)
	for _, d := range out.Devices {
		ids = append(ids, d.DeviceID)
	}
	return ids
}
