package climate

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Setting is what a thermostat is set to. Temperatures are in °C. A command keeps the fields that have no value.
type Setting struct {
	Mode capability.HVACMode `json:"mode,omitempty"`
	Fan  capability.FanMode  `json:"fan,omitempty"`
	Heat *float64            `json:"heat,omitempty"`
	Cool *float64            `json:"cool,omitempty"`
}

// Observed is what a vendor says of a thermostat.
type Observed struct {
	Setting Setting `json:"setting"`
	// Temperature is in °C, and Humidity between 0 and 1; nil if unknown.
	Temperature *float64 `json:"temperature,omitempty"`
	Humidity    *float64 `json:"humidity,omitempty"`
	Heating     *bool    `json:"heating,omitempty"`
	Cooling     *bool    `json:"cooling,omitempty"`
	FanRunning  *bool    `json:"fan_running,omitempty"`
	// AuxiliaryHeat is true while the auxiliary heat runs.
	AuxiliaryHeat bool `json:"auxiliary_heat,omitempty"`
	// Presets are those of the device itself.
	Presets []VendorPreset `json:"presets,omitempty"`
	// ActivePreset is the key of the preset of the device that is in effect; empty: none.
	ActivePreset string `json:"active_preset,omitempty"`
	// At is when the vendor was asked.
	At time.Time `json:"at"`
}

// VendorPreset is a preset that the device itself has.
type VendorPreset struct {
	Key     string  `json:"key"`
	Name    string  `json:"name"`
	Setting Setting `json:"setting"`
}
