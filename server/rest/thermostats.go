package rest

import (
	"context"
	"math"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// GetThermostat answers /thermostats/get.
func (h *handlers) GetThermostat(
	ctx context.Context, r openapi.GetThermostatRequestObject,
) (openapi.GetThermostatResponseObject, error) {
	d, err := h.access.Thermostats.Get(ctx, principal(ctx), r.Body.DeviceID, r.Body.Name)
	if err != nil {
		return nil, err
	}
	return openapi.GetThermostat200JSONResponse{Ok: true, Thermostat: toDevice(d)}, nil
}

// HeatThermostat answers /thermostats/heat.
func (h *handlers) HeatThermostat(
	ctx context.Context, r openapi.HeatThermostatRequestObject,
) (openapi.HeatThermostatResponseObject, error) {
	answer, err := h.setMode(ctx, r.Body.DeviceID, r.Body.Sync, capability.Heat, setPoints{
		HeatCelsius:    r.Body.HeatingSetPointCelsius,
		HeatFahrenheit: r.Body.HeatingSetPointFahrenheit,
	})
	return openapi.HeatThermostat200JSONResponse(answer), err
}

// CoolThermostat answers /thermostats/cool.
func (h *handlers) CoolThermostat(
	ctx context.Context, r openapi.CoolThermostatRequestObject,
) (openapi.CoolThermostatResponseObject, error) {
	answer, err := h.setMode(ctx, r.Body.DeviceID, r.Body.Sync, capability.Cool, setPoints{
		CoolCelsius:    r.Body.CoolingSetPointCelsius,
		CoolFahrenheit: r.Body.CoolingSetPointFahrenheit,
	})
	return openapi.CoolThermostat200JSONResponse(answer), err
}

// HeatCoolThermostat answers /thermostats/heat_cool.
func (h *handlers) HeatCoolThermostat(
	ctx context.Context, r openapi.HeatCoolThermostatRequestObject,
) (openapi.HeatCoolThermostatResponseObject, error) {
	answer, err := h.setMode(ctx, r.Body.DeviceID, r.Body.Sync, capability.HeatCool, setPoints{
		HeatCelsius:    r.Body.HeatingSetPointCelsius,
		HeatFahrenheit: r.Body.HeatingSetPointFahrenheit,
		CoolCelsius:    r.Body.CoolingSetPointCelsius,
		CoolFahrenheit: r.Body.CoolingSetPointFahrenheit,
	})
	return openapi.HeatCoolThermostat200JSONResponse(answer), err
}

// TurnOffThermostat answers /thermostats/off.
func (h *handlers) TurnOffThermostat(
	ctx context.Context, r openapi.TurnOffThermostatRequestObject,
) (openapi.TurnOffThermostatResponseObject, error) {
	answer, err := h.setMode(ctx, r.Body.DeviceID, r.Body.Sync, capability.Off, setPoints{})
	return openapi.TurnOffThermostat200JSONResponse(answer), err
}

// SetHvacMode answers /thermostats/set_hvac_mode.
func (h *handlers) SetHvacMode(
	ctx context.Context, r openapi.SetHvacModeRequestObject,
) (openapi.SetHvacModeResponseObject, error) {
	answer, err := h.setMode(ctx, r.Body.DeviceID, false, capability.HVACMode(r.Body.HvacModeSetting), setPoints{
		HeatCelsius:    r.Body.HeatingSetPointCelsius,
		HeatFahrenheit: r.Body.HeatingSetPointFahrenheit,
		CoolCelsius:    r.Body.CoolingSetPointCelsius,
		CoolFahrenheit: r.Body.CoolingSetPointFahrenheit,
	})
	return openapi.SetHvacMode200JSONResponse(answer), err
}

// setMode sets a mode with its set points.
func (h *handlers) setMode(
	ctx context.Context, deviceID string, sync bool, mode capability.HVACMode, points setPoints,
) (api.ActionAttemptResponse, error) {
	setting, err := points.required(mode)
	if err != nil {
		return api.ActionAttemptResponse{}, err
	}
	attempt, err := h.access.Thermostats.SetMode(ctx, principal(ctx), deviceID, setting)
	return h.attemptResponse(ctx, attempt, err, sync)
}

// SetFanMode answers /thermostats/set_fan_mode.
func (h *handlers) SetFanMode(
	ctx context.Context, r openapi.SetFanModeRequestObject,
) (openapi.SetFanModeResponseObject, error) {
	fan := r.Body.FanModeSetting
	switch {
	case fan == "" && r.Body.FanMode == "":
		return nil, domain.Invalidf("", "Must specify fan_mode_setting")
	case fan == "":
		fan = r.Body.FanMode
	}
	setting := climate.Setting{Fan: capability.FanMode(fan)}
	attempt, err := h.access.Thermostats.SetFan(ctx, principal(ctx), r.Body.DeviceID, setting)
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	return openapi.SetFanMode200JSONResponse(answer), err
}

// ActivateClimatePreset answers /thermostats/activate_climate_preset.
func (h *handlers) ActivateClimatePreset(
	ctx context.Context, r openapi.ActivateClimatePresetRequestObject,
) (openapi.ActivateClimatePresetResponseObject, error) {
	attempt, err := h.access.Thermostats.ActivatePreset(
		ctx,
		principal(ctx),
		r.Body.DeviceID,
		r.Body.ClimatePresetKey,
	)
	answer, err := h.attemptResponse(ctx, attempt, err, false)
	return openapi.ActivateClimatePreset200JSONResponse(answer), err
}

// CreateClimatePreset answers /thermostats/create_climate_preset.
func (h *handlers) CreateClimatePreset(
	ctx context.Context, r openapi.CreateClimatePresetRequestObject,
) (openapi.CreateClimatePresetResponseObject, error) {
	setting, err := setPoints{
		HeatCelsius:    r.Body.HeatingSetPointCelsius,
		HeatFahrenheit: r.Body.HeatingSetPointFahrenheit,
		CoolCelsius:    r.Body.CoolingSetPointCelsius,
		CoolFahrenheit: r.Body.CoolingSetPointFahrenheit,
	}.optional(r.Body.HvacModeSetting, r.Body.FanModeSetting)
	if err != nil {
		return nil, err
	}
	err = h.access.Thermostats.CreatePreset(ctx, principal(ctx), r.Body.DeviceID, climate.PresetFields{
		Key:                   r.Body.ClimatePresetKey,
		Name:                  optional(r.Body.Name),
		SetName:               true,
		Mode:                  r.Body.ClimatePresetMode,
		Setting:               setting,
		ManualOverrideAllowed: r.Body.ManualOverrideAllowed,
	})
	return openapi.CreateClimatePreset200JSONResponse{Ok: true}, err
}

// UpdateClimatePreset answers /thermostats/update_climate_preset.
func (h *handlers) UpdateClimatePreset(
	ctx context.Context, r openapi.UpdateClimatePresetRequestObject,
) (openapi.UpdateClimatePresetResponseObject, error) {
	setting, err := setPoints{
		HeatCelsius:    r.Body.HeatingSetPointCelsius,
		HeatFahrenheit: r.Body.HeatingSetPointFahrenheit,
		CoolCelsius:    r.Body.CoolingSetPointCelsius,
		CoolFahrenheit: r.Body.CoolingSetPointFahrenheit,
	}.optional(r.Body.HvacModeSetting, r.Body.FanModeSetting)
	if err != nil {
		return nil, err
	}
	err = h.access.Thermostats.UpdatePreset(ctx, principal(ctx), r.Body.DeviceID, climate.PresetFields{
		Key:                   r.Body.ClimatePresetKey,
		Name:                  r.Body.Name.To,
		SetName:               r.Body.Name.Given,
		Mode:                  r.Body.ClimatePresetMode,
		Setting:               setting,
		ManualOverrideAllowed: r.Body.ManualOverrideAllowed,
	})
	return openapi.UpdateClimatePreset200JSONResponse{Ok: true}, err
}

// DeleteClimatePreset answers /thermostats/delete_climate_preset.
func (h *handlers) DeleteClimatePreset(
	ctx context.Context, r openapi.DeleteClimatePresetRequestObject,
) (openapi.DeleteClimatePresetResponseObject, error) {
	err := h.access.Thermostats.DeletePreset(ctx, principal(ctx), r.Body.DeviceID, r.Body.ClimatePresetKey)
	return openapi.DeleteClimatePreset200JSONResponse{Ok: true}, err
}

// SetFallbackClimatePreset answers /thermostats/set_fallback_climate_preset.
func (h *handlers) SetFallbackClimatePreset(
	ctx context.Context, r openapi.SetFallbackClimatePresetRequestObject,
) (openapi.SetFallbackClimatePresetResponseObject, error) {
	err := h.access.Thermostats.SetFallback(ctx, principal(ctx), r.Body.DeviceID, r.Body.ClimatePresetKey)
	return openapi.SetFallbackClimatePreset200JSONResponse{Ok: true}, err
}

// SetTemperatureThreshold answers /thermostats/set_temperature_threshold.
func (h *handlers) SetTemperatureThreshold(
	ctx context.Context, r openapi.SetTemperatureThresholdRequestObject,
) (openapi.SetTemperatureThresholdResponseObject, error) {
	lower, lowerErr := celsius("lower_limit", r.Body.LowerLimitCelsius, r.Body.LowerLimitFahrenheit)
	upper, upperErr := celsius("upper_limit", r.Body.UpperLimitCelsius, r.Body.UpperLimitFahrenheit)
	if err := domain.All(lowerErr, upperErr); err != nil {
		return nil, err
	}
	threshold := climate.Threshold{Lower: lower, Upper: upper}
	err := h.access.Thermostats.SetThreshold(ctx, principal(ctx), r.Body.DeviceID, threshold)
	return openapi.SetTemperatureThreshold200JSONResponse{Ok: true}, err
}

// SimulateHvacModeAdjusted answers /thermostats/simulate/hvac_mode_adjusted.
func (h *handlers) SimulateHvacModeAdjusted(
	ctx context.Context, r openapi.SimulateHvacModeAdjustedRequestObject,
) (openapi.SimulateHvacModeAdjustedResponseObject, error) {
	setting, err := setPoints{
		HeatCelsius:    r.Body.HeatingSetPointCelsius,
		HeatFahrenheit: r.Body.HeatingSetPointFahrenheit,
		CoolCelsius:    r.Body.CoolingSetPointCelsius,
		CoolFahrenheit: r.Body.CoolingSetPointFahrenheit,
	}.required(capability.HVACMode(r.Body.HvacMode))
	if err != nil {
		return nil, err
	}
	err = h.simulatedUpon(ctx, r.Body.DeviceID, func(p domain.Principal) error {
		return h.simulator.AdjustThermostat(ctx, p, r.Body.DeviceID, setting)
	})
	return openapi.SimulateHvacModeAdjusted200JSONResponse{Ok: true}, err
}

// SimulateTemperatureReached answers /thermostats/simulate/temperature_reached.
func (h *handlers) SimulateTemperatureReached(
	ctx context.Context, r openapi.SimulateTemperatureReachedRequestObject,
) (openapi.SimulateTemperatureReachedResponseObject, error) {
	reached, err := celsius("temperature", r.Body.TemperatureCelsius, r.Body.TemperatureFahrenheit)
	switch {
	case err != nil:
		return nil, err
	case reached == nil:
		return nil, domain.Invalidf("", "Must specify either temperature_celsius or temperature_fahrenheit")
	}
	err = h.simulatedUpon(ctx, r.Body.DeviceID, func(p domain.Principal) error {
		return h.simulator.SetTemperature(ctx, p, r.Body.DeviceID, *reached)
	})
	return openapi.SimulateTemperatureReached200JSONResponse{Ok: true}, err
}

// setPoints are the set points of a request, each in one of two units.
type setPoints struct {
	HeatCelsius, HeatFahrenheit *float64
	CoolCelsius, CoolFahrenheit *float64
}

// optional returns a setting. It fails with Invalid for a set point in both units.
func (s setPoints) optional(mode, fan string) (climate.Setting, error) {
	heat, heatErr := celsius("heating_set_point", s.HeatCelsius, s.HeatFahrenheit)
	cool, coolErr := celsius("cooling_set_point", s.CoolCelsius, s.CoolFahrenheit)
	return climate.Setting{
		Mode: capability.HVACMode(mode),
		Fan:  capability.FanMode(fan),
		Heat: heat,
		Cool: cool,
	}, domain.All(heatErr, coolErr)
}

// required returns the setting of a mode. It fails with Invalid if a set point of the mode is missing, and for one that
// the mode does not have.
func (s setPoints) required(mode capability.HVACMode) (climate.Setting, error) {
	setting, err := s.optional(string(mode), "")
	if err != nil {
		return setting, err
	}
	return setting, domain.All(
		checkSetPoint(mode, "heating_set_point", mode.Heats(), setting.Heat),
		checkSetPoint(mode, "cooling_set_point", mode.Cools(), setting.Cool),
	)
}

func checkSetPoint(mode capability.HVACMode, name string, needed bool, given *float64) error {
	switch {
	case needed && given == nil:
		return domain.Invalidf("", "Must specify either %s_celsius or %s_fahrenheit", name, name)
	case !needed && given != nil:
		return domain.Invalidf("", "The mode %s has no %s. Leave it out", mode, name)
	}
	return nil
}

// maxDegrees is the greatest temperature of a request in °C. It keeps the arithmetic finite.
const maxDegrees = 1000

// celsius returns a temperature that a request has in one of two units, in °C; nil if it has none. It fails with Invalid
// for both units.
func celsius(name string, inCelsius, inFahrenheit *float64) (*float64, error) {
	degrees := inCelsius
	switch {
	case inCelsius != nil && inFahrenheit != nil:
		return nil, domain.Invalidf("", "Specify either %s_celsius or %s_fahrenheit, not both", name, name)
	case inFahrenheit != nil:
		degrees = new(climate.Celsius(*inFahrenheit))
	}
	if degrees != nil && math.Abs(*degrees) > maxDegrees {
		return nil, domain.Invalidf("", "The %s is no temperature. Specify at most %d °C", name, maxDegrees)
	}
	return degrees, nil
}
