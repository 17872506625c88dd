package spec_test

import (
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// What nobody would notice is refused at once, and not after a wait in vain.
func TestSimulationsThatWouldNotBeNoticedAreRefused(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
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
