package adapter

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// ThermostatController is implemented by adapters whose devices can be thermostats (Capabilities.Thermostat).
// Accepted means that the device has not applied the setting yet; Device shows when it has. Repeating a call has no
// further effect. It fails like Device, with Offline, with Invalid when the device does not accept the setting, with
// NotSupported when the device lacks the mode, and with Unconfirmed when the outcome is unknown.
type ThermostatController interface {
	// SetThermostat writes a setting. Fields without a value stay as they are on the device.
	SetThermostat(ctx context.Context, device DeviceRef, setting ThermostatSetting) (State, error)
}

// ThermostatSetting is what a thermostat is set to. Temperatures are in °C. As an observation, a field without a value
// is unknown, or the device has none.
type ThermostatSetting struct {
	Mode capability.HVACMode
	Fan  capability.FanMode
	// Heat and Cool are the set points of the modes that heat and cool.
	Heat, Cool *float64
}

// Thermostat is the observed state of a thermostat.
type Thermostat struct {
	Setting ThermostatSetting
	// Temperature is in °C; nil when unknown.
	Temperature *float64
	// Humidity is between 0 and 1; nil when unknown.
	Humidity *float64
	// Heating, Cooling, and FanRunning say what runs now; nil when unknown.
	Heating, Cooling, FanRunning *bool
	// AuxiliaryHeat means that the auxiliary heat runs.
	AuxiliaryHeat bool
	// Presets are the settings that the device itself has names for.
	Presets []ThermostatPreset
	// ActivePreset is the Key of the one in effect; empty: none.
	ActivePreset string
}

// ThermostatPreset is a setting that the device itself has a name for, such as "home". It cannot be changed through
// the server.
type ThermostatPreset struct {
	Key, Name string
	Setting   ThermostatSetting
}

// ThermostatSimulator is implemented by adapters of simulated thermostats. Its methods fail with NotSupported for an
// account of real devices and for another kind of device.
type ThermostatSimulator interface {
	// AdjustThermostat changes the setting as a person does at the device.
	AdjustThermostat(ctx context.Context, device DeviceRef, setting ThermostatSetting) error
	// SetTemperature changes the temperature in the room to a number of °C.
	SetTemperature(ctx context.Context, device DeviceRef, celsius float64) error
}
