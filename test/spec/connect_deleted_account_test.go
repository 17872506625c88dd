package spec_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// An account may be deleted while its list of devices is on its way from the vendor. The late list is ignored, and the
// waiting webview shows that the login has failed.
func TestWebview_AccountDeletedWhileDevicesAreRead(t *testing.T) {
	t.Parallel()
	asked, goOn := make(chan struct{}, 100), make(chan struct{})
	var holds atomic.Bool
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		wrap := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			return wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				if holds.Load() && r.Method == http.MethodGet &&
					r.URL.Path == "/sandbox/cloud/locks" { // all written except the last byte
					asked <- struct{}{}
					select {
					case <-goOn:
					case <-r.Context().Done():
					}
				}
			}))
		}
	})
	holds.Store(true)
	w := webview(t, s, params{"wait_for_device_creation": true, "accepted_providers": []string{"nuki"}})
	if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status != http.StatusSeeOther {
		t.Fatal(status)
	}
	<-asked
	account := *webviewNow(t, s, w.ConnectWebviewID).ConnectedAccountID
	if status := s.Post(
		t,
		"/connected_accounts/delete",
		params{"connected_account_id": account},
		nil,
	); status != http.StatusOK {
		t.Fatal(status)
	}
	if now := webviewNow(t, s, w.ConnectWebviewID); now.Status != "failed" {
		t.Errorf("the webview is %s", now.Status)
	}
	close(goOn)
	if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status != http.StatusSeeOther {
		t.Errorf("another login: %d", status)
	}
	apptest.Until(
		t,
		"the devices are there",
		func() bool { return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized" },
	)
	if again := *webviewNow(t, s, w.ConnectWebviewID).ConnectedAccountID; again == account {
		t.Errorf("it is authorized for the account that is deleted")
	}
}

func TestWebview_LoginIgnoresInvalidMetadata(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	many := params{}
	for i := range 50 {
		many[fmt.Sprint("key ", i)] = "x"
	}
	enter(t, webview(t, s, params{"custom_metadata": many}).URL, "nuki", as("jane"))
	w := webview(t, s, params{"custom_metadata": params{"one more": "x"}})
	if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status != http.StatusSeeOther {
		t.Errorf("logged in again: %d", status)
	}
	apptest.Until(
		t,
		"it is authorized",
		func() bool { return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized" },
	)
}
