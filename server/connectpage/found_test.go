package connectpage_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// The last page lists the locks by the vendor's names, until the link ends.
func TestDonePage_ListsLocks(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, map[string]any{"wait_for_device_creation": true})
	form := url.Values{"email": {sandbox.People[0]}, "password": {sandbox.Password}}
	visit(t, &http.Client{}, http.MethodPost, w.URL+"/nuki", form)
	apptest.Until(t, "the login is through", func() bool { return now(t, s, w).Status == "authorized" })
	s.Exec(t, "update devices set nickname = 'internal note'")
	_, page := visit(t, &http.Client{}, http.MethodGet, w.URL, nil)
	if !strings.Contains(page, "We found 1 lock<") || !strings.Contains(page, "City Flat</bdi>") ||
		strings.Contains(page, "internal note") {
		t.Errorf("the page is %s", page)
	}
	s.Exec(t, "update devices set removed_at = now() where provider = 'nuki'")
	if _, page := visit(
		t,
		&http.Client{},
		http.MethodGet,
		w.URL,
		nil,
	); !strings.Contains(
		page,
		"There are no locks in this account yet",
	) {
		t.Errorf("without locks, the page is %s", page)
	}
	s.Exec(t, "update devices set removed_at = null where provider = 'nuki'")
	s.Exec(t, "update connect_webviews set expires_at = now()")
	if _, page := visit(t, &http.Client{}, http.MethodGet, w.URL, nil); strings.Contains(page, "City Flat") ||
		!strings.Contains(page, "Your account is connected.") {
		t.Errorf("after the end of the link, the page is %s", page)
	}
}
