package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

func TestThermostatLimits_Check(t *testing.T) {
	t.Parallel()
	limits := thermostatLimitsOf(&api.Device{Properties: api.DeviceProperties{
		AvailableHvacModeSettings:     []string{"off", "heat", "cool", "heat_cool"},
		AvailableFanModeSettings:      []string{"auto", "on"},
		MinHeatingSetPointCelsius:     new(7.22),
		MaxHeatingSetPointCelsius:     new(26.11),
		MinCoolingSetPointCelsius:     new(18.33),
		MinHeatingCoolingDeltaCelsius: new(2.78),
	}})
	none := noSetPoint()
	for name, c := range map[string]struct {
		limits  thermostatLimits
		setting climateSetting
		at      []string
		says    string
	}{
		"fits":                   {limits, climateSetting{"heat_cool", "auto", inCelsius(20), inCelsius(24)}, nil, ""},
		"says nothing":           {limits, climateSetting{"", "", none, none}, nil, ""},
		"an unknown thermostat":  {thermostatLimits{}, climateSetting{"eco", "", inCelsius(-5), inCelsius(90)}, nil, ""},
		"another mode":           {limits, climateSetting{"eco", "", none, none}, []string{"hvac_mode_setting"}, "Choose one of: off, heat, cool, heat_cool."},
		"another fan mode":       {limits, climateSetting{"", "circulate", none, none}, []string{"fan_mode_setting"}, "Choose one of: auto, on."},
		"a fan that has none":    {thermostatLimits{}, climateSetting{"", "on", none, none}, []string{"fan_mode_setting"}, "Leave `fan_mode_setting` out."},
		"at the bound, in °F":    {limits, climateSetting{"heat", "", inFahrenheit(45), none}, nil, ""},
		"too cold":               {limits, climateSetting{"heat", "", inCelsius(5), none}, []string{"heating_set_point_celsius"}, "Choose at least 7.22 °C and at most 26.11 °C."},
		"too hot, in °F":         {limits, climateSetting{"heat", "", inFahrenheit(90), none}, []string{"heating_set_point_fahrenheit"}, "set point of 90 °F. Choose at least 45 °F and at most 79 °F."},
		"without an upper bound": {limits, climateSetting{"cool", "", none, inCelsius(10)}, []string{"cooling_set_point_celsius"}, "Choose at least 18.33 °C."},
		"too close":              {limits, climateSetting{"heat_cool", "", inCelsius(22), inCelsius(24)}, []string{"heating_set_point_celsius"}, "by 2.78 °C or more. Choose a heating set point of at most 21.22 °C"},
		"too close, in °F":       {limits, climateSetting{"heat_cool", "", inFahrenheit(72), inFahrenheit(75)}, []string{"heating_set_point_fahrenheit"}, "by 5 °F or more. Choose a heating set point of at most 70 °F"},
		"just far enough, in °F": {limits, climateSetting{"heat_cool", "", inFahrenheit(70), inFahrenheit(75)}, nil, ""},
		"close, in another mode": {limits, climateSetting{"", "", inCelsius(22), inCelsius(24)}, nil, ""},
		"several at once": {
			limits,
			climateSetting{"eco", "circulate", inCelsius(1), inCelsius(1)},
			[]string{"hvac_mode_setting", "fan_mode_setting", "heating_set_point_celsius", "cooling_set_point_celsius"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var at []string
			var said strings.Builder
			for _, fault := range c.limits.check(c.setting) {
				at = append(at, fault.at.String())
				said.WriteString(fault.text)
			}
			if !slices.Equal(at, c.at) || !strings.Contains(said.String(), c.says) {
				t.Errorf("faults at %q: %s", at, said.String())
			}
		})
	}
}

func TestModesHaveTheirSetPoints(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][2]bool{
		"": {false, false}, "heat_cool": {false, false}, "heat": {false, true}, "cool": {true, false},
		"off": {true, true}, "eco": {true, true},
	} {
		if got := [2]bool{heatingSetPoint.modeLacks(mode), coolingSetPoint.modeLacks(mode)}; got != want {
			t.Errorf("%q lacks heating and cooling: %v", mode, got)
		}
	}
}
