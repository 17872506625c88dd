package thermostat

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	// MaxSchedules is how many schedules of a thermostat can run or start later.
	MaxSchedules = 500
	// maxEndedSchedules is how many schedules of a thermostat are kept after their end.
	maxEndedSchedules = 500
	// endedScheduleTTL is how long a schedule is kept after its end.
	endedScheduleTTL = 90 * 24 * time.Hour
)

// Schedule is a schedule of a thermostat.
type Schedule struct {
	climate.Schedule

	DeviceID, WorkspaceID uuid.UUID
}

// ScheduleFields are the fields of a request about a schedule. A nil or empty field does not change.
type ScheduleFields struct {
	// Name is the new name; empty: none.
	Name *string
	// Preset is the climate_preset_key.
	Preset string
	// StartsAt and EndsAt are times in a layout of the API.
	StartsAt, EndsAt string
	OverrideAllowed  *bool
	// MaxOverride is used if SetMaxOverride is true; nil: no limit. It is in minutes.
	MaxOverride    *int
	SetMaxOverride bool
}

// apply changes a schedule. It fails with Invalid for a text that is no time.
func (f ScheduleFields) apply(s *climate.Schedule) error {
	if f.Name != nil {
		s.Name = domain.NonEmpty(*f.Name)
	}
	if f.Preset != "" {
		s.Preset = f.Preset
	}
	var startsErr, endsErr error
	if f.StartsAt != "" {
		s.StartsAt, startsErr = domain.ParseTime("starts_at", f.StartsAt)
	}
	if f.EndsAt != "" {
		s.EndsAt, endsErr = domain.ParseTime("ends_at", f.EndsAt)
	}
	if f.OverrideAllowed != nil {
		s.OverrideAllowed = *f.OverrideAllowed
	}
	if f.SetMaxOverride {
		s.MaxOverride = f.MaxOverride
	}
	return domain.All(startsErr, endsErr)
}

// CreateSchedule adds a schedule. A start in the past becomes now. It fails with NotFound, and with Invalid at
// MaxSchedules and for a time frame that is empty, over, or starts with another one.
func (s *Service) CreateSchedule(
	ctx context.Context, p domain.Principal, deviceID string, f ScheduleFields,
) (out Schedule, err error) {
	err = s.change(ctx, p, deviceID, "create a schedule", func(ctx context.Context, r *rows) error {
		one := &climate.Schedule{ID: domain.NewID(), CreatedAt: r.rules.Now}
		if err := f.apply(one); err != nil {
			return err
		}
		if err := r.checkRoom(); err != nil {
			return err
		}
		if err := r.rules.PutSchedule(one); err != nil {
			return err
		}
		if err := r.insertSchedule(ctx, one); err != nil {
			return err
		}
		out = Schedule{*one, r.d.DeviceID, r.d.WorkspaceID}
		return nil
	})
	return out, err
}

// checkRoom fails with Invalid at MaxSchedules.
func (r *rows) checkRoom() error {
	n := 0
	for _, one := range r.schedules {
		if one.EndsAt.After(r.rules.Now) {
			n++
		}
	}
	if n < MaxSchedules {
		return nil
	}
	return domain.Invalidf(
		"",
		"The thermostat has %d schedules that have not ended. Delete one first with /thermostats/schedules/delete",
		n,
	)
}

// insertSchedule inserts a schedule, and deletes those that ended long ago.
func (r *rows) insertSchedule(ctx context.Context, one *climate.Schedule) error {
	err := r.tx.DeleteEndedThermostatSchedules(ctx, dbsqlc.DeleteEndedThermostatSchedulesParams{
		DeviceID: r.d.DeviceID,
		Now:      r.rules.Now,
		Before:   r.rules.Now.Add(-endedScheduleTTL),
		MaxRows:  maxEndedSchedules,
	})
	if err != nil {
		return fmt.Errorf("delete old schedules: %w", err)
	}
	err = r.tx.InsertThermostatSchedule(ctx, dbsqlc.InsertThermostatScheduleParams{
		ThermostatScheduleID: one.ID,
		WorkspaceID:          r.d.WorkspaceID,
		DeviceID:             r.d.DeviceID,
		Name:                 one.Name,
		ClimatePresetKey:     one.Preset,
		StartsAt:             one.StartsAt,
		EndsAt:               one.EndsAt,
		OverrideAllowed:      one.OverrideAllowed,
		MaxOverrideMinutes:   minutes(one.MaxOverride),
		CreatedAt:            one.CreatedAt,
	})
	return domain.Wrap(err, "write the schedule")
}

