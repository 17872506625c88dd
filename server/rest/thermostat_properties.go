package rest

import (
	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/thermostat"
)

// addThermostatProperties adds the properties that only thermostats have.
func addThermostatProperties(p *api.DeviceProperties, d device.Device) {
	if d.Capabilities.Thermostat == nil {
		return
	}
	t := thermostat.View(d)
	addLimits(p, t.Limits)
	if t.State.Observed != nil {
		addObserved(p, *t.State.Observed)
	}
	current := t.Current()
	p.CurrentClimateSetting = toClimateSetting(current)
	p.FanModeSetting = string(current.Setting.Fan)
	presets := each(t.AvailablePresets(), toClimatePreset)
	p.AvailableClimatePresets = &presets
	p.AvailableClimatePresetModes = []string{"home", "away", "wake", "sleep", "occupied", "unoccupied"}
	p.FallbackClimatePresetKey = api.Change[string]{Given: true, To: optional(t.State.Fallback)}
	p.IsTemporaryManualOverrideActive = new(t.OverrideActive())
	p.ActiveThermostatScheduleID = api.Change[string]{Given: true, To: identifier(t.State.Baseline.Schedule)}
	p.TemperatureThreshold = toThreshold(t.State.Threshold)
	programs := each(t.State.DailyPrograms, func(one climate.DailyProgram) api.ThermostatDailyProgram {
		return toDailyProgram(thermostat.DailyProgram{DailyProgram: one, DeviceID: d.ID, WorkspaceID: d.WorkspaceID})
	})
	p.ThermostatDailyPrograms = &programs
	p.ThermostatWeeklyProgram = toWeeklyProgram(t.State.Weekly)
}

// addLimits adds what the device accepts.
func addLimits(p *api.DeviceProperties, l capability.Thermostat) {
	p.AvailableHvacModeSettings = each(l.Modes, func(m capability.HVACMode) string { return string(m) })
	if len(l.FanModes) > 0 {
		p.AvailableFanModeSettings = each(l.FanModes, func(m capability.FanMode) string { return string(m) })
	}
	p.MinHeatingSetPointCelsius, p.MinHeatingSetPointFahrenheit = inBothUnits(l.MinHeat)
	p.MaxHeatingSetPointCelsius, p.MaxHeatingSetPointFahrenheit = inBothUnits(l.MaxHeat)
	p.MinCoolingSetPointCelsius, p.MinCoolingSetPointFahrenheit = inBothUnits(l.MinCool)
	p.MaxCoolingSetPointCelsius, p.MaxCoolingSetPointFahrenheit = inBothUnits(l.MaxCool)
	if l.MinDelta > 0 {
		p.MinHeatingCoolingDeltaCelsius = new(climate.Round(l.MinDelta))
		p.MinHeatingCoolingDeltaFahrenheit = new(climate.Round(l.MinDelta * 9 / 5))
	}
	p.MaxThermostatDailyProgramPeriodsPerDay = climate.MaxPeriods
	p.MaxUniqueClimatePresetsPerThermostatWeeklyProgram = 7 * climate.MaxPeriods
	p.ThermostatDailyProgramPeriodPrecisionMinutes = climate.PeriodPrecision
}

// addObserved adds what the device has reported.
func addObserved(p *api.DeviceProperties, o climate.Observed) {
	p.TemperatureCelsius, p.TemperatureFahrenheit = inBothUnits(o.Temperature)
	p.RelativeHumidity = o.Humidity
	p.IsHeating, p.IsCooling, p.IsFanRunning = o.Heating, o.Cooling, o.FanRunning
}

func toClimateSetting(c climate.Current) *api.ClimateSetting {
	out := &api.ClimateSetting{
		HvacModeSetting: string(c.Setting.Mode),
		FanModeSetting:  string(c.Setting.Fan),
	}
	if c.Setting.Mode.Heats() {
		out.HeatingSetPointCelsius, out.HeatingSetPointFahrenheit = inBothUnits(c.Setting.Heat)
	}
	if c.Setting.Mode.Cools() {
		out.CoolingSetPointCelsius, out.CoolingSetPointFahrenheit = inBothUnits(c.Setting.Cool)
	}
	if c.Preset == nil {
		return out
	}
	preset := toClimatePreset(*c.Preset)
	out.ClimatePresetKey, out.ClimatePresetMode = preset.ClimatePresetKey, preset.ClimatePresetMode
	out.DisplayName, out.Name = preset.DisplayName, preset.Name
	out.CanEdit, out.CanDelete = &preset.CanEdit, &preset.CanDelete
	out.CanUseWithThermostatDailyPrograms = &preset.CanUseWithThermostatDailyPrograms
	out.ManualOverrideAllowed = &preset.ManualOverrideAllowed
	return out
}

func toClimatePreset(p climate.AvailablePreset) api.ClimatePreset {
	out := api.ClimatePreset{
		ClimatePresetKey:                  p.Key,
		DisplayName:                       p.DisplayName(),
		Name:                              p.Name,
		ClimatePresetMode:                 p.Mode,
		CanEdit:                           p.CanEdit,
		CanDelete:                         p.CanDelete,
		CanUseWithThermostatDailyPrograms: p.CanUseWithDailyPrograms,
		ManualOverrideAllowed:             p.ManualOverrideAllowed,
		HvacModeSetting:                   string(p.Setting.Mode),
		FanModeSetting:                    string(p.Setting.Fan),
	}
	out.HeatingSetPointCelsius, out.HeatingSetPointFahrenheit = inBothUnits(p.Setting.Heat)
	out.CoolingSetPointCelsius, out.CoolingSetPointFahrenheit = inBothUnits(p.Setting.Cool)
	return out
}

func toThreshold(t climate.Threshold) *api.TemperatureThreshold {
	out := &api.TemperatureThreshold{}
	out.LowerLimitCelsius, out.LowerLimitFahrenheit = inBothUnits(t.Lower)
	out.UpperLimitCelsius, out.UpperLimitFahrenheit = inBothUnits(t.Upper)
	return out
}

// inBothUnits returns a temperature in °C and °F as the API shows it.
func inBothUnits(celsius *float64) (inCelsius, inFahrenheit *float64) {
	if celsius == nil {
		return nil, nil
	}
	return new(climate.Round(*celsius)), new(climate.Round(climate.Fahrenheit(*celsius)))
}
