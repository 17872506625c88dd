package spec_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A simulation without a visible effect is rejected immediately instead of waiting in vain.
func TestSimulation_WithoutEffectIsRejected(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	refused := func(kind, path string, more map[string]any) {
		t.Helper()
		params := map[string]any{"device_id": device}
		for name, value := range more {
			params[name] = value
		}
		var f failure
		if status := s.Post(t, path, params, &f); status != http.StatusBadRequest || f.Error.Type != kind {
			t.Errorf("%s: %d %+v", path, status, f.Error)
		}
	}
	ok := func(path string, params map[string]any) {
		t.Helper()
		if status := s.Post(t, path, params, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	code := map[string]any{"name": "Typed in", "code": "3456"}
	ok("/devices/simulate/disconnect", map[string]any{"device_id": device})
	refused("device_offline", "/access_codes/simulate/create_unmanaged_access_code", code)
	ok("/devices/simulate/connect", map[string]any{"device_id": device})

	ok("/devices/simulate/disconnect_from_hub", map[string]any{"device_id": device})
	refused("hub_disconnected", "/devices/simulate/connect", nil)
	ok("/devices/simulate/connect_to_hub", map[string]any{"device_id": device})

	var d api.DeviceResponse
	s.Post(t, "/devices/get", map[string]any{"device_id": device}, &d)
	ok("/connected_accounts/simulate/disconnect", map[string]any{"connected_account_id": d.Device.ConnectedAccountID})
	for path, more := range map[string]map[string]any{
		"/devices/simulate/disconnect": nil, "/devices/simulate/connect": nil, "/devices/simulate/remove": nil,
		"/access_codes/simulate/create_unmanaged_access_code": code,
	} {
		refused("account_disconnected", path, more)
	}
	ok("/devices/get", map[string]any{"device_id": device})
}

// An unmanaged device can be simulated if its flags say so: its events about reachability are emitted.
func TestSimulation_UnmanagedDevices(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "nuki", "schlage"))
	post := func(status int, path, device string, more map[string]any) (f failure) {
		t.Helper()
		in := map[string]any{"device_id": device}
		for name, value := range more {
			in[name] = value
		}
		if got := s.Post(t, path, in, &f); got != status {
			t.Fatalf("%s: %d %+v", path, got, f.Error)
		}
		return f
	}
	unmanaged := func(device string) api.UnmanagedDevice {
		t.Helper()
		var out api.UnmanagedDeviceResponse
		if status := s.Post(
			t,
			"/devices/unmanaged/get",
			map[string]any{"device_id": device},
			&out,
		); status != http.StatusOK {
			t.Fatalf("get the device: %d", status)
		}
		return out.Device
	}
	august, nuki, schlage := s.Device(t, "august"), s.Device(t, "nuki"), s.Device(t, "schlage")
	if status := s.Post(
		t,
		"/devices/report_provider_metadata",
		map[string]any{
			"devices": []any{
				map[string]any{"device_id": schlage, "schlage_metadata": map[string]any{"time_zone": "Europe/Vienna"}},
			},
		},
		nil,
	); status != http.StatusOK {
		t.Fatalf("report the time zone: %d", status)
	}
	for _, device := range []string{august, nuki, schlage} {
		post(http.StatusOK, "/devices/update", device, map[string]any{"is_managed": false})
	}
	d, paid := unmanaged(august), unmanaged(nuki)
	for name, can := range map[string]*bool{
		"disconnection":     d.CanSimulateDisconnection,
		"connection":        d.CanSimulateConnection,
		"removal":           d.CanSimulateRemoval,
		"hub connection":    d.CanSimulateHubConnection,
		"hub disconnection": d.CanSimulateHubDisconnection,
		"auto lock":         d.CanConfigureAutoLock,
		"paid subscription": paid.CanSimulatePaidSubscription,
	} {
		if can == nil || !*can {
			t.Errorf("%s is not promised", name)
		}
	}
	if at := unmanaged(schlage).Location; at.TimeZone != "Europe/Vienna" {
		t.Errorf("it is at %+v", at)
	}
	for _, step := range []struct {
		path   string
		online bool
	}{{"disconnect", false}, {"connect", true}, {"disconnect_from_hub", false}, {"connect_to_hub", true}} {
		post(http.StatusOK, "/devices/simulate/"+step.path, august, nil)
		if got := unmanaged(august); got.Properties.Online != step.online {
			t.Errorf("after %s it is online: %v", step.path, got.Properties.Online)
		}
	}
	post(http.StatusOK, "/devices/simulate/paid_subscription", nuki, map[string]any{"is_expired": true})
	if got := unmanaged(nuki); len(got.Errors) != 1 || got.Errors[0].ErrorCode != "subscription_required" {
		t.Errorf("unpaid it has the errors %+v", got.Errors)
	}
	for path, more := range map[string]map[string]any{
		"/access_codes/simulate/create_unmanaged_access_code": {"name": "Typed in", "code": "3456"},
		"/locks/simulate/keypad_code_entry":                   {"code": "3456"},
		"/locks/simulate/manual_lock_via_keypad":              nil,
	} {
		if f := post(http.StatusBadRequest, path, august, more); f.Error.Type != "device_unmanaged" {
			t.Errorf("%s: %+v", path, f.Error)
		}
	}
	post(http.StatusOK, "/devices/simulate/remove", august, nil)
	post(http.StatusNotFound, "/devices/unmanaged/get", august, nil)
}

// Any text can be typed at a keypad. What is not a code is denied.
func TestSimulation_KeypadInput(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	typed := []string{"", "1", "12a4", "*#", strings.Repeat("7", 300)}
	for _, code := range typed {
		var out api.ActionAttemptResponse
		if status := s.Post(
			t,
			"/locks/simulate/keypad_code_entry",
			map[string]any{"device_id": device, "code": code},
			&out,
		); status != http.StatusOK ||
			out.ActionAttempt.Status != "success" {
			t.Errorf("%.10q: %d %+v", code, status, out.ActionAttempt)
		}
	}
	apptest.Until(t, "they are denied", func() bool { return told(t, s, device, "lock.access_denied") > 0 })
	if n := told(t, s, device, "lock.unlocked"); n > 0 {
		t.Errorf("the door was opened %d times", n)
	}
}
