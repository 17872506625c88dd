package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func inCelsius(degrees float64) setPoint {
	return setPoint{types.Float64Value(degrees), types.Float64Null()}
}

func inFahrenheit(degrees float64) setPoint {
	return setPoint{types.Float64Null(), types.Float64Value(degrees)}
}

func inBoth(celsius, fahrenheit float64) setPoint {
	return setPoint{types.Float64Value(celsius), types.Float64Value(fahrenheit)}
}

func (p setPoint) equal(other setPoint) bool {
	return p.Celsius.Equal(other.Celsius) && p.Fahrenheit.Equal(other.Fahrenheit)
}

func TestSetPoint_PlanHasBothUnits(t *testing.T) {
	t.Parallel()
	unknown := setPoint{types.Float64Unknown(), types.Float64Unknown()}
	for name, c := range map[string]struct{ config, state, want setPoint }{
		"new, in °C":                     {inCelsius(21), noSetPoint(), inBoth(21, 69.8)},
		"new, in °F":                     {inFahrenheit(70), noSetPoint(), inBoth(21.11, 70)},
		"unchanged, rounded otherwise":   {inFahrenheit(70), inBoth(21.1, 70), inBoth(21.1, 70)},
		"inconsistent state":             {inFahrenheit(70), inBoth(15, 70), inBoth(21.11, 70)},
		"changed":                        {inFahrenheit(71), inBoth(21.11, 70), inBoth(21.67, 71)},
		"from °F to °C":                  {inCelsius(21.11), inBoth(21.11, 70), inBoth(21.11, 70)},
		"from °C to °F":                  {inFahrenheit(69.8), inBoth(21, 69.8), inBoth(21, 69.8)},
		"unknown in one unit":            {setPoint{types.Float64Unknown(), types.Float64Null()}, inBoth(21, 69.8), unknown},
		"the other unit may turn out it": {setPoint{types.Float64Null(), types.Float64Unknown()}, noSetPoint(), unknown},
		"none":                           {noSetPoint(), inBoth(21, 69.8), noSetPoint()},
	} {
		if got := c.config.planned(c.state); !got.equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSetPoint_RoundingOfServersIsNoChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server, state setPoint
		same          bool
	}{
		"rounded":        {inBoth(21.11, 70), inBoth(21.1111, 70), true},
		"one unit only":  {inBoth(21.11, 70), inFahrenheit(70), true},
		"another":        {inBoth(21.11, 70), inBoth(21.5, 70.7), false},
		"a small change": {inBoth(21.1, 69.98), inBoth(21.15, 70.07), false},
		"both missing":   {noSetPoint(), noSetPoint(), true},
		"removed":        {noSetPoint(), inBoth(21, 69.8), false},
		"added":          {inBoth(21, 69.8), noSetPoint(), false},
	} {
		want := c.server
		if c.same {
			want = c.state
		}
		if got := c.server.orSame(c.state); c.server.same(c.state) != c.same || !got.equal(want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSetPoint_OfServerInOneUnitIsConverted(t *testing.T) {
	t.Parallel()
	celsius, fahrenheit := 21.0, 70.0
	for _, c := range []struct{ got, want setPoint }{
		{setPointOf(&celsius, nil), inBoth(21, 69.8)},
		{setPointOf(nil, &fahrenheit), inBoth(21.11, 70)},
		{setPointOf(&celsius, &fahrenheit), inBoth(21, 70)},
		{setPointOf(nil, nil), noSetPoint()},
	} {
		if !c.got.equal(c.want) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}
