package climate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// The parameters that errors name.
const (
	modeField = "hvac_mode_setting"
	fanField  = "fan_mode_setting"
	heatField = "heating_set_point_celsius"
	coolField = "cooling_set_point_celsius"
)

// check fails with Invalid if the device does not accept the setting.
func (t *Thermostat) check(s Setting) error {
	if s.isZero() {
		return domain.Invalidf(modeField, "Nothing is set. Choose a mode, a set point, or a fan mode")
	}
	l := t.Limits
	err := domain.All(
		checkMode(s, l.Modes),
		checkFan(s.Fan, l.FanModes),
		checkPoint(heatField, "heating", s.Heat, l.MinHeat, l.MaxHeat),
		checkPoint(coolField, "cooling", s.Cool, l.MinCool, l.MaxCool),
	)
	if err != nil {
		return err
	}
	both := s.Heat != nil && s.Cool != nil && (s.Mode == capability.HeatCool || s.Mode == "")
	if both && *s.Cool-*s.Heat < l.MinDelta-rounding {
		return &domain.Error{
			Kind:  domain.Invalid,
			Type:  "invalid_heating_cooling_delta",
			Field: coolField,
			Message: fmt.Sprintf("The cooling set point must be at least %s °C (%s °F) above the heating set point.",
				number(l.MinDelta), number(l.MinDelta*9/5)),
		}
	}
	return nil
}

func checkMode(s Setting, modes []capability.HVACMode) error {
	if s.Mode == "" {
		return nil
	}
	if !slices.Contains(modes, s.Mode) {
		return domain.Invalidf(modeField, "The thermostat has no mode %s. %s", s.Mode, choose(modes))
	}
	if (s.Mode == capability.Eco || s.Mode == capability.Off) && (s.Heat != nil || s.Cool != nil) {
		return domain.Invalidf(modeField, "The mode %s has no set points. Leave them out", s.Mode)
	}
	return nil
}

func checkFan(fan capability.FanMode, modes []capability.FanMode) error {
	if fan == "" || slices.Contains(modes, fan) {
		return nil
	}
	return domain.Invalidf(fanField, "The thermostat has no fan mode %s. %s", fan, choose(modes))
}

// choose says which values there are.
func choose[T ~string](values []T) string {
	if len(values) == 0 {
		return "It has none"
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return "Choose one of " + strings.Join(out, ", ")
}

func checkPoint(field, what string, at, least, most *float64) error {
	switch {
	case at == nil:
	case least != nil && *at < *least-rounding:
		return domain.Invalidf(field, "The %s set point is %s. Choose at least %s", what, degrees(*at), degrees(*least))
	case most != nil && *at > *most+rounding:
		return domain.Invalidf(field, "The %s set point is %s. Choose at most %s", what, degrees(*at), degrees(*most))
	}
	return nil
}

func degrees(celsius float64) string {
	return number(celsius) + " °C (" + number(Fahrenheit(celsius)) + " °F)"
}

// number formats a number with as many decimal places as necessary, up to two.
func number(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", f), "0"), ".")
}
