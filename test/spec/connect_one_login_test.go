package spec_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// While the server reads the devices, the webview is not authorized yet but has had its login. A second account would
// leave the first one connected and outside the scope of the webview's creator.
func TestWebview_OneAccountWhileDevicesAreRead(t *testing.T) {
	t.Parallel()
	asked, goOn := make(chan struct{}, 100), make(chan struct{})
	var holds atomic.Bool
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		wrap := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			return wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if holds.Load() && r.Method == http.MethodGet && r.URL.Path == "/sandbox/cloud/locks" {
					asked <- struct{}{}
					select {
					case <-goOn:
					case <-r.Context().Done():
					}
				}
				next.ServeHTTP(w, r)
			}))
		}
	})
	holds.Store(true)
	w := webview(t, s, params{"wait_for_device_creation": true, "accepted_providers": []string{"nuki", "yale"}})
	if status, to, _ := enter(
		t,
		w.URL,
		"nuki",
		as("jane"),
	); status != http.StatusSeeOther ||
		!strings.HasSuffix(to, "/waiting") {
		t.Fatalf("the first login: %d %s", status, to)
	}
	first := *webviewNow(t, s, w.ConnectWebviewID).ConnectedAccountID
	<-asked
	if status, _, _ := enter(t, w.URL, "yale", mistyped); status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong password meanwhile: %d", status)
	}
	for range 2 { // the rejected login does not open it
		if status, to, body := enter(
			t,
			w.URL,
			"yale",
			as("jane"),
		); status != http.StatusConflict ||
			!strings.Contains(body, "works for one only") {
			t.Errorf("another account: %d %s", status, to)
		}
	}
	if now := webviewNow(
		t,
		s,
		w.ConnectWebviewID,
	); now.Status != "pending" || *now.ConnectedAccountID != first ||
		*now.SelectedProvider != "nuki" {
		t.Errorf("the webview is %s, of %s, by %s", now.Status, *now.ConnectedAccountID, *now.SelectedProvider)
	}
	if n := len(accounts(t, s, params{})); n != 2 { // including the sandbox's own
		t.Errorf("there are %d accounts", n)
	}
	if status, to, _ := enter(
		t,
		w.URL,
		"nuki",
		as("jane"),
	); status != http.StatusSeeOther ||
		!strings.HasSuffix(to, "/waiting") {
		t.Errorf("the same account again: %d %s", status, to)
	}
	var events api.EventsResponse
	s.Post(
		t,
		"/events/list",
		params{
			"since":              "2020-01-01T00:00:00Z",
			"connect_webview_id": w.ConnectWebviewID,
			"event_type":         "connect_webview.login_failed",
		},
		&events,
	)
	if len(events.Events) != 0 {
		t.Errorf("it shows a failed login: %+v", events.Events)
	}
	close(goOn)
	apptest.Until(
		t,
		"the devices are there",
		func() bool { return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized" },
	)
	if now := webviewNow(t, s, w.ConnectWebviewID); *now.ConnectedAccountID != first {
		t.Errorf("it is authorized for %s, and %s was logged in to", *now.ConnectedAccountID, first)
	}
}

// If the devices of an account cannot be read, the person may log in to another account.
func TestWebview_AnotherAccountAfterFailedRead(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	var refused sync.Map // token of the first account, which is rejected from then on
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		wrap := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			return wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				token := r.Header.Get("Authorization")
				if refuses.Load() {
					refused.Store(token, true)
				}
				if _, is := refused.Load(
					token,
				); is && r.Method == http.MethodGet &&
					r.URL.Path == "/sandbox/cloud/locks" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			}))
		}
	})
	refuses.Store(true)
	w := webview(t, s, params{"wait_for_device_creation": true, "accepted_providers": []string{"nuki", "yale"}})
	if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status != http.StatusSeeOther {
		t.Fatalf("the first login: %d", status)
	}
	first := *webviewNow(t, s, w.ConnectWebviewID).ConnectedAccountID
	apptest.Until(t, "the account has an error", func() bool {
		var out api.ConnectedAccountResponse
		s.Post(t, "/connected_accounts/get", params{"connected_account_id": first}, &out)
		return len(out.ConnectedAccount.Errors) > 0
	})
	if status, _, _ := enter(t, w.URL, "yale", mistyped); status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong password: %d", status)
	}
	if now := webviewNow(t, s, w.ConnectWebviewID); now.Status != "failed" {
		t.Errorf("after a wrong password the webview is %s", now.Status)
	}
	refuses.Store(false)
	if status, to, _ := enter(
		t,
		w.URL,
		"yale",
		as("jane"),
	); status != http.StatusSeeOther ||
		!strings.HasSuffix(to, "/waiting") {
		t.Errorf("another account: %d %s", status, to)
	}
	apptest.Until(
		t,
		"the devices are there",
		func() bool { return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized" },
	)
	if now := webviewNow(
		t,
		s,
		w.ConnectWebviewID,
	); *now.ConnectedAccountID == first ||
		*now.SelectedProvider != "yale" {
		t.Errorf("it is authorized for %s, by %s", *now.ConnectedAccountID, *now.SelectedProvider)
	}
}
