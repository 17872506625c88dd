package rest

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/thermostat"
)

// CreateThermostatDailyProgram answers /thermostats/daily_programs/create.
func (h *handlers) CreateThermostatDailyProgram(
	ctx context.Context, r openapi.CreateThermostatDailyProgramRequestObject,
) (openapi.CreateThermostatDailyProgramResponseObject, error) {
	program, err := h.access.Thermostats.CreateDailyProgram(
		ctx,
		principal(ctx),
		r.Body.DeviceID,
		r.Body.Name,
		each(r.Body.Periods, fromPeriod),
	)
	return openapi.CreateThermostatDailyProgram200JSONResponse{
		Ok:                     true,
		ThermostatDailyProgram: toDailyProgram(program),
	}, err
}

// UpdateThermostatDailyProgram answers /thermostats/daily_programs/update.
func (h *handlers) UpdateThermostatDailyProgram(
	ctx context.Context, r openapi.UpdateThermostatDailyProgramRequestObject,
) (openapi.UpdateThermostatDailyProgramResponseObject, error) {
	attempt, err := h.access.Thermostats.UpdateDailyProgram(
		ctx,
		principal(ctx),
		r.Body.ThermostatDailyProgramID,
		r.Body.Name,
		each(r.Body.Periods, fromPeriod),
	)
	answer, err := h.attemptResponse(ctx, attempt, err, false)
	return openapi.UpdateThermostatDailyProgram200JSONResponse(answer), err
}

// DeleteThermostatDailyProgram answers /thermostats/daily_programs/delete.
func (h *handlers) DeleteThermostatDailyProgram(
	ctx context.Context, r openapi.DeleteThermostatDailyProgramRequestObject,
) (openapi.DeleteThermostatDailyProgramResponseObject, error) {
	err := h.access.Thermostats.DeleteDailyProgram(ctx, principal(ctx), r.Body.ThermostatDailyProgramID)
	return openapi.DeleteThermostatDailyProgram200JSONResponse{Ok: true}, err
}

// UpdateThermostatWeeklyProgram answers /thermostats/update_weekly_program.
func (h *handlers) UpdateThermostatWeeklyProgram(
	ctx context.Context, r openapi.UpdateThermostatWeeklyProgramRequestObject,
) (openapi.UpdateThermostatWeeklyProgramResponseObject, error) {
	attempt, err := h.access.Thermostats.SetWeeklyProgram(ctx, principal(ctx), r.Body.DeviceID, [7]string{
		time.Monday:    r.Body.MondayProgramID,
		time.Tuesday:   r.Body.TuesdayProgramID,
		time.Wednesday: r.Body.WednesdayProgramID,
		time.Thursday:  r.Body.ThursdayProgramID,
		time.Friday:    r.Body.FridayProgramID,
		time.Saturday:  r.Body.SaturdayProgramID,
		time.Sunday:    r.Body.SundayProgramID,
	})
	answer, err := h.attemptResponse(ctx, attempt, err, false)
	return openapi.UpdateThermostatWeeklyProgram200JSONResponse(answer), err
}

func fromPeriod(p api.ThermostatDailyProgramPeriod) climate.Period {
	return climate.Period{StartsAtTime: p.StartsAtTime, Preset: p.ClimatePresetKey}
}

func toDailyProgram(p thermostat.DailyProgram) api.ThermostatDailyProgram {
	return api.ThermostatDailyProgram{
		ThermostatDailyProgramID: p.ID.String(),
		DeviceID:                 p.DeviceID.String(),
		WorkspaceID:              p.WorkspaceID.String(),
		Name:                     &p.Name,
		CreatedAt:                p.CreatedAt,
		Periods: each(p.Periods, func(p climate.Period) api.ThermostatDailyProgramPeriod {
			return api.ThermostatDailyProgramPeriod{StartsAtTime: p.StartsAtTime, ClimatePresetKey: p.Preset}
		}),
	}
}

func toWeeklyProgram(w *climate.WeeklyProgram) api.Change[api.ThermostatWeeklyProgram] {
	if w == nil {
		return api.Change[api.ThermostatWeeklyProgram]{Given: true}
	}
	return api.Change[api.ThermostatWeeklyProgram]{Given: true, To: &api.ThermostatWeeklyProgram{
		MondayProgramID:    identifier(w.Days[time.Monday]),
		TuesdayProgramID:   identifier(w.Days[time.Tuesday]),
		WednesdayProgramID: identifier(w.Days[time.Wednesday]),
		ThursdayProgramID:  identifier(w.Days[time.Thursday]),
		FridayProgramID:    identifier(w.Days[time.Friday]),
		SaturdayProgramID:  identifier(w.Days[time.Saturday]),
		SundayProgramID:    identifier(w.Days[time.Sunday]),
		CreatedAt:          w.CreatedAt,
	}}
}
