package rest

import (
	"sync"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
)

// providerNames are the vendors that the API names and the service supports, at least in sandbox workspaces, with the
// capabilities that not all of them have.
var providerNames = []struct {
	name, display string
	gateway       bool // its devices are not simulated
	offlineCodes  bool
	autoLock      bool
	hub           bool // devices are reached through a hub
	paid          bool // codes may require a paid subscription
}{
	{
		name:     "august",
		display:  "August",
		autoLock: true,
		hub:      true,
	},
	{
		name:         "igloohome",
		display:      "igloohome",
		offlineCodes: true,
		hub:          true,
	},
	{name: "kwikset", display: "Kwikset"},
	{
		name:     "nuki",
		display:  "Nuki",
		autoLock: true,
		paid:     true,
	},
	{name: "salto_ks", display: "Salto KS"},
	{name: "schlage", display: "Schlage", autoLock: true},
	{name: "smartthings", display: "SmartThings"},
	{name: "tedee", display: "Tedee", autoLock: true},
	{
		name:     "ttlock",
		display:  "TTLock",
		autoLock: true,
		hub:      true,
	},
	{name: "yale", display: "Yale", autoLock: true},
	{name: "zigbee2mqtt", display: "Zigbee2MQTT", gateway: true},
	{name: "zwave_js", display: "Z-Wave JS", gateway: true},
}

// providerCategory is the category of all supported vendors of locks.
const providerCategory = "consumer_smartlocks"

// Provider returns the display name and the categories of a vendor or a simulated vendor.
func Provider(name string) (display string, categories []string) {
	if name == account.SandboxAdapter {
		return accountTypes[name].display, []string{"stable", providerCategory}
	}
	for _, p := range deviceProviders() {
		if p.DeviceProviderName == name {
			return p.DisplayName, p.ProviderCategories
		}
	}
	return name, nil
}

// deviceProviders is computed once, because each login page needs all names. Callers must not change it.
var deviceProviders = sync.OnceValue(func() []api.DeviceProvider {
	var out []api.DeviceProvider
	for _, p := range providerNames {
		simulated := !p.gateway
		out = append(out, api.DeviceProvider{
			DeviceProviderName:           p.name,
			DisplayName:                  p.display,
			ImageURL:                     devicePicture,
			ProviderCategories:           []string{"stable", providerCategory},
			CanProgramOnlineAccessCodes:  new(true),
			CanProgramOfflineAccessCodes: new(p.offlineCodes),
			CanUnlockWithCode:            new(true),
			CanRemotelyLock:              new(true),
			CanRemotelyUnlock:            new(true),
			CanConfigureAutoLock:         new(p.autoLock),
			CanSimulateConnection:        new(simulated),
			CanSimulateDisconnection:     new(simulated),
			CanSimulateRemoval:           new(simulated),
			CanSimulateHubConnection:     new(p.hub),
			CanSimulateHubDisconnection:  new(p.hub),
			CanSimulatePaidSubscription:  new(p.paid),
		})
	}
	for _, p := range noiseProviders {
		out = append(out, api.DeviceProvider{
			DeviceProviderName:       p.name,
			DisplayName:              p.display,
			ImageURL:                 noiseSensorPicture,
			ProviderCategories:       []string{"stable", noiseCategory},
			CanSimulateConnection:    new(true),
			CanSimulateDisconnection: new(true),
			CanSimulateRemoval:       new(true),
		})
	}
	systems := accountTypes[account.SandboxAccessAdapter]
	return append(out, api.DeviceProvider{
		DeviceProviderName: systems.name,
		DisplayName:        systems.display,
		ImageURL:           systemPicture,
		ProviderCategories: []string{"stable", "access_control_systems"},
	})
})

// toProvider describes the vendor of a device. An unknown vendor is shown by its stable name.
func toProvider(name string) api.DeviceProviderOfDevice {
	out := api.DeviceProviderOfDevice{DeviceProviderName: name, DisplayName: name, ProviderCategory: providerCategory}
	for _, p := range providerNames {
		if p.name == name {
			out.DisplayName = p.display
		}
	}
	for _, p := range noiseProviders {
		if p.name == name {
			out.DisplayName, out.ProviderCategory = p.display, noiseCategory
		}
	}
	return out
}
