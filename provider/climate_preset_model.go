package provider

import (
	"fmt"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// climatePresetIdentity identifies a climate preset in Terraform 1.12 and newer. The key is unique on its device only.
type climatePresetIdentity struct {
	DeviceID         types.String `tfsdk:"device_id"`
	ClimatePresetKey types.String `tfsdk:"climate_preset_key"`
}

type climatePresetModel struct {
	DeviceID          types.String  `tfsdk:"device_id"`
	ClimatePresetKey  types.String  `tfsdk:"climate_preset_key"`
	Name              types.String  `tfsdk:"name"`
	HVACModeSetting   types.String  `tfsdk:"hvac_mode_setting"`
	FanModeSetting    types.String  `tfsdk:"fan_mode_setting"`
	ClimatePresetMode types.String  `tfsdk:"climate_preset_mode"`
	HeatingCelsius    types.Float64 `tfsdk:"heating_set_point_celsius"`
	HeatingFahrenheit types.Float64 `tfsdk:"heating_set_point_fahrenheit"`
	CoolingCelsius    types.Float64 `tfsdk:"cooling_set_point_celsius"`
	CoolingFahrenheit types.Float64 `tfsdk:"cooling_set_point_fahrenheit"`
	CanEdit           types.Bool    `tfsdk:"can_edit"`
	CanDelete         types.Bool    `tfsdk:"can_delete"`
}

func (m *climatePresetModel) identity() climatePresetIdentity {
	return climatePresetIdentity{m.DeviceID, m.ClimatePresetKey}
}

// address returns the identifier that an import takes.
func (m *climatePresetModel) address() string {
	return m.DeviceID.ValueString() + "/" + m.ClimatePresetKey.ValueString()
}

func (m *climatePresetModel) heating() setPoint {
	return setPoint{m.HeatingCelsius, m.HeatingFahrenheit}
}

func (m *climatePresetModel) cooling() setPoint {
	return setPoint{m.CoolingCelsius, m.CoolingFahrenheit}
}

func (m *climatePresetModel) setHeating(p setPoint) {
	m.HeatingCelsius, m.HeatingFahrenheit = p.Celsius, p.Fahrenheit
}

func (m *climatePresetModel) setCooling(p setPoint) {
	m.CoolingCelsius, m.CoolingFahrenheit = p.Celsius, p.Fahrenheit
}

// setPoints yields the kinds of set points with their values.
func (m *climatePresetModel) setPoints() iter.Seq2[setPointKind, setPoint] {
	return func(yield func(setPointKind, setPoint) bool) {
		_ = yield(heatingSetPoint, m.heating()) && yield(coolingSetPoint, m.cooling())
	}
}

// presetOf returns the preset of a device with a key, or nil.
func presetOf(device *api.Device, key string) *api.ClimatePreset {
	if device.Properties.AvailableClimatePresets == nil {
		return nil
	}
	for _, preset := range *device.Properties.AvailableClimatePresets {
		if preset.ClimatePresetKey == key {
			return &preset
		}
	}
	return nil
}

// fill copies a preset of a server. Temperatures that differ by rounding only stay as they are. A set point that the
// mode lacks has no effect, so it is left out.
func (m *climatePresetModel) fill(preset *api.ClimatePreset) {
	m.ClimatePresetKey = types.StringValue(preset.ClimatePresetKey)
	m.Name = textOrNull(textOf(preset.Name))
	m.HVACModeSetting = textOrNull(preset.HvacModeSetting)
	m.FanModeSetting = textOrNull(preset.FanModeSetting)
	m.ClimatePresetMode = textOrNull(preset.ClimatePresetMode)
	heating := setPointOf(preset.HeatingSetPointCelsius, preset.HeatingSetPointFahrenheit)
	cooling := setPointOf(preset.CoolingSetPointCelsius, preset.CoolingSetPointFahrenheit)
	if heatingSetPoint.modeLacks(preset.HvacModeSetting) {
		heating = noSetPoint()
	}
	if coolingSetPoint.modeLacks(preset.HvacModeSetting) {
		cooling = noSetPoint()
	}
	m.setHeating(heating.orSame(m.heating()))
	m.setCooling(cooling.orSame(m.cooling()))
	m.CanEdit = types.BoolValue(preset.CanEdit)
	m.CanDelete = types.BoolValue(preset.CanDelete)
}

// planSetPoints plans both units of the set points.
func (m *climatePresetModel) planSetPoints(config, state *climatePresetModel) {
	m.setHeating(heatingSetPoint.plan(m.HVACModeSetting, config.heating(), state.heating()))
	m.setCooling(coolingSetPoint.plan(m.HVACModeSetting, config.cooling(), state.cooling()))
}

// plan returns the set point of a plan. Servers cannot remove a set point: without a configured one, the current one
// stays if the mode has it.
func (k setPointKind) plan(mode types.String, config, state setPoint) setPoint {
	switch {
	case !config.isNull():
		return config.planned(state)
	case mode.IsUnknown() && !state.isNull():
		return setPoint{types.Float64Unknown(), types.Float64Unknown()}
	case k.modeLacks(mode.ValueString()) || state.isNull():
		return noSetPoint()
	}
	return state
}

// setting returns the planned setting with the set points as configured.
func (m *climatePresetModel) setting(config *climatePresetModel) climateSetting {
	s := climateSetting{
		mode:    m.HVACModeSetting.ValueString(),
		fan:     config.FanModeSetting.ValueString(),
		heating: config.heating(),
		cooling: config.cooling(),
	}
	if s.heating.isNull() {
		s.heating = m.heating()
	}
	if s.cooling.isNull() {
		s.cooling = m.cooling()
	}
	return s
}

func (m *climatePresetModel) createRequest(config *climatePresetModel) api.CreateClimatePresetRequest {
	request := api.CreateClimatePresetRequest{
		DeviceID:          m.DeviceID.ValueString(),
		ClimatePresetKey:  m.ClimatePresetKey.ValueString(),
		Name:              m.Name.ValueString(),
		HvacModeSetting:   m.HVACModeSetting.ValueString(),
		FanModeSetting:    m.FanModeSetting.ValueString(),
		ClimatePresetMode: m.ClimatePresetMode.ValueString(),
	}
	request.HeatingSetPointCelsius, request.HeatingSetPointFahrenheit = m.heating().request(config.heating())
	request.CoolingSetPointCelsius, request.CoolingSetPointFahrenheit = m.cooling().request(config.cooling())
	return request
}

// updateRequest asks for the whole preset, so that it does not matter whether the server keeps what is missing.
func (m *climatePresetModel) updateRequest(config *climatePresetModel) api.UpdateClimatePresetRequest {
	request := api.UpdateClimatePresetRequest{
		DeviceID:          m.DeviceID.ValueString(),
		ClimatePresetKey:  m.ClimatePresetKey.ValueString(),
		Name:              api.Change[string]{Given: true, To: m.Name.ValueStringPointer()},
		HvacModeSetting:   m.HVACModeSetting.ValueString(),
		FanModeSetting:    m.FanModeSetting.ValueString(),
		ClimatePresetMode: m.ClimatePresetMode.ValueString(),
	}
	request.HeatingSetPointCelsius, request.HeatingSetPointFahrenheit = m.heating().request(config.heating())
	request.CoolingSetPointCelsius, request.CoolingSetPointFahrenheit = m.cooling().request(config.cooling())
	return request
}

// warnOfDuplicate warns that the thermostat already has a preset with the key of a new one.
func (m *climatePresetModel) warnOfDuplicate(preset *api.ClimatePreset, diags *diag.Diagnostics) {
	next := "To manage it, import it as `" + m.address() + "`. Otherwise choose another key."
	if !preset.CanEdit {
		next = "It belongs to the thermostat itself, and cannot be changed here. Choose another key, or use the " +
			"preset without this resource."
	}
	diagnostics.WarningAt(diags, path.Root("climate_preset_key"), "Preset exists already", fmt.Sprintf("The "+
		"thermostat already has a preset with the key %q, so applying this plan will fail. %s",
		preset.ClimatePresetKey, next))
}

// warnOfDeletion warns that a preset cannot be deleted.
func (m *climatePresetModel) warnOfDeletion(diags *diag.Diagnostics) {
	if !isFalse(m.CanDelete.ValueBoolPointer()) {
		return
	}
	diagnostics.Warning(diags, "Preset cannot be deleted", fmt.Sprintf("The preset %s belongs to the thermostat "+
		"itself, so applying this plan will fail. %s", m.address(), m.deletionAdvice()))
}

// deletionAdvice says what to do if the server refuses to delete the preset.
func (m *climatePresetModel) deletionAdvice() string {
	if isFalse(m.CanDelete.ValueBoolPointer()) {
		return "To leave it on the thermostat, remove it from the state with a `removed` block and `destroy = false`."
	}
	return "First end what uses the preset. For a schedule of the same configuration, take `climate_preset_key` of the " +
		"schedule from the attribute of this resource, and set `create_before_destroy` in the `lifecycle` block of the " +
		"preset."
}
