package rest_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// inputsOfThermostats returns a request for each operation on thermostats.
func inputsOfThermostats(t *testing.T, s *apptest.Server) map[string]func() in {
	t.Helper()
	device, made := s.Device(t, "nest"), 0
	with := func(more in) in {
		all := in{"device_id": device}
		maps.Copy(all, more)
		return all
	}
	of := func(more in) func() in { return func() in { return with(more) } }
	newPreset := func() in {
		made++
		return with(in{
			"climate_preset_key": fmt.Sprint("preset ", made), "name": nil, "climate_preset_mode": "home",
			"hvac_mode_setting": "heat", "heating_set_point_celsius": 20, "fan_mode_setting": "auto",
		})
	}
	preset := func() in {
		p := newPreset()
		must(t, s, "/thermostats/create_climate_preset", "", p)
		return with(in{"climate_preset_key": p["climate_preset_key"]})
	}
	newSchedule := func() in {
		made++
		starts := time.Now().Add(time.Duration(made) * time.Hour)
		p := preset()
		p["starts_at"], p["ends_at"] = starts, starts.Add(time.Minute)
		p["name"], p["max_override_period_minutes"], p["is_override_allowed"] = "Guests", nil, true
		return p
	}
	schedule := func() in {
		one := must(t, s, "/thermostats/schedules/create", "thermostat_schedule", newSchedule())
		return in{"thermostat_schedule_id": one["thermostat_schedule_id"]}
	}
	program := func() in {
		return in{"name": "Day", "periods": []in{{"starts_at_time": "00:00:00", "climate_preset_key": "eco"}}}
	}
	newProgram := func() in { return with(program()) }
	daily := func() in {
		one := must(t, s, "/thermostats/daily_programs/create", "thermostat_daily_program", newProgram())
		return in{"thermostat_daily_program_id": one["thermostat_daily_program_id"]}
	}
	return map[string]func() in{
		"/thermostats/get":  of(nil),
		"/thermostats/heat": of(in{"heating_set_point_celsius": 20, "sync": true}),
		"/thermostats/cool": of(in{"cooling_set_point_fahrenheit": 77, "sync": true}),
		"/thermostats/heat_cool": of(
			in{"heating_set_point_celsius": 20, "cooling_set_point_celsius": 25},
		),
		"/thermostats/off":                         of(nil),
		"/thermostats/set_hvac_mode":               of(in{"hvac_mode_setting": "eco"}),
		"/thermostats/set_fan_mode":                of(in{"fan_mode": "on"}),
		"/thermostats/activate_climate_preset":     of(in{"climate_preset_key": "eco"}),
		"/thermostats/create_climate_preset":       newPreset,
		"/thermostats/update_climate_preset":       func() in { p := preset(); p["name"] = nil; return p },
		"/thermostats/delete_climate_preset":       preset,
		"/thermostats/set_fallback_climate_preset": of(in{"climate_preset_key": "eco"}),
		"/thermostats/set_temperature_threshold":   of(in{"lower_limit_celsius": 5, "upper_limit_celsius": nil}),
		"/thermostats/schedules/create":            newSchedule,
		"/thermostats/schedules/get":               schedule,
		"/thermostats/schedules/list":              of(nil),
		"/thermostats/schedules/update": func() in {
			one := schedule()
			one["name"], one["max_override_period_minutes"] = "", 5
			return one
		},
		"/thermostats/schedules/delete":      schedule,
		"/thermostats/daily_programs/create": newProgram,
		"/thermostats/daily_programs/update": func() in {
			one := daily()
			maps.Copy(one, program())
			return one
		},
		"/thermostats/daily_programs/delete": daily,
		"/thermostats/update_weekly_program": func() in {
			return with(in{"monday_program_id": daily()["thermostat_daily_program_id"], "sunday_program_id": nil})
		},
		"/thermostats/simulate/hvac_mode_adjusted":  of(in{"hvac_mode": "cool", "cooling_set_point_celsius": 24}),
		"/thermostats/simulate/temperature_reached": of(in{"temperature_celsius": 22}),
	}
}
