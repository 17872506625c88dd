package rest

import (
	"sync"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// providerNames are the vendors that the API has names for and the service can reach, if only in its sandbox.
var providerNames = []struct{ name, display string }{
	{"august", "August"},
	{"igloohome", "igloohome"},
	{"kwikset", "Kwikset"},
	{"nuki", "Nuki"},
	{"salto_ks", "Salto KS"},
	{"schlage", "Schlage"},
	{"smartthings", "SmartThings"},
	{"tedee", "Tedee"},
	{"ttlock", "TTLock"},
	{"yale", "Yale"},
	{"zigbee2mqtt", "Zigbee2MQTT"},
	{"zwave_js", "Z-Wave JS"},
}

// gateways are those whose devices are not simulated.
var gateways = map[string]bool{"zigbee2mqtt": true, "zwave_js": true}

// providerCategory is the kind of all vendors of locks so far.
const providerCategory = "consumer_smartlocks"

// Provider is how people know a vendor or a simulation of several, and the kinds of vendors that it belongs to.
func Provider(name string) (display string, categories []string) {
	if name == access.SandboxAdapter {
		return accountTypes[name].display, []string{"stable", providerCategory}
	}
	for _, p := range deviceProviders() {
		if p.DeviceProviderName == name {
			return p.DisplayName, p.ProviderCategories
		}
	}
	return name, nil
}

// deviceProviders are made once, and not to be changed: each page for logging in asks for all their names.
var deviceProviders = sync.OnceValue(func() []api.DeviceProvider {
	var out []api.DeviceProvider
	for _, p := range providerNames {
		simulated := !gateways[p.name]
		out = append(out, api.DeviceProvider{
			DeviceProviderName: p.name, DisplayName: p.display, ProviderCategories: []string{"stable", providerCategory},
			CanProgramOnlineAccessCodes: new(true), CanRemotelyLock: new(true), CanRemotelyUnlock: new(true), CanUnlockWithCode: new(true),
			CanSimulateConnection: new(simulated), CanSimulateDisconnection: new(simulated), CanSimulateRemoval: new(simulated),
		})
	}
	systems := accountTypes[access.SandboxAccessAdapter]
	return append(out, api.DeviceProvider{DeviceProviderName: systems.name, DisplayName: systems.display, ProviderCategories: []string{"stable", "access_control_systems"}})
})

// toProvider describes the vendor of a device; one that is not known here goes by its stable name.
func toProvider(name string) api.DeviceProviderOfDevice {
	out := api.DeviceProviderOfDevice{DeviceProviderName: name, DisplayName: name, ProviderCategory: providerCategory}
	for _, p := range providerNames {
		if p.name == name {
			out.DisplayName = p.display
		}
	}
	return out
}
