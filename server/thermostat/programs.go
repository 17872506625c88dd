package thermostat

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DailyProgram is a daily program of a thermostat.
type DailyProgram struct {
	climate.DailyProgram

	DeviceID, WorkspaceID uuid.UUID
}

// CreateDailyProgram adds a daily program. It fails with NotFound, also for an unknown climate preset, and with Invalid for
// too many programs and for periods that are no day.
func (s *Service) CreateDailyProgram(
	ctx context.Context, p domain.Principal, deviceID, name string, periods []climate.Period,
) (out DailyProgram, err error) {
	err = s.change(ctx, p, deviceID, "create a daily program", func(ctx context.Context, r *rows) error {
		one := climate.DailyProgram{
			ID:        domain.NewID(),
			Name:      name,
			Periods:   periods,
			CreatedAt: r.rules.Now,
		}
		if err := r.rules.CreateDailyProgram(one); err != nil {
			return err
		}
		out = DailyProgram{one, r.d.DeviceID, r.d.WorkspaceID}
		err := r.tx.InsertThermostatDailyProgram(ctx, dbsqlc.InsertThermostatDailyProgramParams{
			ThermostatDailyProgramID: one.ID,
			WorkspaceID:              r.d.WorkspaceID,
			DeviceID:                 r.d.DeviceID,
		})
		return domain.Wrap(err, "write the daily program")
	})
	return out, err
}

// UpdateDailyProgram changes the name and the periods of a daily program. It returns the attempt, which ends when the
// device is set to what the programs say now. It fails like CreateDailyProgram.
func (s *Service) UpdateDailyProgram(
	ctx context.Context, p domain.Principal, id, name string, periods []climate.Period,
) (device.Attempt, error) {
	program, deviceID, err := s.deviceOfProgram(ctx, p, id)
	if err != nil {
		return device.Attempt{}, err
	}
	a, err := s.attempt(
		ctx, p, deviceID, domain.PushThermostatPrograms, func(_ context.Context, r *rows, a climate.Attempt) error {
			return r.rules.UpdateDailyProgram(a, program, name, periods)
		},
	)
	return a, insteadOf(device.NotFound(deviceID), err, programNotFound(id))
}

// DeleteDailyProgram deletes a daily program. It fails with NotFound, and with Invalid for one that the weekly program
// uses.
func (s *Service) DeleteDailyProgram(ctx context.Context, p domain.Principal, id string) error {
	program, deviceID, err := s.deviceOfProgram(ctx, p, id)
	if err != nil {
		return err
	}
	err = s.change(ctx, p, deviceID, "delete a daily program", func(ctx context.Context, r *rows) error {
		if err := r.rules.DeleteDailyProgram(program); err != nil {
			return err
		}
		return r.tx.DeleteThermostatDailyProgram(ctx, program)
	})
	return insteadOf(device.NotFound(deviceID), err, programNotFound(id))
}

// SetWeeklyProgram replaces the weekly program. Days are indexed by time.Weekday; an empty identifier is a day without a
// program. It returns an attempt like UpdateDailyProgram. It fails with NotFound.
func (s *Service) SetWeeklyProgram(
	ctx context.Context, p domain.Principal, deviceID string, days [7]string,
) (device.Attempt, error) {
	var parsed [7]uuid.UUID
	for i, day := range days {
		if day == "" {
			continue
		}
		var err error
		if parsed[i], err = parseID(day, programNotFound(day)); err != nil {
			return device.Attempt{}, err
		}
	}
	return s.attempt(
		ctx, p, deviceID, domain.PushThermostatPrograms, func(_ context.Context, r *rows, a climate.Attempt) error {
			return r.rules.SetWeekly(a, parsed)
		},
	)
}

// deviceOfProgram returns the device of a daily program, which the caller may not see. It fails with NotFound.
func (s *Service) deviceOfProgram(
	ctx context.Context, p domain.Principal, id string,
) (program uuid.UUID, deviceID string, err error) {
	if program, err = parseID(id, programNotFound(id)); err != nil {
		return program, "", err
	}
	found, err := s.db.GetDeviceOfDailyProgram(ctx, dbsqlc.GetDeviceOfDailyProgramParams{
		WorkspaceID:              p.WorkspaceID,
		ThermostatDailyProgramID: program,
	})
	switch {
	case store.IsNoRows(err):
		return program, "", programNotFound(id)
	case err != nil:
		return program, "", fmt.Errorf("find the daily program: %w", err)
	}
	return program, found.String(), nil
}

func programNotFound(id string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "thermostat_daily_program_not_found",
		Message: "Could not find a daily program with this thermostat_daily_program_id.",
		Data:    map[string]any{"thermostat_daily_program_id": id},
	}
}
