package ttlock_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock/ttlocktest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/vendorstory"
)

// door is the lock as its owner sees it in the app.
type door struct{ cloud *ttlocktest.Server }

func (d door) id(name string) (id string) {
	for _, c := range d.cloud.Codes(0) {
		if c.Name == name {
			id = string(ref(c))
		}
	}
	return id
}

// Add implements vendorstory.Door.
func (d door) Add(_ testing.TB, name, pin string) { d.cloud.AddCode(0, name, pin) }

// Change implements vendorstory.Door.
func (d door) Change(_ testing.TB, name, pin string) { d.cloud.ChangeCode(0, d.id(name), pin) }

// Delete implements vendorstory.Door.
func (d door) Delete(_ testing.TB, name string) { d.cloud.DeleteCode(0, d.id(name)) }

// PINs implements vendorstory.Door.
func (d door) PINs(testing.TB) map[string]string {
	out := map[string]string{}
	for _, c := range d.cloud.Codes(0) {
		out[c.Name] = c.PIN
	}
	return out
}

func connecting(cloud *ttlocktest.Server, pace adapter.Pace) app.Connecting {
	v := ttlock.VendorAt(cloud.URL)
	v.Pace = pace
	return app.Connecting{Vendors: []adapter.Vendor{v}, Clients: map[string]adapter.Client{ttlock.Name: client}}
}

var login = map[string]string{"username": ttlocktest.Username, "password": ttlocktest.Password}

// secret are the credentials that no output may contain.
var secret = map[string]string{
	ttlocktest.ClientSecret:  "client secret",
	ttlocktest.PasswordMD5(): "password",
	ttlocktest.Password:      "password",
	"fake-access-token-1":    "access token",
	"fake-refresh-token-1":   "refresh token",
	ttlocktest.SuperPasscode: "super passcode",
}

// A person connects an account, and Terraform manages a code of its lock. No push arrives, so reads find the drift.
func TestStory(t *testing.T) {
	t.Parallel()
	cloud := ttlocktest.Start(t, ttlocktest.Options{NeverUsed: true})
	vendorstory.Run(t, vendorstory.Story{
		Connecting: connecting(cloud, adapter.Pace{List: time.Second, Read: time.Second}),
		Pages:      []map[string]string{login},
		Door:       door{cloud},
		PINs:       [3]string{"483926", "594837", "615948"},
		Secrets:    secret,
	})
}

// Pushes to the operator's application tell who opened the door, and that a code was changed in the app. The PINs in them
// stay outside.
func TestStory_Pushes(t *testing.T) {
	t.Parallel()
	var run secretscan.Run
	for value, kind := range secret {
		run.Learn(kind, value)
	}
	cloud := ttlocktest.Start(t, ttlocktest.Options{DuplicatePushes: true})
	in := connecting(cloud, adapter.Pace{List: time.Hour, Read: time.Hour})
	s := apptest.Start(t, run.Configure(t), apptest.WithProfiles("august"), apptest.WithConnecting(in))
	w, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := s.Credential(t, auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{w.ID}})
	post := func(path string, body map[string]any, out any) {
		t.Helper()
		if status := s.PostAs(t, key, path, body, out); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	admin := app.Admin{Access: s.App.Access, Connecting: in}
	to, err := admin.AppPushURL(t.Context(), ttlock.Name, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	cloud.SetPushURL(to)
	connectOnPage(t, s, key)

	var device string
	apptest.Until(t, "the lock", func() bool {
		var listed api.UnmanagedDevicesResponse
		post("/devices/unmanaged/list", map[string]any{}, &listed)
		for _, d := range listed.Devices {
			device = d.DeviceID
		}
		return device != ""
	})
	post("/devices/unmanaged/update", map[string]any{"device_id": device, "is_managed": true}, nil)
	var made api.AccessCodeResponse
	post("/access_codes/create", map[string]any{"device_id": device, "name": "Guest", "code": "617384"}, &made)
	run.Learn("code", "617384")
	run.Learn("code", "920475")
	d := door{cloud}
	apptest.Until(t, "the code", func() bool { return d.PINs(t)["Guest"] == "617384" })
	cloud.EnterPIN(0, "617384")
	apptest.Until(t, "one event of the entry", func() bool {
		var out struct {
			Events []struct {
				CodeID string `json:"access_code_id"`
				Method string `json:"method"`
			} `json:"events"`
		}
		post("/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "event_type": "lock.unlocked"}, &out)
		return len(out.Events) == 1 && out.Events[0].CodeID == made.AccessCode.AccessCodeID &&
			out.Events[0].Method == "keycode"
	})
	cloud.ChangeCode(0, d.id("Guest"), "920475")
	cloud.EnterPIN(0, "920475")
	apptest.Until(t, "the repaired code", func() bool { return d.PINs(t)["Guest"] == "617384" })
	if status := s.PostAs(t, key, "/access_codes/get", map[string]any{"access_code_id": device}, nil); status == http.StatusOK {
		t.Error("a device is an access code") // the scan needs a refusal
	}
	run.Check(t, s.App, nil)
}

// connectOnPage logs in on a connect page.
func connectOnPage(t *testing.T, s *apptest.Server, key string) {
	t.Helper()
	var page api.ConnectWebviewResponse
	s.PostAs(t, key, "/connect_webviews/create", map[string]any{}, &page)
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, try := range []struct {
		password string
		want     int
	}{{"wrong", http.StatusUnprocessableEntity}, {ttlocktest.Password, http.StatusSeeOther}} {
		form := url.Values{"username": {ttlocktest.Username}, "password": {try.password}}
		res, err := browser.PostForm(page.ConnectWebview.URL+"/"+ttlock.Name, form)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != try.want {
			t.Fatalf("the login answers %d, want %d", res.StatusCode, try.want)
		}
	}
}
