package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// thermostatLimits is what a thermostat says that it accepts. Temperatures are in °C.
type thermostatLimits struct {
	modes, fanModes  []string
	heating, cooling temperatureRange
	// delta is the least difference of the set points in heat_cool; nil if unknown.
	delta *float64
}

// temperatureRange is the range of a set point. A bound that is not known is nil.
type temperatureRange struct{ min, max *float64 }

func thermostatLimitsOf(device *api.Device) thermostatLimits {
	p := device.Properties
	return thermostatLimits{
		modes:    p.AvailableHvacModeSettings,
		fanModes: p.AvailableFanModeSettings,
		heating:  temperatureRange{p.MinHeatingSetPointCelsius, p.MaxHeatingSetPointCelsius},
		cooling:  temperatureRange{p.MinCoolingSetPointCelsius, p.MaxCoolingSetPointCelsius},
		delta:    p.MinHeatingCoolingDeltaCelsius,
	}
}

// isThermostat reports whether a device is one. Servers report it in one of two ways.
func isThermostat(device *api.Device) bool {
	return slices.Contains(device.CapabilitiesSupported, "thermostat") ||
		len(device.Properties.AvailableHvacModeSettings) > 0
}

// isNoiseSensor reports whether a device is one.
func isNoiseSensor(device *api.Device) bool {
	return slices.Contains(device.CapabilitiesSupported, "noise_detection")
}

// climateSetting is a setting to check. The mode and the fan are empty if they are not set or not known yet. The set
// points are as configured.
type climateSetting struct {
	mode, fan        string
	heating, cooling setPoint
}

// climateFault is why a thermostat does not accept a setting.
type climateFault struct {
	at            path.Path
	summary, text string
}

// check returns what the thermostat does not accept.
func (l *thermostatLimits) check(s climateSetting) (faults []climateFault) {
	if s.mode != "" && len(l.modes) > 0 && !slices.Contains(l.modes, s.mode) {
		faults = append(faults, climateFault{path.Root("hvac_mode_setting"), "Mode not available", fmt.Sprintf(
			"The thermostat has no mode %q. Choose one of: %s.", s.mode, strings.Join(l.modes, ", "))})
	}
	switch {
	case s.fan == "" || slices.Contains(l.fanModes, s.fan):
	case len(l.fanModes) == 0:
		faults = append(faults, climateFault{path.Root("fan_mode_setting"), "Fan mode not available", "The server " +
			"cannot set the fan of the thermostat. Leave `fan_mode_setting` out."})
	default:
		faults = append(faults, climateFault{path.Root("fan_mode_setting"), "Fan mode not available", fmt.Sprintf(
			"The thermostat has no fan mode %q. Choose one of: %s.", s.fan, strings.Join(l.fanModes, ", "))})
	}
	faults = append(faults, l.heating.check(heatingSetPoint, s.heating)...)
	faults = append(faults, l.cooling.check(coolingSetPoint, s.cooling)...)
	return append(faults, l.checkDelta(s)...)
}

func (r temperatureRange) check(kind setPointKind, p setPoint) []climateFault {
	if !p.isKnown() {
		return nil
	}
	low := r.min != nil && p.celsius() < *r.min-temperatureTolerance
	high := r.max != nil && p.celsius() > *r.max+temperatureTolerance
	if !low && !high {
		return nil
	}
	var bounds []string
	if r.min != nil {
		bounds = append(bounds, "at least "+p.inUnit(*r.min))
	}
	if r.max != nil {
		bounds = append(bounds, "at most "+p.inUnit(*r.max))
	}
	return []climateFault{{kind.attribute(p), "Set point out of range", fmt.Sprintf("The thermostat does not accept a "+
		"%s set point of %s. Choose %s.", kind, p.inUnit(p.celsius()), strings.Join(bounds, " and "))}}
}

// checkDelta checks the difference of the set points, which only heat_cool has both of.
func (l *thermostatLimits) checkDelta(s climateSetting) []climateFault {
	if s.mode != "heat_cool" || l.delta == nil || !s.heating.isKnown() || !s.cooling.isKnown() ||
		s.cooling.celsius()-s.heating.celsius() >= *l.delta-temperatureTolerance {
		return nil
	}
	highest := s.cooling.celsius() - *l.delta
	return []climateFault{{heatingSetPoint.attribute(s.heating), "Set points too close", fmt.Sprintf("In the mode "+
		"heat_cool, the cooling set point of this thermostat must be above the heating set point by %s or more. "+
		"Choose a heating set point of at most %s, or a higher cooling set point.",
		s.heating.deltaInUnit(*l.delta), s.heating.inUnit(highest))}}
}

// inUnit writes a temperature in the unit of the set point.
func (p setPoint) inUnit(celsius float64) string {
	if isSet(p.Fahrenheit) && !isSet(p.Celsius) {
		return fmt.Sprintf("%v °F", toFahrenheit(celsius))
	}
	return fmt.Sprintf("%v °C", roundTemperature(celsius))
}

// deltaInUnit writes a difference of temperatures in the unit of the set point.
func (p setPoint) deltaInUnit(celsius float64) string {
	if isSet(p.Fahrenheit) && !isSet(p.Celsius) {
		return fmt.Sprintf("%v °F", roundTemperature(celsius*9/5))
	}
	return fmt.Sprintf("%v °C", roundTemperature(celsius))
}

// modeLacks reports whether a known mode does not have the set point.
func (k setPointKind) modeLacks(mode string) bool {
	switch mode {
	case "", "heat_cool":
		return false
	case "heat":
		return k != heatingSetPoint
	case "cool":
		return k != coolingSetPoint
	}
	return true
}

// presetKeys lists the keys of the presets of a thermostat, for a message.
func presetKeys(device *api.Device) string {
	var keys []string
	for _, preset := range *device.Properties.AvailableClimatePresets {
		keys = append(keys, preset.ClimatePresetKey)
	}
	return cmp.Or(strings.Join(keys, ", "), "none")
}
