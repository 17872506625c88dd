package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// Every simulated vendor is listed, under the name that its devices have.
func TestEverySimulatedVendorIsKnown(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Concat(
		sandbox.Profiles(),
		sandbox.ThermostatProfiles(),
		[]string{sandbox.Everything, sandbox.AccessSystems},
	) {
		if display, categories := rest.Provider(
			name,
		); display == name && !slices.Contains([]string{"ecobee", "igloohome", "tado"}, name) ||
			!slices.Contains(categories, "stable") {
			t.Errorf("%s is called %q, and of the kinds %v", name, display, categories)
		}
	}
}

// The listed capabilities of a vendor are those of its devices.
func TestVendorCapabilitiesMatchDevices(t *testing.T) {
	t.Parallel()
	profiles := slices.Concat(sandbox.Profiles(), sandbox.ThermostatProfiles())
	s := apptest.Start(t, apptest.WithProfiles(profiles...))
	_, listed := call(t, s, http.MethodPost, "/devices/list_device_providers", in{})
	vendors := map[any]in{}
	for _, v := range listed["device_providers"].([]any) {
		vendors[v.(in)["device_provider_name"]] = v.(in)
	}
	_, listed = call(t, s, http.MethodPost, "/devices/list", in{})
	devices := listed["devices"].([]any)
	if len(devices) != len(profiles) {
		t.Fatalf("%d devices", len(devices))
	}
	for _, d := range devices {
		name := d.(in)["device_provider"].(in)["device_provider_name"]
		for flag, can := range d.(in) {
			if strings.HasPrefix(flag, "can_") && vendors[name][flag] != can {
				t.Errorf("%s is listed with %s %v, and has a device with %v", name, flag, vendors[name][flag], can)
			}
		}
		category := "consumer_smartlocks"
		if slices.Contains(sandbox.ThermostatProfiles(), name.(string)) {
			category = "thermostats"
		}
		if got := d.(in)["device_provider"].(in)["provider_category"]; got != category {
			t.Errorf("a device of %s has the category %v", name, got)
		}
	}
}
