package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func notAvailable() error {
	return &domain.Error{
		Kind:    domain.Unavailable,
		Type:    "service_unavailable",
		Message: "This operation is not available yet.",
	}
}

func (h *handlers) GetThermostat(
	context.Context, openapi.GetThermostatRequestObject,
) (openapi.GetThermostatResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) HeatThermostat(
	context.Context, openapi.HeatThermostatRequestObject,
) (openapi.HeatThermostatResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) CoolThermostat(
	context.Context, openapi.CoolThermostatRequestObject,
) (openapi.CoolThermostatResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) HeatCoolThermostat(
	context.Context, openapi.HeatCoolThermostatRequestObject,
) (openapi.HeatCoolThermostatResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) TurnOffThermostat(
	context.Context, openapi.TurnOffThermostatRequestObject,
) (openapi.TurnOffThermostatResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) SetHvacMode(
	context.Context, openapi.SetHvacModeRequestObject,
) (openapi.SetHvacModeResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) SetFanMode(
	context.Context, openapi.SetFanModeRequestObject,
) (openapi.SetFanModeResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) ActivateClimatePreset(
	context.Context, openapi.ActivateClimatePresetRequestObject,
) (openapi.ActivateClimatePresetResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) CreateClimatePreset(
	context.Context, openapi.CreateClimatePresetRequestObject,
) (openapi.CreateClimatePresetResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) UpdateClimatePreset(
	context.Context, openapi.UpdateClimatePresetRequestObject,
) (openapi.UpdateClimatePresetResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) DeleteClimatePreset(
	context.Context, openapi.DeleteClimatePresetRequestObject,
) (openapi.DeleteClimatePresetResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) SetFallbackClimatePreset(
	context.Context, openapi.SetFallbackClimatePresetRequestObject,
) (openapi.SetFallbackClimatePresetResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) SetTemperatureThreshold(
	context.Context, openapi.SetTemperatureThresholdRequestObject,
) (openapi.SetTemperatureThresholdResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) CreateThermostatSchedule(
	context.Context, openapi.CreateThermostatScheduleRequestObject,
) (openapi.CreateThermostatScheduleResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) GetThermostatSchedule(
	context.Context, openapi.GetThermostatScheduleRequestObject,
) (openapi.GetThermostatScheduleResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) ListThermostatSchedules(
	context.Context, openapi.ListThermostatSchedulesRequestObject,
) (openapi.ListThermostatSchedulesResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) UpdateThermostatSchedule(
	context.Context, openapi.UpdateThermostatScheduleRequestObject,
) (openapi.UpdateThermostatScheduleResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) DeleteThermostatSchedule(
	context.Context, openapi.DeleteThermostatScheduleRequestObject,
) (openapi.DeleteThermostatScheduleResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) CreateThermostatDailyProgram(
	context.Context, openapi.CreateThermostatDailyProgramRequestObject,
) (openapi.CreateThermostatDailyProgramResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) UpdateThermostatDailyProgram(
	context.Context, openapi.UpdateThermostatDailyProgramRequestObject,
) (openapi.UpdateThermostatDailyProgramResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) DeleteThermostatDailyProgram(
	context.Context, openapi.DeleteThermostatDailyProgramRequestObject,
) (openapi.DeleteThermostatDailyProgramResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) UpdateThermostatWeeklyProgram(
	context.Context, openapi.UpdateThermostatWeeklyProgramRequestObject,
) (openapi.UpdateThermostatWeeklyProgramResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) SimulateHvacModeAdjusted(
	context.Context, openapi.SimulateHvacModeAdjustedRequestObject,
) (openapi.SimulateHvacModeAdjustedResponseObject, error) {
	return nil, notAvailable()
}

func (h *handlers) SimulateTemperatureReached(
	context.Context, openapi.SimulateTemperatureReachedRequestObject,
) (openapi.SimulateTemperatureReachedResponseObject, error) {
	return nil, notAvailable()
}
