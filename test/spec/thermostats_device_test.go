package spec_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func hasWarning(problems []api.Problem, code string) bool {
	return slices.ContainsFunc(problems, func(p api.Problem) bool { return p.WarningCode == code })
}

// The temperature is reported from 1 °C of change on, at the set point, and outside of the threshold.
func TestThermostats_Temperature(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("nest"))
	device := s.Device(t, "nest")
	count := func(kind string) int {
		return toldWith(t, s, device, "thermostat."+kind, "device_id", device)
	}
	room := func(in params) {
		t.Helper()
		in["device_id"] = device
		accepted(t, s, "simulate/temperature_reached", in)
	}
	succeeds(t, s, "heat", params{"device_id": device, "heating_set_point_celsius": 26})
	room(params{"temperature_celsius": 17})
	if p := climateOf(t, s, device); !*p.IsHeating || !near(p.TemperatureFahrenheit, 62.6) {
		t.Errorf("it does not heat: %+v", p)
	}
	accepted(t, s, "set_temperature_threshold", params{
		"device_id": device, "lower_limit_celsius": 16, "upper_limit_fahrenheit": 86,
	})
	room(params{"temperature_celsius": 14.5})
	if n := count("temperature_threshold_exceeded"); n != 1 {
		t.Errorf("%d events about the threshold", n)
	}
	d := get(t, s, device)
	if !hasWarning(d.Warnings, "temperature_threshold_exceeded") {
		t.Errorf("warnings %+v", d.Warnings)
	}
	if th := d.Properties.TemperatureThreshold; !near(th.UpperLimitCelsius, 30) ||
		!near(th.LowerLimitFahrenheit, 60.8) {
		t.Errorf("the threshold %+v", th)
	}
	changes := count("temperature_changed")
	room(params{"temperature_celsius": 15})
	if n := count("temperature_changed"); n != changes {
		t.Errorf("half a degree was reported")
	}
	room(params{"temperature_fahrenheit": 78})
	if count("temperature_threshold_no_longer_exceeded") != 1 || count("temperature_changed") != changes+1 ||
		count("temperature_reached_set_point") != 1 {
		t.Error("the end of the excess or the set point was not reported")
	}
	if d := get(t, s, device); hasWarning(d.Warnings, "temperature_threshold_exceeded") {
		t.Errorf("warnings %+v", d.Warnings)
	}
	accepted(t, s, "set_temperature_threshold", params{"device_id": device})
	if th := climateOf(t, s, device).TemperatureThreshold; *th != (api.TemperatureThreshold{}) {
		t.Errorf("the threshold %+v", th)
	}
}

// The auxiliary heat is an error of the device while it runs.
func TestThermostats_AuxiliaryHeat(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("ecobee"))
	device := s.Device(t, "ecobee")
	succeeds(t, s, "heat", params{"device_id": device, "heating_set_point_celsius": 22})
	for degrees, running := range map[float64]bool{10: true, 21: false} {
		accepted(t, s, "simulate/temperature_reached", params{"device_id": device, "temperature_celsius": degrees})
		apptest.Until(t, "the auxiliary heat is reported", func() bool {
			return hasError(get(t, s, device).Errors, "auxiliary_heat_running") == running
		})
	}
}

