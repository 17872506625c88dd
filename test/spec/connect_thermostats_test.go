package spec_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// A webview offers thermostats if it asks for their capability, their vendors' category, or their vendor.
func TestWebview_OffersThermostats(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	var listed api.DeviceProvidersResponse
	s.Post(t, "/devices/list_device_providers", params{"provider_category": "thermostats"}, &listed)
	var names []string
	for _, p := range listed.DeviceProviders {
		if *p.CanRemotelyLock { // a gateway
			continue
		}
		names = append(names, p.DeviceProviderName)
		if !*p.CanHvacHeat || !*p.CanTurnOffHvac || *p.CanHvacCool == (p.DeviceProviderName == "tado") {
			t.Errorf("the vendor %s is listed as %+v", p.DeviceProviderName, p)
		}
	}
	if !slices.Equal(names, sandbox.ThermostatProfiles()) {
		t.Errorf("the vendors of thermostats are %v", names)
	}
	for name, c := range map[string]struct {
		in           params
		takes        []api.AccountCapability
		ecobee, yale bool
	}{
		"by capability": {params{"accepted_capabilities": []string{"thermostat"}}, []api.AccountCapability{"thermostat"}, true, false},
		"by category":   {params{"provider_category": "thermostats"}, []api.AccountCapability{"thermostat"}, true, false},
		"by vendor":     {params{"accepted_providers": []string{"ecobee"}}, []api.AccountCapability{"thermostat"}, true, false},
		"locks alone":   {nil, []api.AccountCapability{"lock"}, false, true},
	} {
		w := webview(t, s, c.in)
		if !slices.Equal(w.AcceptedCapabilities, c.takes) {
			t.Errorf("%s: takes %v, want %v", name, w.AcceptedCapabilities, c.takes)
		}
		for vendor, want := range map[string]bool{"ecobee": c.ecobee, "yale": c.yale} {
			if got := strings.Contains(shown(t, w.URL+"/"+vendor), "Log in to"); got != want {
				t.Errorf("%s: %s is offered: %v", name, vendor, got)
			}
		}
	}
}

// The owner of a thermostat logs in, and the device appears with its kind.
func TestWebview_LoginConnectsThermostat(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	for _, c := range []struct {
		vendor, person, manufacturer string
	}{{"sensi", "frodo", "sensi"}, {"nest", "jane", "nest"}} {
		w := webview(t, s, params{"accepted_providers": []string{c.vendor}, "wait_for_device_creation": true})
		if body := shown(t, w.URL); !strings.Contains(body, "settings of the thermostats in this account") {
			t.Errorf("%s: the page is %s", c.vendor, body)
		}
		if _, _, body := enter(t, w.URL, c.vendor, mistyped); !strings.Contains(body, "wrong") {
			t.Errorf("%s: after a wrong password, the page is %s", c.vendor, body)
		}
		enter(t, w.URL, c.vendor, as(c.person))
		apptest.Until(t, "the account is connected", func() bool {
			return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized"
		})
		var out api.DevicesResponse
		account := *webviewNow(t, s, w.ConnectWebviewID).ConnectedAccountID
		in := params{"connected_account_id": account, "manufacturer": c.manufacturer}
		if status := s.Post(t, "/thermostats/list", in, &out); status != http.StatusOK || len(out.Devices) != 1 {
			t.Fatalf("%s: %d, the thermostats of the account are %+v", c.vendor, status, out.Devices)
		}
		d := out.Devices[0]
		if d.DeviceType != c.vendor+"_thermostat" ||
			!slices.Equal(d.CapabilitiesSupported[:1], []string{"thermostat"}) ||
			d.Properties.ImageAltText != "A thermostat" ||
			d.DeviceProvider.ProviderCategory != "thermostats" {
			t.Errorf("%s: the thermostat is %+v", c.vendor, d)
		}
		if *d.CanRemotelyLock || *d.CanProgramOnlineAccessCodes || !*d.CanHvacHeatCool || !*d.CanRunThermostatPrograms {
			t.Errorf("%s: the capabilities are %+v", c.vendor, d)
		}
	}
}
