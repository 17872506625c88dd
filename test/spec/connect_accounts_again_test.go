package spec_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// The list of its devices is on its way from the vendor when the account is deleted: it comes too late, and says so to
// whoever has waited for it.
func TestWhoWaitsForDevicesOfAnAccountThatIsDeletedCanLogInAgain(t *testing.T) {
	t.Parallel()
	asked, goOn := make(chan struct{}, 100), make(chan struct{})
	var holds atomic.Bool
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		wrap := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			return wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				if holds.Load() && r.Method == http.MethodGet && r.URL.Path == "/sandbox/cloud/locks" { // all is written, and the vendor's last byte not sent
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
	if status := s.Post(t, "/connected_accounts/delete", params{"connected_account_id": account}, nil); status != http.StatusOK {
		t.Fatal(status)
	}
	if now := webviewNow(t, s, w.ConnectWebviewID); now.Status != "failed" {
		t.Errorf("the webview is %s", now.Status)
	}
	close(goOn)
	if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status != http.StatusSeeOther {
		t.Errorf("another login: %d", status)
	}
	apptest.Until(t, "the devices are there", func() bool { return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized" })
	if again := *webviewNow(t, s, w.ConnectWebviewID).ConnectedAccountID; again == account {
		t.Errorf("it is authorized for the account that is deleted")
	}
}

func TestLoginDoesNotFailForMetadataThatIsNotKept(t *testing.T) {
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
	apptest.Until(t, "it is authorized", func() bool { return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized" })
}
