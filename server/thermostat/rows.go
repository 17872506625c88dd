package thermostat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// rows are a locked thermostat and its schedules in a transaction.
type rows struct {
	s     *Service
	tx    store.Tx
	d     dbsqlc.Device
	rules *climate.Thermostat
	// schedules are all of the device, by start.
	schedules []*climate.Schedule
	before    []byte
	ended     map[uuid.UUID]climate.Ended
}

// load returns the rows of a device whose row is locked.
func (s *Service) load(
	ctx context.Context, tx store.Tx, d dbsqlc.Device, limits capability.Thermostat,
) (*rows, error) {
	t := &climate.Thermostat{
		Limits:   limits,
		Online:   d.Online,
		Zone:     zoneOf(d),
		Now:      s.opt.Now().UTC(),
		Timeouts: climate.Timeouts{Confirm: s.opt.ConfirmTimeout, ReadLag: s.opt.ReadLag},
	}
	if d.Climate != nil {
		if err := json.Unmarshal(d.Climate, &t.State); err != nil {
			return nil, fmt.Errorf("read the state of the thermostat: %w", err)
		}
	}
	found, err := tx.ListThermostatSchedules(
		ctx,
		dbsqlc.ListThermostatSchedulesParams{WorkspaceID: d.WorkspaceID, DeviceID: d.DeviceID},
	)
	if err != nil {
		return nil, fmt.Errorf("list the schedules: %w", err)
	}
	r := &rows{
		s:     s,
		tx:    tx,
		d:     d,
		rules: t,
		ended: map[uuid.UUID]climate.Ended{},
	}
	for _, row := range found {
		r.schedules = append(r.schedules, toSchedule(row))
	}
	for _, one := range r.schedules {
		if one.EndsAt.After(t.Now) || one.EndsAt.After(t.State.Baseline.At) {
			t.Schedules = append(t.Schedules, one)
		}
	}
	r.before = t.Snapshot()
	return r, nil
}

// zoneOf returns where the periods of the device's programs apply; nil: UTC.
func zoneOf(d dbsqlc.Device) *time.Location {
	zone, err := time.LoadLocation(domain.Value(d.ReportedTimeZone))
	if err != nil {
		return nil
	}
	return zone
}

// write writes what the rules have changed.
func (r *rows) write(ctx context.Context) error {
	changes := r.rules.Changes(r.before)
	if changes.State != nil {
		err := r.tx.SetDeviceClimate(ctx, dbsqlc.SetDeviceClimateParams{
			DeviceID: r.d.DeviceID,
			Climate:  changes.State,
		})
		if err != nil {
			return fmt.Errorf("write the state of the thermostat: %w", err)
		}
	}
	for _, one := range changes.Schedules {
		if err := r.tx.UpdateThermostatSchedule(ctx, updateOf(one)); err != nil {
			return fmt.Errorf("write the errors of a schedule: %w", err)
		}
	}
	for _, e := range changes.Ended {
		r.ended[e.Attempt] = e
		if err := r.s.devices.EndAttempt(ctx, r.tx, e.Attempt, e.ErrorType, e.Message); err != nil {
			return err
		}
	}
	occurrences := make([]event.Occurrence, len(changes.Events))
	for i, e := range changes.Events {
		about := event.AboutDevice(r.d)
		about.Fields = e.Fields
		occurrences[i] = event.Occurrence{Type: e.Type, About: about}
	}
	return r.s.events.EmitAll(ctx, r.tx, occurrences)
}

// schedule returns a schedule of the device, nil if there is none.
func (r *rows) schedule(id uuid.UUID) *climate.Schedule {
	i := slices.IndexFunc(r.schedules, func(s *climate.Schedule) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return r.schedules[i]
}

func toSchedule(r dbsqlc.ThermostatSchedule) *climate.Schedule {
	s := &climate.Schedule{
		ID:              r.ThermostatScheduleID,
		Name:            r.Name,
		Preset:          r.ClimatePresetKey,
		StartsAt:        r.StartsAt.UTC(),
		EndsAt:          r.EndsAt.UTC(),
		OverrideAllowed: r.OverrideAllowed,
		CreatedAt:       r.CreatedAt.UTC(),
	}
	if r.MaxOverrideMinutes != nil {
		s.MaxOverride = new(int(*r.MaxOverrideMinutes))
	}
	_ = json.Unmarshal(r.Errors, &s.Errors) // written by updateOf
	return s
}

func updateOf(s *climate.Schedule) dbsqlc.UpdateThermostatScheduleParams {
	return dbsqlc.UpdateThermostatScheduleParams{
		ThermostatScheduleID: s.ID,
		Name:                 s.Name,
		ClimatePresetKey:     s.Preset,
		StartsAt:             s.StartsAt,
		EndsAt:               s.EndsAt,
		OverrideAllowed:      s.OverrideAllowed,
		MaxOverrideMinutes:   minutes(s.MaxOverride),
		Errors:               domain.MustJSON(append([]climate.ScheduleError{}, s.Errors...)),
	}
}

func minutes(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n)) //nolint:gosec // the contract limits it to a year
}
