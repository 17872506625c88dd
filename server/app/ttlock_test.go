package app_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock/ttlocktest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// ttlockAccount is a workspace with an account of a simulated TTLock cloud, which pushes to the server.
type ttlockAccount struct {
	t      *testing.T
	cloud  *ttlocktest.Server
	server *apptest.Server
	key    string
	device string
}

func connectTTLock(t *testing.T, run *secretscan.Run) *ttlockAccount {
	t.Helper()
	a := &ttlockAccount{t: t, cloud: ttlocktest.Start(t, ttlocktest.Options{DuplicatePushes: true})}
	in := app.Connecting{
		Vendors: []adapter.Vendor{ttlock.VendorAt(a.cloud.URL)},
		Clients: map[string]adapter.Client{
			ttlock.Name: {ID: ttlocktest.ClientID, Secret: ttlocktest.ClientSecret},
		},
	}
	a.server = apptest.Start(t, run.Configure(t), apptest.WithProfiles("august"), apptest.WithConnecting(in))
	a.key = realWorkspace(t, a.server)
	admin := app.Admin{Access: a.server.App.Access, Connecting: in}
	to, err := admin.AppPushURL(t.Context(), ttlock.Name, a.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	a.cloud.SetPushURL(to)
	a.logIn("wrong", http.StatusUnprocessableEntity)
	a.logIn(ttlocktest.Password, http.StatusSeeOther)
	apptest.Until(t, "the lock", func() bool {
		var listed api.UnmanagedDevicesResponse
		a.post("/devices/unmanaged/list", map[string]any{}, &listed)
		for _, d := range listed.Devices {
			a.device = d.DeviceID
		}
		return a.device != ""
	})
	a.server.AllowWrites(t)
	return a
}

func (a *ttlockAccount) post(path string, body map[string]any, out any) {
	a.t.Helper()
	if status := a.server.PostAs(a.t, a.key, path, body, out); status != http.StatusOK {
		a.t.Fatalf("%s: %d", path, status)
	}
}

// logIn enters a password on a connect page.
func (a *ttlockAccount) logIn(password string, want int) {
	a.t.Helper()
	var page api.ConnectWebviewResponse
	a.post("/connect_webviews/create", map[string]any{}, &page)
	form := url.Values{"username": {ttlocktest.Username}, "password": {password}}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := browser.PostForm(page.ConnectWebview.URL+"/"+ttlock.Name, form)
	if err != nil {
		a.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != want {
		a.t.Fatalf("the login answers %d, want %d", res.StatusCode, want)
	}
}

// has reports whether the lock has a code with a PIN.
func (a *ttlockAccount) has(pin string) bool {
	return slices.ContainsFunc(a.cloud.Codes(0), func(c ttlocktest.Code) bool { return c.PIN == pin })
}

// Pushes to the operator's application say who opened the door, and that a code was changed in the app. The PINs in them
// stay outside. Each push arrives twice.
func TestTTLock_Pushes(t *testing.T) {
	t.Parallel()
	var run secretscan.Run
	for value, kind := range ttlocktest.Secrets() {
		run.Learn(kind, value)
	}
	const guest, changed = "617384", "920475"
	run.Learn("code", guest)
	run.Learn("code", changed)
	a := connectTTLock(t, &run)
	var made api.AccessCodeResponse
	a.post("/access_codes/create", map[string]any{"device_id": a.device, "name": "Guest", "code": guest}, &made)
	apptest.Until(t, "the code", func() bool { return a.has(guest) })
	a.cloud.EnterPIN(0, guest)
	apptest.Until(t, "one event of the entry", func() bool {
		var out struct {
			Events []struct {
				CodeID string `json:"access_code_id"`
				Method string `json:"method"`
			} `json:"events"`
		}
		since := time.Now().Add(-time.Hour).Format(time.RFC3339)
		a.post("/events/list", map[string]any{"since": since, "event_type": "lock.unlocked"}, &out)
		return len(out.Events) == 1 && out.Events[0].CodeID == made.AccessCode.AccessCodeID &&
			out.Events[0].Method == "keycode"
	})
	a.cloud.ChangeCode(0, a.cloud.CodeID(0, "Guest"), changed)
	a.cloud.EnterPIN(0, changed)
	apptest.Until(t, "the repaired code", func() bool { return a.has(guest) })
	refused := a.server.PostAs(t, a.key, "/access_codes/get", map[string]any{"access_code_id": a.device}, nil)
	if refused == http.StatusOK { // the scan needs a refusal
		t.Error("a device is an access code")
	}
	run.Check(t, a.server.App, nil)
}