// GetSchedule returns a schedule. It fails with NotFound.
func (s *Service) GetSchedule(ctx context.Context, p domain.Principal, id string) (out Schedule, err error) {
	parsed, err := parseID(id, scheduleNotFound(id))
	if err != nil {
		return out, err
	}
	row, err := s.db.GetThermostatSchedule(ctx, dbsqlc.GetThermostatScheduleParams{
		WorkspaceID:          p.WorkspaceID,
		ThermostatScheduleID: parsed,
		Scope:                p.Scope,
	})
	switch {
	case store.IsNoRows(err):
		return out, scheduleNotFound(id)
	case err != nil:
		return out, fmt.Errorf("read the schedule: %w", err)
	}
	return Schedule{*toSchedule(row), row.DeviceID, row.WorkspaceID}, nil
}

// ListSchedules returns the schedules of a thermostat, by start. It fails with NotFound.
func (s *Service) ListSchedules(ctx context.Context, p domain.Principal, deviceID string) ([]Schedule, error) {
	d, err := s.Get(ctx, p, deviceID, "")
	if err != nil {
		return nil, err
	}
	found, err := s.db.ListThermostatSchedules(
		ctx,
		dbsqlc.ListThermostatSchedulesParams{WorkspaceID: p.WorkspaceID, DeviceID: d.ID},
	)
	if err != nil {
		return nil, fmt.Errorf("list the schedules: %w", err)
	}
	out := make([]Schedule, len(found))
	for i, row := range found {
		out[i] = Schedule{*toSchedule(row), row.DeviceID, row.WorkspaceID}
	}
	return out, nil
}

// UpdateSchedule changes a schedule. It fails like CreateSchedule.
func (s *Service) UpdateSchedule(ctx context.Context, p domain.Principal, id string, f ScheduleFields) error {
	change := func(ctx context.Context, r *rows, one climate.Schedule) error {
		if err := f.apply(&one); err != nil {
			return err
		}
		if err := r.rules.PutSchedule(&one); err != nil {
			return err
		}
		err := r.tx.UpdateThermostatSchedule(ctx, updateOf(&one))
		return domain.Wrap(err, "write the schedule")
	}
	return s.changeSchedule(ctx, p, id, "update a schedule", change)
}

// DeleteSchedule deletes a schedule, and ends it if it is the current one. It fails with NotFound.
func (s *Service) DeleteSchedule(ctx context.Context, p domain.Principal, id string) error {
	remove := func(ctx context.Context, r *rows, one climate.Schedule) error {
		r.rules.RemoveSchedule(one.ID)
		return r.tx.DeleteThermostatSchedule(ctx, one.ID)
	}
	return s.changeSchedule(ctx, p, id, "delete a schedule", remove)
}

// changeSchedule is change for the thermostat of a schedule. It fails with NotFound.
func (s *Service) changeSchedule(
	ctx context.Context, p domain.Principal, id, doing string,
	f func(context.Context, *rows, climate.Schedule) error,
) error {
	found, err := s.GetSchedule(ctx, p, id)
	if err != nil {
		return err
	}
	err = s.change(ctx, p, found.DeviceID.String(), doing, func(ctx context.Context, r *rows) error {
		one := r.schedule(found.ID)
		if one == nil { // deleted meanwhile
			return scheduleNotFound(id)
		}
		return f(ctx, r, *one)
	})
	return insteadOf(device.NotFound(found.DeviceID.String()), err, scheduleNotFound(id))
}

// insteadOf returns other if err has the type of unwanted, and otherwise err.
func insteadOf(unwanted *domain.Error, err error, other *domain.Error) error {
	if e, ok := domain.AsError(err); ok && e.Type == unwanted.Type {
		return other
	}
	return err
}

func scheduleNotFound(id string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "thermostat_schedule_not_found",
		Message: "Could not find a thermostat schedule with this thermostat_schedule_id.",
		Data:    map[string]any{"thermostat_schedule_id": id},
	}
}
