package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// aftermath is a lock with two codes that Terraform has made, one with a PIN of its configuration, which the server
// does not know any more.
type aftermath struct {
	*workspace
	lock   *apptest.Lock
	device string
	pins   map[string]string // by label
	found  map[string]string // the identifiers that the codes have now
}

func newAftermath(t *testing.T) aftermath {
	t.Helper()
	srv := apptest.Start(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	a := aftermath{
		lock:   srv.Lock(t, device),
		device: device,
		pins:   map[string]string{},
		found:  map[string]string{},
	}
	code := func(label, more string) string {
		return strings.Replace(accessCodeOn(device, "name = \""+label+"\"\n"+more), `"front"`, `"`+label+`"`, 1)
	}
	a.workspace = newWorkspace(
		t,
		map[string]string{"main.tf": required + onServer(srv, code("given", `code = "975310"`)+code("generated", ""))},
	)
	a.expect(true, "apply", "-auto-approve")
	for _, c := range a.lock.Memory(t) {
		if c.Name == "given" || c.Name == "generated" {
			a.pins[c.Name] = c.PIN
		}
	}
	forget(t, srv, device)
	for _, c := range srv.UnmanagedCodes(t, device) {
		for label, pin := range a.pins {
			if c.Code != nil && *c.Code == pin {
				a.found[label] = c.AccessCodeID
			}
		}
	}
	return a
}

// imports writes an import block for each code.
func (a aftermath) imports() {
	blocks := ""
	for label, id := range a.found {
		blocks += fmt.Sprintf(
			"import {\n  to = deviceaccess_access_code.%s\n  id = \"%s/%s\"\n}\n",
			label,
			a.device,
			id,
		)
	}
	a.write("imports.tf", blocks)
}

// A server that was restored from a backup does not know what Terraform has made since, and finds it on the lock as
// an unmanaged code. As long as Terraform's state has it Terraform passes over import blocks; once the state is
// refreshed it is imported as any other code, and PINs stay.
func TestServerCodesOfAfterABackupAreImported(t *testing.T) {
	t.Parallel()
	a := newAftermath(t)
	before := len(a.lock.Memory(t))
	a.imports()
	expectSaid(t, "the plan", a.plain("plan"), "2 to add, 0 to change, 0 to destroy")
	a.expect(true, "apply", "-refresh-only", "-auto-approve")
	expectSaid(t, "the plan after that", a.plain("plan"), "2 to import, 0 to add, 2 to change, 0 to destroy")
	a.expect(true, "apply", "-auto-approve")
	for label, pin := range a.pins {
		if on := a.lock.Memory(t); !a.lock.Has(t, pin) || len(on) != before {
			t.Errorf("%s has another PIN, or the lock has %d codes and had %d", label, len(on), before)
		}
	}
	a.expect(true, "plan", "-detailed-exitcode")
}

// Applied without that, a PIN of the configuration is refused with what to do, which can be done then; of a PIN that
// the server chooses there are two.
func TestServerCodesOfAfterABackupAreNotMadeTwice(t *testing.T) {
	t.Parallel()
	a := newAftermath(t)
	before := len(a.lock.Memory(t))
	from := a.seen.Len()
	a.expect(false, "apply", "-auto-approve")
	expectSaid(
		t,
		"the apply",
		plainly(a.seen.String()[from:]),
		"duplicate_access_code",
		a.found["given"],
		"import it as `<device_id>/<access_code_id>`",
	)
	if n := len(a.lock.Memory(t)); n != before+1 || !a.lock.Has(t, a.pins["generated"]) {
		t.Errorf("the lock has %d codes and had %d, or the PIN of before opens no more", n, before)
	}
	delete(a.found, "generated")
	a.imports()
	expectSaid(t, "the plan after that", a.plain("plan"), "1 to import, 0 to add, 1 to change, 0 to destroy")
	a.expect(true, "apply", "-auto-approve")
	if n := len(a.lock.Memory(t)); n != before+1 || !a.lock.Has(t, a.pins["given"]) {
		t.Errorf("after the import the lock has %d codes and had %d, or the PIN opens no more", n, before)
	}
}

// forget has the server not know its codes any more, as one that is restored from a backup of before, and find them
// on the lock.
func forget(t *testing.T, srv *apptest.Server, device string) {
	t.Helper()
	var managed api.AccessCodesResponse
	if status := srv.Post(
		t,
		"/access_codes/list",
		map[string]any{"device_id": device},
		&managed,
	); status != http.StatusOK {
		t.Fatalf("list the codes: %d", status)
	}
	before := len(srv.UnmanagedCodes(t, device))
	srv.Exec(t, "delete from access_codes where device_id = $1 and is_managed", device)
	var of api.DeviceResponse
	srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &of)
	srv.Post(t, "/connected_accounts/sync", map[string]any{"connected_account_id": of.Device.ConnectedAccountID}, nil)
	apptest.Until(t, "the codes are found on the lock", func() bool {
		return len(srv.UnmanagedCodes(t, device)) == before+len(managed.AccessCodes)
	})
}
