package spec_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// movedClock is the system's clock, and ahead of it after forward.
type movedClock struct{ ahead atomic.Int64 }

func (c *movedClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// forward moves the clock, and makes the devices of the server look at it.
func (c *movedClock) forward(t *testing.T, s *apptest.Server, d time.Duration) {
	t.Helper()
	c.ahead.Add(int64(d))
	s.Exec(t, "update devices set due_at = now(), wake_seq = wake_seq + 1")
}

// startClimate starts a server with a clock of its own and thermostats of profiles.
func startClimate(t *testing.T, profiles ...string) (*apptest.Server, *movedClock) {
	t.Helper()
	c := &movedClock{}
	s := apptest.Start(
		t,
		apptest.WithProfiles(profiles...),
		apptest.WithAccess(func(o *access.Options) { o.Now = c.now }),
	)
	return s, c
}

// untilPreset waits until a preset is in effect on a device; empty: none.
func untilPreset(t *testing.T, s *apptest.Server, device, key string) {
	t.Helper()
	apptest.Until(t, "the preset is "+key, func() bool {
		return climateOf(t, s, device).CurrentClimateSetting.ClimatePresetKey == key
	})
}

func schedule(t *testing.T, s *apptest.Server, id any) api.ThermostatSchedule {
	t.Helper()
	var out api.ThermostatScheduleResponse
	in := params{"thermostat_schedule_id": id}
	if status := s.Post(t, "/thermostats/schedules/get", in, &out); status != http.StatusOK {
		t.Fatalf("get the schedule: %d", status)
	}
	return out.ThermostatSchedule
}

const (
	presetActivated = "thermostat.climate_preset_activated"
	adjustedByHand  = "thermostat.manually_adjusted"
)

// Schedules set their presets, overrule or accept what a person does at the device, and end in the fallback preset.
func TestThermostats_Schedules(t *testing.T) {
	t.Parallel()
	s, clock := startClimate(t, "nest")
	device := s.Device(t, "nest")
	for key, degrees := range map[string]float64{"day": 21, "night": 17, "away": 15} {
		accepted(t, s, "create_climate_preset", params{
			"device_id":                 device,
			"climate_preset_key":        key,
			"name":                      "At " + key,
			"hvac_mode_setting":         "heat",
			"heating_set_point_celsius": degrees,
		})
	}
	accepted(t, s, "set_fallback_climate_preset", params{"device_id": device, "climate_preset_key": "away"})
	in := func(d time.Duration) string { return clock.now().Add(d).UTC().Format(time.RFC3339Nano) }
	strict := madeBy(t, s, "/thermostats/schedules/create", "thermostat_schedule", params{
		"device_id":          device,
		"climate_preset_key": "day",
		"name":               "Guests",
		"starts_at":          in(-time.Minute),
		"ends_at":            in(4 * time.Hour),
	})["thermostat_schedule_id"]
	untilPreset(t, s, device, "day")
	if toldWith(t, s, device, presetActivated, "thermostat_schedule_id", strict) != 1 {
		t.Error("the start of the schedule was not reported once")
	}
	if p := climateOf(t, s, device); *p.ActiveThermostatScheduleID.To != strict || *p.IsTemporaryManualOverrideActive {
		t.Errorf("the current schedule is %v", p.ActiveThermostatScheduleID)
	}
	byHand := params{"device_id": device, "hvac_mode": "heat", "heating_set_point_celsius": 28}
	accepted(t, s, "simulate/hvac_mode_adjusted", byHand)
	untilPreset(t, s, device, "day")
	if n := toldWith(t, s, device, adjustedByHand, "method", "external"); n != 1 {
		t.Errorf("the change at the device was reported %d times", n)
	}
	accepted(t, s, "schedules/update", params{
		"thermostat_schedule_id":      strict,
		"is_override_allowed":         true,
		"max_override_period_minutes": 30,
	})
	accepted(t, s, "simulate/hvac_mode_adjusted", byHand)
	if p := climateOf(t, s, device); !*p.IsTemporaryManualOverrideActive ||
		!near(p.CurrentClimateSetting.HeatingSetPointCelsius, 28) || p.CurrentClimateSetting.ClimatePresetKey != "" {
		t.Errorf("the override does not hold: %+v", *p.CurrentClimateSetting)
	}
	clock.forward(t, s, 31*time.Minute)
	untilPreset(t, s, device, "day")
	inner := madeBy(t, s, "/thermostats/schedules/create", "thermostat_schedule", params{
		"device_id":          device,
		"climate_preset_key": "night",
		"starts_at":          in(time.Hour),
		"ends_at":            in(2 * time.Hour),
	})["thermostat_schedule_id"]
	clock.forward(t, s, time.Hour+time.Minute)
	untilPreset(t, s, device, "night")
	accepted(t, s, "schedules/delete", params{"thermostat_schedule_id": inner})
	untilPreset(t, s, device, "day")
	clock.forward(t, s, 3*time.Hour)
	untilPreset(t, s, device, "away")
	if toldWith(t, s, device, presetActivated, "is_fallback_climate_preset", true) != 1 {
		t.Error("the fallback preset was not reported once")
	}
	got := schedule(t, s, strict)
	if got.DeviceID != device || *got.Name != "Guests" || got.ClimatePresetKey != "day" || len(got.Errors) != 0 ||
		!*got.IsOverrideAllowed || *got.MaxOverridePeriodMinutes != 30 {
		t.Errorf("the schedule %+v", got)
	}
	var list api.ThermostatSchedulesResponse
	s.Post(t, "/thermostats/schedules/list", params{"device_id": device}, &list)
	if len(list.ThermostatSchedules) != 1 {
		t.Errorf("%d schedules are listed", len(list.ThermostatSchedules))
	}
}

// Programs set the presets of their periods in the time zone of the device. A person's change lasts for a period.
func TestThermostats_Programs(t *testing.T) {
	t.Parallel()
	s, clock := startClimate(t, "nest")
	device := s.Device(t, "nest")
	for key, degrees := range map[string]float64{"day": 21, "night": 17} {
		accepted(t, s, "create_climate_preset", params{
			"device_id":                 device,
			"climate_preset_key":        key,
			"hvac_mode_setting":         "heat",
			"heating_set_point_celsius": degrees,
		})
	}
	// Begin at one o'clock.
	clock.forward(t, s, time.Until(time.Now().UTC().Truncate(24*time.Hour).Add(25*time.Hour)))
	periods := []params{
		{"starts_at_time": "00:00:00", "climate_preset_key": "night"},
		{"starts_at_time": "07:30:00", "climate_preset_key": "day"},
	}
	program := madeBy(t, s, "/thermostats/daily_programs/create", "thermostat_daily_program", params{
		"device_id": device, "name": "Every day", "periods": periods,
	})["thermostat_daily_program_id"]
	week := params{"device_id": device}
	for _, day := range []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"} {
		week[day+"_program_id"] = program
	}
	if a := commanded(t, s, "update_weekly_program", week); a.ActionType != "PUSH_THERMOSTAT_PROGRAMS" ||
		a.Status != "success" {
		t.Fatalf("the attempt %+v", a)
	}
	untilPreset(t, s, device, "night")
	p := climateOf(t, s, device)
	if w := p.ThermostatWeeklyProgram.To; *w.MondayProgramID != program || len(*p.ThermostatDailyPrograms) != 1 {
		t.Errorf("the weekly program %+v", w)
	}
	clock.forward(t, s, 7*time.Hour)
	untilPreset(t, s, device, "day")
	accepted(t, s, "simulate/hvac_mode_adjusted", params{"device_id": device, "hvac_mode": "off"})
	if p := climateOf(t, s, device); p.CurrentClimateSetting.HvacModeSetting != "off" ||
		!*p.IsTemporaryManualOverrideActive {
		t.Errorf("the override does not hold: %+v", *p.CurrentClimateSetting)
	}
	periods[1]["starts_at_time"] = "09:00:00"
	succeeds(t, s, "daily_programs/update", params{
		"thermostat_daily_program_id": program, "name": "Later", "periods": periods,
	})
	untilPreset(t, s, device, "night")
	clock.forward(t, s, time.Hour)
	untilPreset(t, s, device, "day")
	if got := refused(t, s, s.APIKey, "/thermostats/daily_programs/delete", params{
		"thermostat_daily_program_id": program,
	}); got != "400 invalid_input" {
		t.Errorf("the deletion of a program in use: %s", got)
	}
	succeeds(t, s, "update_weekly_program", params{"device_id": device})
	accepted(t, s, "daily_programs/delete", params{"thermostat_daily_program_id": program})
	if p := climateOf(t, s, device); p.ThermostatWeeklyProgram.To != nil || len(*p.ThermostatDailyPrograms) != 0 {
		t.Errorf("programs remain: %+v", p.ThermostatDailyPrograms)
	}
}
