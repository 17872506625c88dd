package spec_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestWhoWaitsForDevicesOfAnAccountThatIsDeletedCanLogInAgain(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	gate := s.Gate(t, "before insert", "devices", "true") // its devices do not come
	w := webview(t, s, params{"wait_for_device_creation": true, "accepted_providers": []string{"nuki"}})
	if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status != http.StatusSeeOther {
		t.Fatal(status)
	}
	gate.Await(1, "into devices")
	deleted := later(t, s, "/connected_accounts/delete", params{"connected_account_id": *webviewNow(t, s, w.ConnectWebviewID).ConnectedAccountID})
	gate.Open()
	if got := <-deleted; got != "200 " {
		t.Fatal(got)
	}
	if now := webviewNow(t, s, w.ConnectWebviewID); now.Status == "authorized" {
		t.Skip("its devices came before")
	} else if now.Status != "failed" {
		t.Errorf("the webview is %s", now.Status)
	}
	if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status != http.StatusSeeOther {
		t.Errorf("another login: %d", status)
	}
	apptest.Until(t, "the devices are there", func() bool { return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized" })
}

func TestLoginDoesNotFailForMetadataThatIsNotKept(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
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
