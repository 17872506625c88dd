package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/thermostat"
)

// CreateThermostatSchedule answers /thermostats/schedules/create.
func (h *handlers) CreateThermostatSchedule(
	ctx context.Context, r openapi.CreateThermostatScheduleRequestObject,
) (openapi.CreateThermostatScheduleResponseObject, error) {
	s, err := h.access.Thermostats.CreateSchedule(ctx, principal(ctx), r.Body.DeviceID, thermostat.ScheduleFields{
		Name:            &r.Body.Name,
		Preset:          r.Body.ClimatePresetKey,
		StartsAt:        r.Body.StartsAt,
		EndsAt:          r.Body.EndsAt,
		OverrideAllowed: &r.Body.IsOverrideAllowed,
		MaxOverride:     r.Body.MaxOverridePeriodMinutes,
		SetMaxOverride:  true,
	})
	return openapi.CreateThermostatSchedule200JSONResponse{Ok: true, ThermostatSchedule: toSchedule(s)}, err
}

// GetThermostatSchedule answers /thermostats/schedules/get.
func (h *handlers) GetThermostatSchedule(
	ctx context.Context, r openapi.GetThermostatScheduleRequestObject,
) (openapi.GetThermostatScheduleResponseObject, error) {
	s, err := h.access.Thermostats.GetSchedule(ctx, principal(ctx), r.Body.ThermostatScheduleID)
	return openapi.GetThermostatSchedule200JSONResponse{Ok: true, ThermostatSchedule: toSchedule(s)}, err
}

// ListThermostatSchedules answers /thermostats/schedules/list.
func (h *handlers) ListThermostatSchedules(
	ctx context.Context, r openapi.ListThermostatSchedulesRequestObject,
) (openapi.ListThermostatSchedulesResponseObject, error) {
	p, err := h.access.Auth.AsSeenBy(ctx, principal(ctx), r.Body.UserIdentifierKey)
	if err != nil {
		return nil, err
	}
	list, err := h.access.Thermostats.ListSchedules(ctx, p, r.Body.DeviceID)
	return openapi.ListThermostatSchedules200JSONResponse{
		Ok:                  true,
		ThermostatSchedules: each(list, toSchedule),
	}, err
}

// UpdateThermostatSchedule answers /thermostats/schedules/update.
func (h *handlers) UpdateThermostatSchedule(
	ctx context.Context, r openapi.UpdateThermostatScheduleRequestObject,
) (openapi.UpdateThermostatScheduleResponseObject, error) {
	err := h.access.Thermostats.UpdateSchedule(
		ctx,
		principal(ctx),
		r.Body.ThermostatScheduleID,
		thermostat.ScheduleFields{
			Name:            r.Body.Name,
			Preset:          r.Body.ClimatePresetKey,
			StartsAt:        r.Body.StartsAt,
			EndsAt:          r.Body.EndsAt,
			OverrideAllowed: r.Body.IsOverrideAllowed,
			MaxOverride:     r.Body.MaxOverridePeriodMinutes.To,
			SetMaxOverride:  r.Body.MaxOverridePeriodMinutes.Given,
		},
	)
	return openapi.UpdateThermostatSchedule200JSONResponse{Ok: true}, err
}

// DeleteThermostatSchedule answers /thermostats/schedules/delete.
func (h *handlers) DeleteThermostatSchedule(
	ctx context.Context, r openapi.DeleteThermostatScheduleRequestObject,
) (openapi.DeleteThermostatScheduleResponseObject, error) {
	err := h.access.Thermostats.DeleteSchedule(ctx, principal(ctx), r.Body.ThermostatScheduleID)
	return openapi.DeleteThermostatSchedule200JSONResponse{Ok: true}, err
}

func toSchedule(s thermostat.Schedule) api.ThermostatSchedule {
	return api.ThermostatSchedule{
		ThermostatScheduleID:     s.ID.String(),
		DeviceID:                 s.DeviceID.String(),
		WorkspaceID:              s.WorkspaceID.String(),
		Name:                     s.Name,
		ClimatePresetKey:         s.Preset,
		StartsAt:                 s.StartsAt,
		EndsAt:                   s.EndsAt,
		IsOverrideAllowed:        &s.OverrideAllowed,
		MaxOverridePeriodMinutes: s.MaxOverride,
		CreatedAt:                s.CreatedAt,
		Errors: each(s.Errors, func(e climate.ScheduleError) api.Problem {
			return api.Problem{ErrorCode: e.Code, Message: e.Message, CreatedAt: e.At}
		}),
	}
}