// A command waits for an offline device, and is applied when the device is back. A newer one replaces it.
func TestThermostats_Offline(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("nest"))
	device := s.Device(t, "nest")
	s.Post(t, "/devices/simulate/disconnect", params{"device_id": device}, nil)
	var first, second api.ActionAttemptResponse
	s.Post(t, "/thermostats/heat", params{"device_id": device, "heating_set_point_celsius": 22}, &first)
	s.Post(t, "/thermostats/cool", params{"device_id": device, "cooling_set_point_celsius": 26}, &second)
	if second.ActionAttempt.Status != "pending" {
		t.Errorf("the attempt %+v", second.ActionAttempt)
	}
	s.Post(t, "/action_attempts/get", params{"action_attempt_id": first.ActionAttempt.ActionAttemptID}, &first)
	if e := first.ActionAttempt.Error; e == nil || e.Type != "superseded" {
		t.Errorf("the replaced attempt %+v", first.ActionAttempt)
	}
	if got := refused(t, s, s.APIKey, "/thermostats/simulate/temperature_reached", params{
		"device_id": device, "temperature_celsius": 20,
	}); got != "400 device_offline" {
		t.Errorf("the simulation: %s", got)
	}
	s.Post(t, "/devices/simulate/connect", params{"device_id": device}, nil)
	apptest.Until(t, "the command is applied", func() bool {
		s.Post(t, "/action_attempts/get", params{"action_attempt_id": second.ActionAttempt.ActionAttemptID}, &second)
		return second.ActionAttempt.Status == "success"
	})
	if c := climateOf(t, s, device).CurrentClimateSetting; c.HvacModeSetting != "cool" ||
		!near(c.CoolingSetPointCelsius, 26) {
		t.Errorf("it is set to %+v", *c)
	}
	managed := func(path string, is bool) {
		if status := s.Post(t, path, params{"device_id": device, "is_managed": is}, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	managed("/devices/update", false)
	if got := refused(t, s, s.APIKey, "/thermostats/off", params{"device_id": device}); got != "400 device_unmanaged" {
		t.Errorf("a command to an unmanaged device: %s", got)
	}
	managed("/devices/unmanaged/update", true)
	succeeds(t, s, "off", params{"device_id": device})
}

// Requests that no thermostat can serve say what is wrong.
func TestThermostats_Errors(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("ecobee", "august"))
	device, lock := s.Device(t, "ecobee"), s.Device(t, "august")
	mine := params{"device_id": device, "climate_preset_key": "mine", "fan_mode_setting": "on"}
	accepted(t, s, "create_climate_preset", mine)
	day := func(periods ...params) params {
		return params{"device_id": device, "name": "Day", "periods": periods}
	}
	period := func(at, key string) params { return params{"starts_at_time": at, "climate_preset_key": key} }
	frame := func(starts, ends string) params {
		return params{"device_id": device, "climate_preset_key": "mine", "starts_at": starts, "ends_at": ends}
	}
	later := "2099-01-01T00:00:00Z"
	accepted(t, s, "schedules/create", frame(later, "2099-01-02T00:00:00Z"))
	for _, c := range []struct {
		path string
		in   params
		want string
	}{
		{"get", params{"device_id": uuid.NewString()}, "404 device_not_found"},
		{"get", params{"device_id": lock}, "404 device_not_found"},
		{"get", params{}, "400 invalid_input"},
		{"off", params{"device_id": lock}, "404 device_not_found"},
		{"schedules/list", params{"device_id": lock}, "404 device_not_found"},
		{"heat", params{"device_id": device}, "400 invalid_input"},
		{"heat", params{
			"device_id": device, "heating_set_point_celsius": 20, "heating_set_point_fahrenheit": 68,
		}, "400 invalid_input"},
		{"heat", params{"device_id": device, "heating_set_point_celsius": 40}, "400 invalid_input"},
		{"heat", params{"device_id": device, "heating_set_point_fahrenheit": 1e300}, "400 invalid_input"},
		{"heat_cool", params{
			"device_id": device, "heating_set_point_celsius": 22, "cooling_set_point_celsius": 24,
		}, "400 invalid_heating_cooling_delta"},
		{"set_hvac_mode", params{"device_id": device, "hvac_mode_setting": "eco"}, "400 invalid_input"},
		{"set_hvac_mode", params{
			"device_id": device, "hvac_mode_setting": "off", "heating_set_point_celsius": 20,
		}, "400 invalid_input"},
		{"set_fan_mode", params{"device_id": device}, "400 invalid_input"},
		{"set_fan_mode", params{"device_id": device, "fan_mode": "circulate"}, "400 invalid_input"},
		{"activate_climate_preset", params{
			"device_id": device, "climate_preset_key": "other",
		}, "404 climate_preset_not_found"},
		{"create_climate_preset", mine, "409 duplicate_climate_preset"},
		{"update_climate_preset", params{"device_id": device, "climate_preset_key": "home"}, "400 invalid_input"},
		{"delete_climate_preset", params{"device_id": device, "climate_preset_key": "mine"}, "400 invalid_input"},
		{"set_fallback_climate_preset", params{
			"device_id": device, "climate_preset_key": "other",
		}, "404 climate_preset_not_found"},
		{"set_temperature_threshold", params{
			"device_id": device, "lower_limit_celsius": 20, "upper_limit_celsius": 10,
		}, "400 invalid_input"},
		{"schedules/create", frame(later, "2099-01-03T00:00:00Z"), "400 invalid_input"},
		{"schedules/create", frame("2098-01-01T00:00:00Z", "2097-01-01T00:00:00Z"), "400 invalid_input"},
		{"schedules/create", frame("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"), "400 invalid_input"},
		{"schedules/create", frame("soon", "2097-01-01T00:00:00Z"), "400 invalid_input"},
		{"schedules/get", params{
			"thermostat_schedule_id": uuid.NewString(),
		}, "404 thermostat_schedule_not_found"},
		{"daily_programs/create", day(period("06:00:00", "home")), "400 invalid_input"},
		{"daily_programs/create", day(period("00:00:00", "home"), period("06:01:00", "away")), "400 invalid_input"},
		{"daily_programs/create", day(period("00:00:00", "other")), "404 climate_preset_not_found"},
		{"daily_programs/delete", params{
			"thermostat_daily_program_id": uuid.NewString(),
		}, "404 thermostat_daily_program_not_found"},
		{"update_weekly_program", params{
			"device_id": device, "monday_program_id": uuid.NewString(),
		}, "404 thermostat_daily_program_not_found"},
		{"simulate/temperature_reached", params{"device_id": device}, "400 invalid_input"},
		{"simulate/hvac_mode_adjusted", params{"device_id": lock, "hvac_mode": "off"}, "404 device_not_found"},
	} {
		if got := refused(t, s, s.APIKey, "/thermostats/"+c.path, c.in); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.path, c.in, got, c.want)
		}
	}
}
