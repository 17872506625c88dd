// Package capability says what one device can do: an adapter determines it, the domain decides by it, and the edges
// show it. It must not know vendors, the database or HTTP.
package capability

import (
	"slices"
	"time"
)

// Set holds the capabilities of one device. They belong to a device, not to a vendor. Its JSON is stored with the
// device.
type Set struct {
	// Lock and Unlock mean that the device can be locked and unlocked remotely.
	Lock   bool `json:"lock,omitempty"`
	Unlock bool `json:"unlock,omitempty"`
	// AutoLock means that the device can lock itself after a delay.
	AutoLock bool `json:"auto_lock,omitempty"`
	// Hub means that the device connects through a hub.
	Hub bool `json:"hub,omitempty"`
	// Subscription means that codes may require a paid plan of the vendor.
	Subscription bool `json:"subscription,omitempty"`
	// Simulated means that the device exists in the sandbox only.
	Simulated bool `json:"simulated,omitempty"`
	// Unverified says what the device's adapter was tested with if it never met the vendor, such as "from the vendor's
	// documentation of 2026-05, never against the vendor".
	Unverified string `json:"unverified,omitempty"`

	// OnlineCodes means that codes can be written remotely.
	OnlineCodes bool `json:"online_codes,omitempty"`
	// OfflineCodes means that the vendor issues codes that the device accepts without a connection.
	OfflineCodes bool `json:"offline_codes,omitempty"`
	// ListCodes means that existing codes can be read.
	ListCodes bool `json:"list_codes,omitempty"`
	// DeleteUnmanaged means that codes added outside the server can be deleted.
	DeleteUnmanaged bool `json:"delete_unmanaged,omitempty"`
	// ModifyInPlace means that a code on the device can be changed; otherwise it is deleted, then created.
	ModifyInPlace bool `json:"modify_in_place,omitempty"`
	// PINVisible means that the codes on the device are read with their PINs.
	PINVisible bool `json:"pin_visible,omitempty"`
	// ProviderPIN means that the vendor chooses the PIN of a code.
	ProviderPIN bool `json:"provider_pin,omitempty"`
	// NativeSchedule means that the device itself applies the time frame of a code.
	NativeSchedule bool    `json:"native_schedule,omitempty"`
	Convert        Convert `json:"convert,omitempty"`
	Confirm        Confirm `json:"confirm,omitempty"`
	// CodeLengths lists the accepted PIN lengths in ascending order.
	CodeLengths []int        `json:"code_lengths,omitempty"`
	Constraints []Constraint `json:"constraints,omitempty"`
	// NameCharacters says which characters the names of codes may have.
	NameCharacters NameCharacters `json:"name_characters,omitempty"`
	// MaxCodes is the number of codes that the device holds; 0 when unknown.
	MaxCodes int `json:"max_codes,omitempty"`
	// MinWriteGap is the minimum time between two writes.
	MinWriteGap time.Duration `json:"min_write_gap,omitempty"`

	// Thermostat is set for thermostats, and NoiseSensor for noise sensors. All other devices are locks.
	Thermostat  *Thermostat  `json:"thermostat,omitempty"`
	NoiseSensor *NoiseSensor `json:"noise_sensor,omitempty"`

	// Facts about the model; nil when the vendor does not report them.

	// DirectPower says whether the device has another power supply than its battery.
	DirectPower *bool `json:"direct_power,omitempty"`
	// BuiltInKeypad says whether the device itself has a keypad.
	BuiltInKeypad *bool `json:"built_in_keypad,omitempty"`
	// AccessoryKeypad says whether a separate keypad can be connected to the device.
	AccessoryKeypad *bool `json:"accessory_keypad,omitempty"`
	// EntryEvents says whether the device reports which code opened the door.
	EntryEvents *bool `json:"entry_events,omitempty"`
}

// Convert says how a code that exists on the device can become managed.
type Convert string

