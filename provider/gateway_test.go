package provider

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// gatewayLock is a lock behind a real gateway, and what is done at it by hand.
type gatewayLock struct {
	deviceType   string
	manufacturer string
	connection   adapter.Connection
	program      func(slot int, pin string) // at the keypad
	pins         func() map[int]string      // the lock's own memory, by slot
	password     string                     // of the gateway; empty: it has none
}

func TestRealGatewayZWaveJS(t *testing.T) {
	t.Parallel()
	gateway := zwave.Start(t, zwave.Plain, zwave.Masked)
	lock := gateway.Lease(t, zwave.Plain)
	tellStory(
		t,
		gatewayLock{
			deviceType:   "zwave_lock",
			manufacturer: "Yale",
			connection:   &zwavejs.Connection{Config: zwavejs.Config{URL: gateway.URL}},
			program:      func(slot int, pin string) { lock.Program(t, slot, pin) },
			pins: func() map[int]string {
				pins := map[int]string{}
				for slot, code := range lock.State(t).Codes {
					pins[slot] = code.PIN
				}
				return pins
			},
		},
	)
}

func TestRealGatewayZigbee2MQTT(t *testing.T) {
	t.Parallel()
	gateway := zigbee.Start(t, zigbee.Plain)
	lock := gateway.Lease(t, zigbee.Plain)
	user, password := gateway.User(t)
	tellStory(t, gatewayLock{
		deviceType:   "zigbee_lock",
		manufacturer: "Yale",
		connection: &zigbee2mqtt.Connection{
			Config: zigbee2mqtt.Config{
				Broker:   gateway.TLS,
				CA:       gateway.CA,
				Topic:    zigbee.Topic,
				Username: user,
				Password: password,
			},
		},
		program:  func(slot int, pin string) { lock.Program(t, slot, pin) },
		pins:     func() map[int]string { return lock.State(t).Codes },
		password: password,
	})
}

// tellStory is the whole story: Terraform adopts a code that was programmed at the keypad, another one is made by it,
// the lock's own memory follows, and what is of others stays. Nothing of all that tells a PIN, or the gateway's
// password.
func tellStory(t *testing.T, lock gatewayLock) {
	const (
		slot     = 4
		first    = "86420975"
		second   = "97531086"
		created  = "60216021"
		replaced = "81428142"
		meddling = "11223344"
	)
	var run secretscan.Run
	srv := apptest.Start(t, apptest.WithProfiles("august"), run.Configure(t))
	if lock.password != "" && !run.Learn("password", lock.password) {
		t.Fatal("the gateway's password is none to look for")
	}
	run.Learn("code", meddling) // of the others, requests and answers tell
	admin := app.Admin{Access: srv.App.Access}
	if _, err := admin.Connect(t.Context(), uuid.MustParse(srv.WorkspaceID), "Home", lock.connection); err != nil {
		t.Fatal(err)
	}
	var device string
	within(t, "the lock appears", func() bool {
		var list api.DevicesResponse
		srv.Post(t, "/devices/list", map[string]any{}, &list)
		for _, d := range list.Devices {
			if d.DeviceType == lock.deviceType && d.Properties.Manufacturer == lock.manufacturer {
				device = d.DeviceID
			}
		}
		return device != ""
	})
	others := lock.pins()

	lock.program(slot, first)
	var code string
	within(t, "its code appears as unmanaged", func() bool {
		for _, c := range srv.UnmanagedCodes(t, device) {
			if c.Code != nil && *c.Code == first {
				code = c.AccessCodeID
			}
		}
		return code != ""
	})

	config := func(adopted, made string) string {
		return required + onServer(srv, accessCodeOn(device, fmt.Sprintf("name = \"Cleaner\"\n  code = %q", adopted))) +
			fmt.Sprintf(
				"resource \"deviceaccess_access_code\" \"made\" {\n  device_id = %q\n  name = \"Guest\"\n  code = %q\n}\n",
				device,
				made,
			)
	}
	w := newWorkspace(t, map[string]string{"main.tf": config(first, created)})
	w.expect(true, "import", front, code)
	get := func() (got api.AccessCodeResponse) {
		srv.Post(t, "/access_codes/get", map[string]any{"access_code_id": code}, &got)
		return got
	}
	if got := get(); !got.AccessCode.IsManaged {
		t.Fatalf("after the import: %+v", got.AccessCode)
	}

	w.expect(true, "apply", "-auto-approve")
	lock.expect(t, "a code is created", others, slot, first, created)
	w.write("main.tf", config(second, replaced))
	w.expect(true, "apply", "-auto-approve")
	lock.expect(t, "both are changed", others, slot, second, replaced)

	lock.program(slot, meddling)
	within(t, "what was changed at the keypad is put right", func() bool { return lock.pins()[slot] == second })
	within(t, "there is nothing left to do", func() bool { return get().AccessCode.Status == "set" })
	w.expect(true, "plan", "-detailed-exitcode")

	w.expect(true, "destroy", "-auto-approve")
	if has := lock.pins(); !maps.Equal(has, others) {
		t.Fatalf("after the destroy the lock has %d codes, of others are %d", len(has), len(others))
	}
	for _, pin := range others {
		run.Learn("code", pin)
	}
	if n := run.Count("code"); n < 5 {
		t.Errorf("%d PINs are looked for", n)
	}
	run.Check(t, srv.App, map[string][]byte{"what Terraform writes": w.seen.Bytes()})
}

// expect says that the lock has the codes of others, one in the slot, and one more, each once.
func (lock gatewayLock) expect(t *testing.T, when string, others map[int]string, slot int, adopted, made string) {
	t.Helper()
	has := lock.pins()
	if has[slot] != adopted {
		t.Errorf("%s: the slot has another PIN", when)
	}
	delete(has, slot)
	for n, pin := range has {
		if _, other := others[n]; pin == made && !other {
			delete(has, n)
			if maps.Equal(has, others) {
				return
			}
		}
	}
	t.Fatalf(
		"%s: besides the slot the lock has %d codes, %d are others'; they are not those",
		when,
		len(has),
		len(others),
	)
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
