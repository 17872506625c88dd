package spec_test

import (
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// climateOf returns the properties of a thermostat.
func climateOf(t *testing.T, s *apptest.Server, device string) api.DeviceProperties {
	t.Helper()
	var out api.ThermostatResponse
	if status := s.Post(t, "/thermostats/get", params{"device_id": device}, &out); status != http.StatusOK {
		t.Fatalf("get the thermostat: %d", status)
	}
	return out.Thermostat.Properties
}

// commanded sends a command to a thermostat and returns its attempt once it has ended.
func commanded(t *testing.T, s *apptest.Server, path string, in params) api.ActionAttempt {
	t.Helper()
	var out api.ActionAttemptResponse
	if status := s.Post(t, "/thermostats/"+path, in, &out); status != http.StatusOK {
		t.Fatalf("%s: %d", path, status)
	}
	apptest.Until(t, path+" has ended", func() bool {
		s.Post(t, "/action_attempts/get", params{"action_attempt_id": out.ActionAttempt.ActionAttemptID}, &out)
		return out.ActionAttempt.Status != "pending"
	})
	return out.ActionAttempt
}

// succeeds is commanded for a command that must succeed.
func succeeds(t *testing.T, s *apptest.Server, path string, in params) {
	t.Helper()
	if a := commanded(t, s, path, in); a.Status != "success" {
		t.Fatalf("%s: %+v", path, a.Error)
	}
}

// accepted sends a request that must succeed.
func accepted(t *testing.T, s *apptest.Server, path string, in params) {
	t.Helper()
	var out params
	if status := s.Post(t, "/thermostats/"+path, in, &out); status != http.StatusOK {
		t.Fatalf("%s: %d %v", path, status, out["error"])
	}
}

// toldWith returns the number of events of a type about a device with a value in a field.
func toldWith(t *testing.T, s *apptest.Server, device, kind, field string, value any) (n int) {
	t.Helper()
	var out api.EventsResponse
	s.Post(t, "/events/list", params{"since": "2020-01-01", "device_id": device, "event_type": kind}, &out)
	for _, e := range out.Events {
		for _, field := range contractFields(e.EventType) {
			if _, there := e.AdditionalProperties[field]; !there {
				t.Errorf("%s lacks %s", e.EventType, field)
			}
		}
		if e.AdditionalProperties[field] == value {
			n++
		}
	}
	return n
}

func near(got *float64, want float64) bool {
	return got != nil && *got > want-0.011 && *got < want+0.011
}

// A command is confirmed by the device, shows in both units, and is reported once.
func TestThermostats_Commands(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("ecobee"))
	device := s.Device(t, "ecobee")
	p := climateOf(t, s, device)
	if c := p.CurrentClimateSetting; c.HvacModeSetting != "cool" || !near(c.CoolingSetPointCelsius, 24) ||
		c.HeatingSetPointCelsius != nil || c.FanModeSetting != "auto" || c.ClimatePresetKey != "" {
		t.Errorf("at first: %+v", *c)
	}
	if !near(p.TemperatureCelsius, 23) || !near(p.TemperatureFahrenheit, 73.4) || p.IsCooling == nil ||
		!near(p.MinHeatingCoolingDeltaCelsius, 2.78) || !near(p.MinHeatingCoolingDeltaFahrenheit, 5) ||
		!near(p.MaxHeatingSetPointFahrenheit, 79) || p.FallbackClimatePresetKey.To != nil ||
		!p.FallbackClimatePresetKey.Given || p.TemperatureThreshold == nil || len(*p.AvailableClimatePresets) != 3 {
		t.Errorf("properties %+v", p)
	}
	var out api.ActionAttemptResponse
	s.Post(t, "/thermostats/heat", params{"device_id": device, "heating_set_point_fahrenheit": 70, "sync": true}, &out)
	if a := out.ActionAttempt; a.ActionType != "SET_HVAC_MODE" || a.Status != "success" {
		t.Fatalf("heat: %+v", a)
	}
	p = climateOf(t, s, device)
	if c := p.CurrentClimateSetting; c.HvacModeSetting != "heat" || !near(c.HeatingSetPointFahrenheit, 70) ||
		!near(c.HeatingSetPointCelsius, 21.11) || c.CoolingSetPointCelsius != nil {
		t.Errorf("after heat: %+v", *c)
	}
	const adjusted = "thermostat.manually_adjusted"
	if toldWith(t, s, device, adjusted, "method", "seam") != 1 ||
		toldWith(t, s, device, adjusted, "method", "external") != 0 {
		t.Error("the command was not reported once")
	}
	heatCool := params{"device_id": device, "heating_set_point_celsius": 19, "cooling_set_point_celsius": 25}
	succeeds(t, s, "heat_cool", heatCool)
	succeeds(t, s, "set_fan_mode", params{"device_id": device, "fan_mode_setting": "on"})
	p = climateOf(t, s, device)
	if c := p.CurrentClimateSetting; c.HvacModeSetting != "heat_cool" || !near(c.HeatingSetPointCelsius, 19) ||
		!near(c.CoolingSetPointCelsius, 25) || c.FanModeSetting != "on" || p.FanModeSetting != "on" {
		t.Errorf("after heat_cool: %+v", *c)
	}
	succeeds(t, s, "set_hvac_mode", params{"device_id": device, "hvac_mode_setting": "off"})
	succeeds(t, s, "activate_climate_preset", params{"device_id": device, "climate_preset_key": "away"})
	if c := climateOf(t, s, device).CurrentClimateSetting; c.ClimatePresetKey != "away" || *c.CanEdit ||
		!near(c.HeatingSetPointFahrenheit, 62) {
		t.Errorf("after the preset: %+v", *c)
	}
	const activated = "thermostat.climate_preset_activated"
	if toldWith(t, s, device, activated, "climate_preset_key", "away") != 1 {
		t.Error("the preset was not reported once")
	}
	succeeds(t, s, "off", params{"device_id": device})
	if c := climateOf(t, s, device).CurrentClimateSetting; c.HvacModeSetting != "off" || c.ClimatePresetKey != "" {
		t.Errorf("after off: %+v", *c)
	}
}
