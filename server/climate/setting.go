package climate

import (
	"cmp"
	"math"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Setting is what a thermostat is set to. Temperatures are in °C. A command keeps the fields that have no value.
type Setting struct {
	Mode capability.HVACMode `json:"mode,omitempty"`
	Fan  capability.FanMode  `json:"fan,omitempty"`
	Heat *float64            `json:"heat,omitempty"`
	Cool *float64            `json:"cool,omitempty"`
}

// isZero reports whether the setting has no field.
func (s Setting) isZero() bool { return s == Setting{} }

// hasMode reports whether the setting has a mode or a set point.
func (s Setting) hasMode() bool { return s.Mode != "" || s.Heat != nil || s.Cool != nil }

// conflictsWith reports whether both settings have a mode or set points, or both have a fan mode.
func (s Setting) conflictsWith(o Setting) bool {
	return s.hasMode() && o.hasMode() || s.Fan != "" && o.Fan != ""
}

// over returns base with the mode and set points of s, if it has any, and with its fan mode.
func (s Setting) over(base Setting) Setting {
	if s.hasMode() {
		base.Mode, base.Heat, base.Cool = s.Mode, s.Heat, s.Cool
	}
	base.Fan = cmp.Or(s.Fan, base.Fan)
	return base
}

// onDevice returns what a device with the setting before has after a write of s.
func (s Setting) onDevice(before Setting) Setting {
	return Setting{
		Mode: cmp.Or(s.Mode, before.Mode),
		Fan:  cmp.Or(s.Fan, before.Fan),
		Heat: cmp.Or(s.Heat, before.Heat),
		Cool: cmp.Or(s.Cool, before.Cool),
	}
}

// relevant returns the setting without the set points that its mode does not use.
func (s Setting) relevant() Setting {
	if s.Mode != "" && !s.Mode.Heats() {
		s.Heat = nil
	}
	if s.Mode != "" && !s.Mode.Cools() {
		s.Cool = nil
	}
	return s
}

// equal reports whether two settings have the same fields, with the same temperatures.
func (s Setting) equal(o Setting) bool {
	return s.Mode == o.Mode && s.Fan == o.Fan && equalPoint(s.Heat, o.Heat) && equalPoint(s.Cool, o.Cool)
}

func equalPoint(a, b *float64) bool {
	return (a == nil) == (b == nil) && domain.Value(a) == domain.Value(b)
}

// unknownStep is the assumed resolution of set points, in °C. Devices that do not report theirs store whole °F at worst.
const unknownStep = 5.0 / 9

// rounding is the error of conversions between °C and °F that comparisons ignore, in °C.
const rounding = 0.0051

// tolerance is how far a set point that the device shows may be from the one that was sent, in °C.
func (t *Thermostat) tolerance() float64 {
	return max(cmp.Or(t.Limits.Step, unknownStep)/2, 0.06) + rounding
}

// difference returns the part of want that got does not show. A mode and its set points belong together. A field that
// the device does not report differs until it was sent.
func (t *Thermostat) difference(want, got Setting, sent bool) (out Setting) {
	if differsByName(want.Mode, got.Mode, sent) ||
		t.differsByDegrees(want.Heat, got.Heat, sent) || t.differsByDegrees(want.Cool, got.Cool, sent) {
		out.Mode, out.Heat, out.Cool = want.Mode, want.Heat, want.Cool
	}
	if differsByName(want.Fan, got.Fan, sent) {
		out.Fan = want.Fan
	}
	return out
}

func differsByName[T ~string](want, got T, sent bool) bool {
	if got == "" {
		return want != "" && !sent
	}
	return want != "" && want != got
}

func (t *Thermostat) differsByDegrees(want, got *float64, sent bool) bool {
	if want == nil || got == nil {
		return want != nil && !sent
	}
	return math.Abs(*want-*got) > t.tolerance()
}

// shows reports whether got is want, as far as the device reports it.
func (t *Thermostat) shows(want, got Setting) bool { return t.difference(want, got, true).isZero() }

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
	// At is when the vendor was asked. In State it is when this was first observed, by Thermostat.Now, or first after
	// the last write had its effect.
	At time.Time `json:"at"`
}

// VendorPreset is a preset that the device itself has.
type VendorPreset struct {
	Key     string  `json:"key"`
	Name    string  `json:"name"`
	Setting Setting `json:"setting"`
}
