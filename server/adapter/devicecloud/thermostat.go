package devicecloud

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Limits of what is accepted from a vendor about a thermostat.
const (
	// coldest and hottest bound temperatures in °C.
	coldest = -100
	hottest = 200
	// maxStep bounds the resolution and the minimum difference of set points in °C.
	maxStep = 20
	// maxPresets is the maximum number of presets of a thermostat.
	maxPresets = 50
)

// wireThermostat is the state of a thermostat. Any field may be missing.
type wireThermostat struct {
	wireThermostatSetting
	Temperature   *float64                 `json:"temperature"` // °C
	Humidity      *float64                 `json:"humidity"`    // percent
	Heating       *bool                    `json:"heating"`
	Cooling       *bool                    `json:"cooling"`
	FanRunning    *bool                    `json:"fan_running"`
	AuxiliaryHeat bool                     `json:"auxiliary_heat"`
	Presets       adapter.List[wirePreset] `json:"presets"`
	ActivePreset  string                   `json:"active_preset"`
}

// wireThermostatSetting is what a thermostat is set to, in requests and responses. Set points are in °C.
type wireThermostatSetting struct {
	Mode capability.HVACMode `json:"mode,omitempty"`
	Fan  capability.FanMode  `json:"fan,omitempty"`
	Heat *float64            `json:"heat_set_point,omitempty"`
	Cool *float64            `json:"cool_set_point,omitempty"`
}

type wirePreset struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	wireThermostatSetting
}

// wireThermostatLimits may lack any of its fields; package sandbox documents them.
type wireThermostatLimits struct {
	Modes    adapter.List[capability.HVACMode] `json:"modes"`
	FanModes adapter.List[capability.FanMode]  `json:"fan_modes"`
	MinHeat  *float64                          `json:"min_heat_set_point"`
	MaxHeat  *float64                          `json:"max_heat_set_point"`
	MinCool  *float64                          `json:"min_cool_set_point"`
	MaxCool  *float64                          `json:"max_cool_set_point"`
	MinDelta float64                           `json:"min_delta"`
	Step     float64                           `json:"step"`
}

// The modes that are accepted from a vendor.
var (
	allModes = []capability.HVACMode{
		capability.Off,
		capability.Heat,
		capability.Cool,
		capability.HeatCool,
		capability.Eco,
	}
	allFanModes = []capability.FanMode{capability.FanAuto, capability.FanOn, capability.FanCirculate}
)

// thermostatCaps returns the capabilities of a thermostat. It ignores implausible limits.
func (w wireCapabilities) thermostatCaps() capability.Set {
	var l wireThermostatLimits
	if w.Thermostat != nil {
		l = *w.Thermostat
	}
	t := &capability.Thermostat{
		Modes:    among(allModes, l.Modes),
		FanModes: among(allFanModes, l.FanModes),
		MinDelta: min(max(l.MinDelta, 0), maxStep),
		Step:     min(max(l.Step, 0), maxStep),
	}
	t.MinHeat, t.MaxHeat = plausibleRange(l.MinHeat, l.MaxHeat)
	t.MinCool, t.MaxCool = plausibleRange(l.MinCool, l.MaxCool)
	c := capability.Set{
		Convert:     capability.ConvertNever,
		Confirm:     capability.ConfirmReadBack,
		DirectPower: w.DirectPower,
		Thermostat:  t,
	}
	if w.Confirm == string(capability.ConfirmSync) {
		c.Confirm = capability.ConfirmSync
	}
	return c
}

// among returns the elements of all that are in list.
func among[T comparable](all []T, list adapter.List[T]) (out []T) {
	for _, v := range all {
		if slices.Contains(list, v) {
			out = append(out, v)
		}
	}
	return out
}

// plausible returns the temperature, or nil if it is none.
func plausible(celsius *float64) *float64 {
	if celsius == nil || *celsius < coldest || *celsius > hottest {
		return nil
	}
	return celsius
}

