package seam_test

import (
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/vendorstory"
)

// upstreamDoor is the lock of an upstream workspace, whose other clients change codes.
type upstreamDoor struct {
	up     *apptest.Server
	device string
}

// Add programs a code at the keypad.
func (d upstreamDoor) Add(t testing.TB, name, pin string) {
	d.up.Lock(t, d.device).Control(t, http.MethodPost, "/keypad/codes", map[string]string{"name": name, "code": pin})
}

func (d upstreamDoor) codes(t testing.TB) []api.AccessCode {
	t.Helper()
	var managed api.AccessCodesResponse
	if status := d.up.Post(
		t,
		"/access_codes/list",
		map[string]any{"device_id": d.device},
		&managed,
	); status != http.StatusOK {
		t.Fatalf("list the codes upstream: %d", status)
	}
	return managed.AccessCodes
}

func (d upstreamDoor) each(t testing.TB, name, path string, with map[string]any) {
	t.Helper()
	for _, c := range d.codes(t) {
		if domain.Value(c.Name) != name {
			continue
		}
		with["access_code_id"] = c.AccessCodeID
		if status := d.up.Post(t, path, with, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
		return
	}
	t.Fatalf("the code %q is not managed upstream", name)
}

// Change changes the code upstream.
func (d upstreamDoor) Change(t testing.TB, name, pin string) {
	d.each(t, name, "/access_codes/update", map[string]any{"code": pin, "sync": true})
}

// Delete deletes the code upstream.
func (d upstreamDoor) Delete(t testing.TB, name string) {
	d.each(t, name, "/access_codes/delete", map[string]any{"sync": true})
}

// PINs returns the codes in the lock's memory.
func (d upstreamDoor) PINs(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range d.up.Lock(t, d.device).Memory(t) {
		out[c.Name] = c.PIN
	}
	return out
}

// A person connects an upstream workspace, and Terraform manages a code of its lock.
func TestStory(t *testing.T) {
	t.Parallel()
	up := apptest.SharedProcess(t, apptest.WithProfiles("august"))
	key, _ := up.NewKey(t, "downstream")
	base, vendor := judged(t, up.URL), seam.Vendor()
	vendor.Login.Connect = func(entered map[string]string) (adapter.Connection, error) {
		return &seam.Connection{BaseURL: base, APIKey: entered["api_key"]}, nil
	}
	vendorstory.Run(t, vendorstory.Story{
		Connecting: app.Connecting{Vendors: []adapter.Vendor{vendor}},
		Pages:      []map[string]string{{"api_key": key}},
		Door:       upstreamDoor{up, up.Device(t, "august")},
		PINs:       [3]string{"483926", "594837", "615948"},
		Secrets:    map[string]string{key: "api_key"},
	})
}
