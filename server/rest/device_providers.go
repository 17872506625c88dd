package rest

import (
	"slices"
	"sync"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// vendors are the vendors that the API names and the service supports, at least in sandbox workspaces, with the
// capabilities of their devices.
var vendors = []struct {
	name, display string
	category      string
	caps          capability.Set
}{
	{"august", "August", lockCategory, lockWith(capability.Set{Simulated: true, AutoLock: true, Hub: true})},
	{"ecobee", "ecobee", thermostatCategory, thermostatWith(fourModes...)},
	{"honeywell_resideo", "Honeywell Resideo", thermostatCategory, thermostatWith(fourModes...)},
	{"igloohome", "igloohome", lockCategory, lockWith(capability.Set{Simulated: true, OfflineCodes: true, Hub: true})},
	{"kwikset", "Kwikset", lockCategory, lockWith(capability.Set{Simulated: true})},
	{"minut", "Minut", noiseCategory, simulatedNoiseSensor},
	{"nest", "Google Nest", thermostatCategory, thermostatWith(append(slices.Clone(fourModes), capability.Eco)...)},
	{"noiseaware", "NoiseAware", noiseCategory, simulatedNoiseSensor},
	{"nuki", "Nuki", lockCategory, lockWith(capability.Set{Simulated: true, AutoLock: true, Subscription: true})},
	{"salto_ks", "Salto KS", lockCategory, lockWith(capability.Set{Simulated: true})},
	{"schlage", "Schlage", lockCategory, lockWith(capability.Set{Simulated: true, AutoLock: true})},
	{"sensi", "Sensi", thermostatCategory, thermostatWith(fourModes...)},
	{"smartthings", "SmartThings", lockCategory, lockWith(capability.Set{Simulated: true})},
	{"tado", "tado", thermostatCategory, thermostatWith(capability.Off, capability.Heat)},
	{"tedee", "Tedee", lockCategory, lockWith(capability.Set{Simulated: true, AutoLock: true})},
	{"ttlock", "TTLock", lockCategory, lockWith(capability.Set{Simulated: true, AutoLock: true, Hub: true})},
	{"yale", "Yale", lockCategory, lockWith(capability.Set{Simulated: true, AutoLock: true})},
	{"zigbee2mqtt", "Zigbee2MQTT", lockCategory, lockWith(ofGateways(fourModes...))},
	{"zwave_js", "Z-Wave JS", lockCategory, lockWith(ofGateways(append(slices.Clone(fourModes), capability.Eco)...))},
}

// Categories of vendors.
const (
	lockCategory       = "consumer_smartlocks"
	thermostatCategory = "thermostats"
	noiseCategory      = "noise_sensors"
)

// fourModes are the modes of most thermostats.
var fourModes = []capability.HVACMode{capability.Off, capability.Heat, capability.Cool, capability.HeatCool}

// lockWith adds the capabilities that all vendors of locks have.
func lockWith(caps capability.Set) capability.Set {
	caps.Lock, caps.Unlock, caps.OnlineCodes = true, true, true
	return caps
}

// ofGateways returns the capabilities of the thermostats behind gateways.
func ofGateways(modes ...capability.HVACMode) capability.Set {
	return capability.Set{Thermostat: &capability.Thermostat{Modes: modes}}
}

// thermostatWith returns the capabilities of simulated thermostats with the modes.
func thermostatWith(modes ...capability.HVACMode) capability.Set {
	return capability.Set{Simulated: true, Thermostat: &capability.Thermostat{Modes: modes}}
}

var simulatedNoiseSensor = capability.Set{Simulated: true, NoiseSensor: &capability.NoiseSensor{}}

// Provider returns the display name and the categories of a vendor or a simulated vendor.
func Provider(name string) (display string, categories []string) {
	if name == account.SandboxAdapter {
		return accountTypes[name].display, []string{"stable", lockCategory}
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
	for _, p := range vendors {
		can := canFlags(p.caps)
		kind, categories := p.caps.Kind(), []string{"stable", p.category}
		if p.category == lockCategory && kind == "thermostat" { // a gateway has both
			kind, categories = "lock", append(categories, thermostatCategory)
		}
		picture, _ := pictureOf(kind)
		out = append(out, api.DeviceProvider{
			DeviceProviderName: p.name,
			DisplayName:        p.display,
			ImageURL:           picture,
			ProviderCategories: categories,

			CanProgramOnlineAccessCodes:  can("can_program_online_access_codes"),
			CanProgramOfflineAccessCodes: can("can_program_offline_access_codes"),
			CanUnlockWithCode:            can("can_unlock_with_code"),
			CanRemotelyLock:              can("can_remotely_lock"),
			CanRemotelyUnlock:            can("can_remotely_unlock"),
			CanConfigureAutoLock:         can("can_configure_auto_lock"),
			CanSimulateConnection:        can("can_simulate_connection"),
			CanSimulateDisconnection:     can("can_simulate_disconnection"),
			CanSimulateRemoval:           can("can_simulate_removal"),
			CanSimulateHubConnection:     can("can_simulate_hub_connection"),
			CanSimulateHubDisconnection:  can("can_simulate_hub_disconnection"),
			CanSimulatePaidSubscription:  can("can_simulate_paid_subscription"),
			CanHvacHeat:                  can("can_hvac_heat"),
			CanHvacCool:                  can("can_hvac_cool"),
			CanHvacHeatCool:              can("can_hvac_heat_cool"),
			CanTurnOffHvac:               can("can_turn_off_hvac"),
			CanRunThermostatPrograms:     can("can_run_thermostat_programs"),
			CanProgramThermostatProgramsAsDifferentEachDay: can(
				"can_program_thermostat_programs_as_different_each_day",
			),
			CanProgramThermostatProgramsAsSameEachDay:    can("can_program_thermostat_programs_as_same_each_day"),
			CanProgramThermostatProgramsAsWeekdayWeekend: can("can_program_thermostat_programs_as_weekday_weekend"),
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

// toProvider describes the vendor of a device of a kind. An unknown vendor is shown by its stable name.
func toProvider(name, kind string) api.DeviceProviderOfDevice {
	out := api.DeviceProviderOfDevice{DeviceProviderName: name, DisplayName: name, ProviderCategory: lockCategory}
	for _, p := range vendors {
		if p.name == name {
			out.DisplayName, out.ProviderCategory = p.display, p.category
		}
	}
	if kind == "thermostat" {
		out.ProviderCategory = thermostatCategory
	}
	return out
}