func plausibleRange(from, to *float64) (lower, upper *float64) {
	lower, upper = plausible(from), plausible(to)
	if lower != nil && upper != nil && *lower > *upper {
		return nil, nil
	}
	return lower, upper
}

// setting omits what is unknown or implausible.
func (w wireThermostatSetting) setting() adapter.ThermostatSetting {
	s := adapter.ThermostatSetting{Heat: plausible(w.Heat), Cool: plausible(w.Cool)}
	if slices.Contains(allModes, w.Mode) {
		s.Mode = w.Mode
	}
	if slices.Contains(allFanModes, w.Fan) {
		s.Fan = w.Fan
	}
	return s
}

// observed returns the state of a thermostat, or nil if there is none.
func (w *wireThermostat) observed() *adapter.Thermostat {
	if w == nil {
		return nil
	}
	t := &adapter.Thermostat{
		Setting:       w.setting(),
		Temperature:   plausible(w.Temperature),
		Humidity:      fraction(w.Humidity),
		Heating:       w.Heating,
		Cooling:       w.Cooling,
		FanRunning:    w.FanRunning,
		AuxiliaryHeat: w.AuxiliaryHeat,
	}
	for _, p := range w.Presets {
		if len(t.Presets) == maxPresets {
			break
		}
		if p.Key == "" || len(p.Key) > maxKindSize || strings.ContainsFunc(p.Key, unicode.IsControl) ||
			hasPreset(t.Presets, p.Key) {
			continue
		}
		name := cmp.Or(p.Name, p.Key)
		if len(name) > maxKindSize {
			name = p.Key
		}
		t.Presets = append(t.Presets, adapter.ThermostatPreset{Key: p.Key, Name: name, Setting: p.setting()})
	}
	if hasPreset(t.Presets, w.ActivePreset) {
		t.ActivePreset = w.ActivePreset
	}
	return t
}

func hasPreset(presets []adapter.ThermostatPreset, key string) bool {
	return slices.ContainsFunc(presets, func(p adapter.ThermostatPreset) bool { return p.Key == key })
}

// SetThermostat implements adapter.ThermostatController.
func (a *Adapter) SetThermostat(ctx context.Context, device adapter.DeviceRef,
	setting adapter.ThermostatSetting,
) (adapter.State, error) {
	caps, err := a.capsOf(ctx, device)
	switch {
	case err != nil:
		return "", err
	case caps.Thermostat == nil:
		return "", adapter.Errorf(adapter.NotSupported, "the device is not a thermostat")
	case setting.Mode != "" && !slices.Contains(caps.Thermostat.Modes, setting.Mode):
		return "", adapter.Errorf(adapter.NotSupported, "the thermostat has no mode %q", setting.Mode)
	case setting.Fan != "" && !slices.Contains(caps.Thermostat.FanModes, setting.Fan):
		return "", adapter.Errorf(adapter.NotSupported, "the thermostat has no fan mode %q", setting.Fan)
	}
	var got struct {
		Status string `json:"status"`
	}
	if err := a.do(ctx, call{
		method: http.MethodPut,
		path:   lockPath(device) + "/thermostat",
		body:   wireThermostatSetting(setting),
	}, &got); err != nil {
		return "", err
	}
	if got.Status == statusActive {
		return adapter.Confirmed, nil
	}
	return adapter.Accepted, nil
}

// AdjustThermostat implements adapter.ThermostatSimulator.
func (a *Adapter) AdjustThermostat(ctx context.Context, device adapter.DeviceRef,
	setting adapter.ThermostatSetting,
) error {
	return a.control(ctx, device, "thermostat/adjust", wireThermostatSetting(setting), nil)
}

// SetTemperature implements adapter.ThermostatSimulator.
func (a *Adapter) SetTemperature(ctx context.Context, device adapter.DeviceRef, celsius float64) error {
	return a.control(ctx, device, "thermostat/room", map[string]float64{"temperature": celsius}, nil)
}
