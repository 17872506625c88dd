// Package vendorstory plays the life of a vendor's account: a person connects it on a connect page in Chromium, and
// Terraform adopts a code of the device, changes the code's PIN, and destroys the code. In between, the code changes
// and disappears at the device, and the server restores it. Nothing that the server and Terraform write contains a
// secret. Each vendor's test calls Run.
package vendorstory

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Story is what a vendor brings to its story.
type Story struct {
	// Connecting has the vendor as its first of Vendors, with the address of the vendor's fake, and the operator's
	// Clients if the vendor needs one.
	Connecting app.Connecting
	// Pages are the values that a person enters on the connect page, by name of the field: one map for each step of
	// the login.
	Pages []map[string]string
	// Device is the name of the device. If empty, the account has one device.
	Device string
	// Door is the device.
	Door Door
	// CodeName is the name of the code, as the device stores it. If empty, it is "Caretaker".
	CodeName string
	// PINs are different PINs that the vendor accepts: one that is at the device before Terraform adopts it, one that
	// Terraform sets, and one that replaces it at the device.
	PINs [3]string
	// Secrets are the credentials of the account, by value, with their kinds. Those of Pages with a password field need
	// no entry. No output may contain them.
	Secrets map[string]string
	// Options are further options of the server.
	Options []apptest.Option
}

// Door is a device as its owner sees it: the keypad, or the vendor's app. Its methods bypass the adapter, and return
// once the device has changed.
type Door interface {
	// Add adds a code to the device.
	Add(t testing.TB, name, pin string)
	// Change gives the code with a name another PIN.
	Change(t testing.TB, name, pin string)
	// Delete deletes the code with a name.
	Delete(t testing.TB, name string)
	// PINs returns the PINs in the memory of the device, by the name of their code.
	PINs(t testing.TB) map[string]string
}

// run is the state of a story.
type run struct {
	Story
	t       *testing.T
	scan    secretscan.Run
	server  *apptest.Server
	key     string // API key of the workspace
	device  string
	code    string
	foreign map[string]string // codes of others
}

// Run plays a story. It skips the test without Terraform or Chromium.
func Run(t *testing.T, story Story) {
	t.Helper()
	needPrograms(t)
	if story.CodeName == "" {
		story.CodeName = "Caretaker"
	}
	r := &run{Story: story, t: t}
	r.start()
	r.foreign = r.Door.PINs(t)
	r.Door.Add(t, r.CodeName, r.PINs[0])
	r.logIn()
	r.awaitDevice()
	r.awaitCode()

	w := newWorkspace(t)
	w.write(r.config(r.PINs[0]))
	w.run("import", "deviceaccess_access_code.story", r.device+"/"+r.code)
	w.run("apply", "-auto-approve")
	r.expect("adopted", r.PINs[0])
	w.run("plan", "-detailed-exitcode")

	w.write(r.config(r.PINs[1]))
	w.run("apply", "-auto-approve")
	r.expect("changed by Terraform", r.PINs[1])

	r.Door.Change(t, r.CodeName, r.PINs[2])
	r.await("restored after a change", r.PINs[1])
	r.Door.Delete(t, r.CodeName)
	r.await("restored after a deletion", r.PINs[1])
	w.run("plan", "-detailed-exitcode")

	w.run("destroy", "-auto-approve")
	if now := r.Door.PINs(t); !maps.Equal(now, r.foreign) {
		t.Errorf("after the destroy, the device has %d codes; before the story, it had %d", len(now), len(r.foreign))
	}
	r.scan.Check(t, r.server.App, map[string][]byte{"the output of Terraform": w.output.Bytes()})
}

// start starts the server with a workspace for real devices.
func (r *run) start() {
	r.t.Helper()
	for secret, kind := range r.Secrets {
		r.scan.Learn(kind, secret)
	}
	for i := range r.Connecting.Vendors {
		r.Connecting.Vendors[i].CallsPerHour = 0 // the story reads faster than an account may
	}
	for _, pin := range r.PINs {
		r.scan.Learn("code", pin)
	}
	r.server = apptest.Start(r.t, append(
		[]apptest.Option{
			apptest.WithProfiles("august"),
			apptest.WithConnecting(r.Connecting),
			// Changes at the device follow within a second of Terraform's.
			apptest.WithAccess(func(o *access.Options) { o.ReadLag, o.RereadInterval = time.Second, time.Second }),
			r.scan.Configure(r.t),
		},
		r.Options...,
	)...)
	_, r.key = r.server.RealWorkspace(r.t)
}

func (r *run) vendor() adapter.Vendor { return r.Connecting.Vendors[0] }

func (r *run) post(path string, body map[string]any, out any) {
	r.t.Helper()
	if status := r.server.PostAs(r.t, r.key, path, body, out); status != http.StatusOK {
		r.t.Fatalf("%s: %d", path, status)
	}
}

// allowWrites does what the operator does with `accounts allow-writes`. A client cannot do so.
func (r *run) allowWrites() {
	r.t.Helper()
	body := map[string]any{"device_id": r.device, "is_managed": true}
	if status := r.server.PostAs(r.t, r.key, "/devices/unmanaged/update", body, nil); status != http.StatusForbidden {
		r.t.Fatalf("a client manages a device before the operator allows writes: %d", status)
	}
	r.server.AllowWrites(r.t)
}

// awaitDevice waits for the device. It allows writes if the devices of the vendor start out unmanaged.
func (r *run) awaitDevice() {
	r.t.Helper()
	readOnly := r.vendor().Verification.IsReadOnly()
	path := "/devices/list"
	if readOnly {
		path = "/devices/unmanaged/list"
	}
	testenv.Until(r.t, "the device", func() bool {
		var listed struct {
			Devices []struct {
				ID         string `json:"device_id"`
				Properties struct {
					Name string `json:"name"`
				} `json:"properties"`
			} `json:"devices"`
		}
		r.post(path, map[string]any{}, &listed)
		for _, d := range listed.Devices {
			if r.Device == "" || d.Properties.Name == r.Device {
				r.device = d.ID
			}
		}
		return r.device != ""
	})
	if readOnly {
		r.allowWrites()
	}
}

// awaitCode waits for the code of the device.
func (r *run) awaitCode() {
	r.t.Helper()
	testenv.Until(r.t, "the code of the device", func() bool {
		var listed api.UnmanagedAccessCodesResponse
		r.post("/access_codes/unmanaged/list", map[string]any{"device_id": r.device}, &listed)
		for _, c := range listed.AccessCodes {
			if domain.Value(c.Name) == r.CodeName {
				r.code = c.AccessCodeID
			}
		}
		return r.code != ""
	})
}

// holds reports whether the device has the code with a PIN, and all codes of others.
func (r *run) holds(pin string) bool {
	now := r.Door.PINs(r.t)
	has := now[r.CodeName] == pin
	delete(now, r.CodeName)
	return has && maps.Equal(now, r.foreign)
}

func (r *run) expect(what, pin string) {
	r.t.Helper()
	if !r.holds(pin) {
		r.t.Fatalf("the code is %s, but the device has other codes", what)
	}
}

// await waits until the device has the code again, and until the server knows.
func (r *run) await(what, pin string) {
	r.t.Helper()
	testenv.Until(r.t, "the code is "+what, func() bool { return r.holds(pin) })
	testenv.Until(r.t, "the code is set, "+what, func() bool {
		var got api.AccessCodeResponse
		r.post("/access_codes/get", map[string]any{"access_code_id": r.code}, &got)
		return got.AccessCode.Status == "set"
	})
}
