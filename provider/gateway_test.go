package provider

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/labs/zwave"
)

// TestCodeOfARealGatewayIsAdoptedChangedKeptAndRemoved is the whole story: a code that somebody has programmed at the
// keypad of a Z-Wave lock becomes Terraform's, and the lock's own memory follows.
func TestCodeOfARealGatewayIsAdoptedChangedKeptAndRemoved(t *testing.T) {
	t.Parallel()
	const (
		slot     = 4
		first    = "86420975"
		second   = "97531086"
		meddling = "11223344"
	)
	gateway := zwave.Start(t, zwave.Plain, zwave.Masked)
	lock := gateway.Lease(t, zwave.Plain)
	srv := apptest.Start(t, apptest.WithProfiles("august"))
	admin := app.Admin{Access: srv.App.Access}
	if _, err := admin.Connect(t.Context(), uuid.MustParse(srv.WorkspaceID), "Home", app.ZWaveJS{Config: zwavejs.Config{URL: gateway.URL}}); err != nil {
		t.Fatal(err)
	}

	var device string
	within(t, "the lock appears", func() bool {
		var list api.DevicesResponse
		srv.Post(t, "/devices/list", map[string]any{}, &list)
		for _, d := range list.Devices {
			if d.DeviceType == "zwave_lock" && d.Properties.Manufacturer == "Yale" {
				device = d.DeviceID
			}
		}
		return device != ""
	})

	lock.Program(t, slot, first)
	var code string
	within(t, "its code appears as unmanaged", func() bool {
		for _, c := range srv.UnmanagedCodes(t, device) {
			if c.Code != nil && *c.Code == first {
				code = c.AccessCodeID
			}
		}
		return code != ""
	})

	config := func(pin string) string {
		return required + onServer(srv, accessCodeOn(device, fmt.Sprintf("name = \"Cleaner\"\n  code = %q", pin)))
	}
	w := newWorkspace(t, map[string]string{"main.tf": config(first)})
	w.expect(true, "import", front, code)
	var got api.AccessCodeResponse
	if srv.Post(t, "/access_codes/get", map[string]any{"access_code_id": code}, &got); !got.AccessCode.IsManaged {
		t.Fatalf("after the import: %+v", got.AccessCode)
	}

	w.write("main.tf", config(second))
	w.expect(true, "apply", "-auto-approve")
	if has := lock.State(t).Codes; len(has) != 1 || has[slot].PIN != second {
		t.Fatalf("after the change the lock has %d codes, the new one in the slot: %v", len(has), has[slot].PIN == second)
	}

	lock.Program(t, slot, meddling)
	within(t, "what was changed at the keypad is put right", func() bool { return lock.State(t).Codes[slot].PIN == second })
	within(t, "there is nothing left to do", func() bool {
		srv.Post(t, "/access_codes/get", map[string]any{"access_code_id": code}, &got)
		return got.AccessCode.Status == "set"
	})
	w.expect(true, "plan", "-detailed-exitcode")

	w.expect(true, "destroy", "-auto-approve")
	if has := lock.State(t).Codes; len(has) != 0 {
		t.Fatalf("after the destroy the lock has %d codes", len(has))
	}
}

// within waits for what a gateway and a lock take their time for.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