const (
	// ConvertNever means that the code cannot become managed.
	ConvertNever Convert = "never"
	// ConvertAdopt means that the PIN is readable, so that no write is necessary.
	ConvertAdopt Convert = "adopt"
	// ConvertRewrite means that the PIN is hidden and the caller must supply a new one.
	ConvertRewrite Convert = "rewrite"
)

// Confirm says how the outcome of a write becomes known.
type Confirm string

const (
	// ConfirmSync means that the response to the write comes from the device.
	ConfirmSync Confirm = "sync"
	// ConfirmReadBack means that the vendor accepts the write and a later list of codes shows its outcome.
	ConfirmReadBack Confirm = "read_back"
)

// NameCharacters is a set of characters. The empty set stands for all that can be shown.
type NameCharacters string

// NamesAlphanumeric means ASCII letters, digits, and spaces.
const NamesAlphanumeric NameCharacters = "alphanumeric"

// Constraint restricts the PINs or names that a device accepts. Type is a constraint_type of the API, such as
// "no_zeros". MinLength and MaxLength apply to "name_length"; 0 means no bound.
type Constraint struct {
	Type      string `json:"type"`
	MinLength int    `json:"min_length,omitempty"`
	MaxLength int    `json:"max_length,omitempty"`
}

// Convertible reports whether unmanaged codes can become managed.
func (s Set) Convertible() bool { return s.Convert == ConvertAdopt }

// RecreateToChange reports whether a code changes by being deleted and created again.
func (s Set) RecreateToChange() bool { return s.OnlineCodes && !s.ModifyInPlace }

// HasBackupPool reports whether the device can hold spare codes.
func (s Set) HasBackupPool() bool { return s.OnlineCodes }

// StartsInFuture reports whether the device refuses time frames that have started.
func (s Set) StartsInFuture() bool {
	return slices.ContainsFunc(s.Constraints, func(c Constraint) bool { return c.Type == "start_date_in_future" })
}

// Accepted returns the accepted_capability of the API for the kind of the device: lock, thermostat, or noise_sensor.
func (s Set) Accepted() string {
	if s.NoiseSensor != nil {
		return "noise_sensor"
	}
	return s.Kind()
}

// Kind returns the kind of the device in the API's capabilities_supported: lock, thermostat, or noise_detection.
func (s Set) Kind() string {
	switch {
	case s.Thermostat != nil:
		return "thermostat"
	case s.NoiseSensor != nil:
		return "noise_detection"
	default:
		return "lock"
	}
}

// hvacModes returns the modes of a thermostat; nil for other devices.
func (s Set) hvacModes() []HVACMode {
	if s.Thermostat == nil {
		return nil
	}
	return s.Thermostat.Modes
}

// Flags returns the names of the API's capability flags that are true.
func (s Set) Flags() []string {
	flags := make([]string, 0, 12)
	modes := s.hvacModes()
	for _, f := range [...]struct {
		name string
		on   bool
	}{
		{"can_remotely_lock", s.Lock},
		{"can_remotely_unlock", s.Unlock},
		{"can_program_online_access_codes", s.OnlineCodes},
		{"can_program_offline_access_codes", s.OfflineCodes},
		{"can_unlock_with_code", s.OnlineCodes || s.OfflineCodes},
		{"can_configure_auto_lock", s.AutoLock},
		{"can_hvac_heat", slices.Contains(modes, Heat)},
		{"can_hvac_cool", slices.Contains(modes, Cool)},
		{"can_hvac_heat_cool", slices.Contains(modes, HeatCool)},
		{"can_turn_off_hvac", slices.Contains(modes, Off)},
		{"can_run_thermostat_programs", s.Thermostat != nil},
		{"can_program_thermostat_programs_as_different_each_day", s.Thermostat != nil},
		{"can_simulate_hub_connection", s.Simulated && s.Hub},
		{"can_simulate_hub_disconnection", s.Simulated && s.Hub},
		{"can_simulate_paid_subscription", s.Simulated && s.Subscription},
		{"can_simulate_connection", s.Simulated},
		{"can_simulate_disconnection", s.Simulated},
		{"can_simulate_removal", s.Simulated},
	} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	return flags
}
