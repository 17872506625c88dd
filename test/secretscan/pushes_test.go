package secretscan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki/nukitest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock/ttlocktest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Nuki signs its pushes with a secret of the account. Neither that secret, nor the signatures, nor the tokens of the
// login, nor the PINs in pushes appear anywhere, whether the server accepts or refuses a push.
func TestNukiPushesRevealNothing(t *testing.T) {
	t.Parallel()
	client := adapter.Client{ID: "client", Secret: "client-secret-at-nuki"}
	cloud := nukitest.Start(t, nukitest.Options{Client: client})
	r := newVendorTrial(t, app.Connecting{
		Vendors: []adapter.Vendor{cloud.Vendor(nuki.Timing{Shared: time.Nanosecond, Poll: time.Second})},
		Clients: map[string]adapter.Client{nuki.Name: client},
	})
	r.logIn(nuki.Name, map[string]string{"api_token": "mistyped-token-of-nuki"}, http.StatusUnprocessableEntity)
	r.logIn(nuki.Name, map[string]string{"api_token": nukitest.Token}, http.StatusSeeOther)
	at := r.connectPage() + "/" + nuki.Name + "/authorize"
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Jar: jar}).Get(at) // by Nuki's page
	if err != nil {
		t.Fatal(err)
	}
	r.keepPage(at, res, http.StatusOK)
	if !bytes.Contains(r.pages.Bytes(), []byte("Connected")) {
		t.Fatal("the login on Nuki's page does not connect the account")
	}
	device := r.manage()
	apptest.Until(t, "the subscription", func() bool { return len(cloud.Webhooks()) == 1 })
	to := cloud.Webhooks()[0]
	secret := r.pushSecret(to)
	first := r.learnTokens(to, "")
	cloud.Expire()
	r.post("/connected_accounts/sync", map[string]any{"connected_account_id": r.accountOf(to)}, nil)
	r.learnTokens(to, first)

	lock, guest := cloud.Lock(), r.nukiPIN()
	r.run.Learn("code", guest)
	lock.AddCode(t, "Guest", guest)
	r.awaitCode(device, "Guest")
	lock.EnterPIN(guest)
	r.awaitUnlock("keycode")
	push := func(more string) string {
		return `{"feature":"DEVICE_AUTHS","smartlockAuth":{"name":"Guest","code":` + r.nukiPIN() + `}` + more
	}
	for body, want := range map[string]int{
		push("}"): http.StatusNoContent,
		push(""):  http.StatusNoContent, // it leads to a read of everything
		push(`,"token":"` + strings.Repeat("x", 1<<20) + `"}`): http.StatusRequestEntityTooLarge,
	} {
		r.push(to, body, nukiSigned(nukitest.Sign(secret, []byte(body))), want)
	}
	r.push(to, push("}"), isJSON, http.StatusUnauthorized)
	r.push(to, push("}"), nukiSigned("a-guessed-signature"), http.StatusUnauthorized)
	r.push(to, push("}"), nukiSigned(nukitest.Sign("guess", []byte("{}"))), http.StatusUnauthorized)
	r.push(to+"x", push("}"), nukiSigned(nukitest.Sign(secret, []byte("{}"))), http.StatusNotFound)
	r.learned("signature", 6)
	r.check(guest)
}

func nukiSigned(signature string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "X-Nuki-Signature-Sha256": {signature}}
}

// nukiPIN returns a unique PIN without a zero.
func (r *vendorTrial) nukiPIN() string {
	r.pins++
	return fmt.Sprintf("5839%d%d", r.pins/9+1, r.pins%9+1)
}

// TTLock signs nothing: the URL of its pushes is the secret, and their records have PINs in clear.
func TestTTLockPushesRevealNothing(t *testing.T) {
	t.Parallel()
	cloud := ttlocktest.Start(t, ttlocktest.Options{})
	connecting := app.Connecting{
		Vendors: []adapter.Vendor{ttlock.VendorAt(cloud.URL)},
		Clients: map[string]adapter.Client{
			ttlock.Name: {ID: ttlocktest.ClientID, Secret: ttlocktest.ClientSecret},
		},
	}
	r := newVendorTrial(t, connecting)
	for secret, kind := range ttlocktest.Secrets() {
		r.run.Learn(kind, secret)
	}
	admin := app.Admin{Access: r.App.Access, Connecting: connecting}
	to, err := admin.AppPushURL(t.Context(), ttlock.Name, r.URL)
	if err != nil {
		t.Fatal(err)
	}
	cloud.SetPushURL(to)
	login := map[string]string{"username": ttlocktest.Username, "password": "mistyped-at-ttlock"}
	r.logIn(ttlock.Name, login, http.StatusUnprocessableEntity)
	login["password"] = ttlocktest.Password
	r.logIn(ttlock.Name, login, http.StatusSeeOther)
	device := r.manage()
	guest := r.pin()
	r.run.Learn("code", guest)
	r.post("/access_codes/create", map[string]any{"device_id": device, "name": "Guest", "code": guest}, nil)
	apptest.Until(t, "the code", func() bool { return cloud.CodeID(0, "Guest") != "" })
	cloud.EnterPIN(0, guest)
	r.awaitUnlock("keycode")

	for more, want := range map[string]int{"}]": http.StatusOK, "": http.StatusBadRequest} {
		pin := r.pin()
		r.run.Learn("code", pin)
		now := time.Now().UnixMilli()
		records := fmt.Sprintf(`[{"recordType":4,"success":0,"keyboardPwd":%q,"lockDate":%d`, pin, now)
		form := url.Values{"notifyType": {"1"}, "lockId": {cloud.ID(0)}, "records": {records + more}}.Encode()
		header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		r.push(to, form, header, want)
		r.push(to+"x", form, header, http.StatusNotFound)
		r.push(to, "%zz"+form, header, http.StatusBadRequest)
	}
	cloud.WaitForPushes()
	r.check(guest)
}

// manage waits for the device of the only account, and allows the server to write to it.
func (r *vendorTrial) manage() (device string) {
	r.Helper()
	apptest.Until(r.T, "the device", func() bool {
		var listed api.UnmanagedDevicesResponse
		r.post("/devices/unmanaged/list", map[string]any{}, &listed)
		for _, d := range listed.Devices {
			device = d.DeviceID
		}
		return device != ""
	})
	r.AllowWrites(r.T)
	return device
}

// learnTokens waits until the tokens of the account with a push URL differ from an earlier access token. It learns the
// tokens, and returns the access token.
func (r *vendorTrial) learnTokens(to, former string) string {
	r.Helper()
	var tokens adapter.Tokens
	r.stored(to, adapter.CredentialsSecret, func(data []byte) bool {
		return json.Unmarshal(data, &tokens) == nil && tokens.Access != former
	})
	if !r.run.Learn("access_token", tokens.Access) || !r.run.Learn("refresh_token", tokens.Refresh) {
		r.Fatal("the account has no tokens")
	}
	return tokens.Access
}

// awaitCode waits until the API lists an unmanaged code.
func (r *vendorTrial) awaitCode(device, name string) {
	r.Helper()
	apptest.Until(r.T, "the code of the device", func() bool {
		var listed api.UnmanagedAccessCodesResponse
		r.post("/access_codes/unmanaged/list", map[string]any{"device_id": device}, &listed)
		for _, c := range listed.AccessCodes {
			if c.Name != nil && *c.Name == name {
				return true
			}
		}
		return false
	})
}

// awaitUnlock waits for an event of an unlock.
func (r *vendorTrial) awaitUnlock(method string) {
	r.Helper()
	apptest.Until(r.T, "the event of the unlock", func() bool {
		var listed struct {
			Events []struct {
				Method string `json:"method"`
			} `json:"events"`
		}
		r.post("/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "event_type": "lock.unlocked"}, &listed)
		for _, e := range listed.Events {
			if e.Method == method {
				return true
			}
		}
		return false
	})
}
