package provider

import (
	"fmt"
	"math"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// setPoint is a temperature in °C and in °F. A configuration has one of them, and the state both.
type setPoint struct{ Celsius, Fahrenheit types.Float64 }

// temperatureTolerance is the largest difference in °C that rounding causes: servers round both units to 0.01.
const temperatureTolerance = 0.011

func toFahrenheit(celsius float64) float64 { return roundTemperature(celsius*9/5 + 32) }

func toCelsius(fahrenheit float64) float64 { return roundTemperature((fahrenheit - 32) * 5 / 9) }

// roundTemperature rounds to 0.01, as servers do.
func roundTemperature(degrees float64) float64 { return math.Round(degrees*100) / 100 }

// setPointOf returns a set point of a server. If the server returns one unit only, it converts the other one.
func setPointOf(celsius, fahrenheit *float64) setPoint {
	p := setPoint{types.Float64PointerValue(celsius), types.Float64PointerValue(fahrenheit)}
	switch {
	case celsius == nil && fahrenheit != nil:
		p.Celsius = types.Float64Value(toCelsius(*fahrenheit))
	case celsius != nil && fahrenheit == nil:
		p.Fahrenheit = types.Float64Value(toFahrenheit(*celsius))
	}
	return p
}

func noSetPoint() setPoint { return setPoint{types.Float64Null(), types.Float64Null()} }

func (p setPoint) isNull() bool { return p.Celsius.IsNull() && p.Fahrenheit.IsNull() }

func (p setPoint) isUnknown() bool { return p.Celsius.IsUnknown() || p.Fahrenheit.IsUnknown() }

// isKnown reports whether the temperature is known, in one of the units.
func (p setPoint) isKnown() bool { return isSet(p.Celsius) || isSet(p.Fahrenheit) }

// celsius returns a known temperature in °C, without rounding.
func (p setPoint) celsius() float64 {
	if isSet(p.Fahrenheit) && !isSet(p.Celsius) {
		return (p.Fahrenheit.ValueFloat64() - 32) * 5 / 9
	}
	return p.Celsius.ValueFloat64()
}

// same reports whether both are the same temperature up to rounding, or both null.
func (p setPoint) same(other setPoint) bool {
	if !p.isKnown() || !other.isKnown() {
		return p.isNull() && other.isNull()
	}
	return math.Abs(p.celsius()-other.celsius()) <= temperatureTolerance
}

// orSame returns known if it is the same temperature, so that the rounding of a server is no change.
func (p setPoint) orSame(known setPoint) setPoint {
	if p.same(known) && !known.isUnknown() {
		return known
	}
	return p
}

// planned returns the plan of a configured set point: the other unit follows from the configured one. If the state
// differs from the conversion by rounding only, it stays.
func (p setPoint) planned(state setPoint) setPoint {
	switch {
	case p.isUnknown():
		return setPoint{types.Float64Unknown(), types.Float64Unknown()}
	case isSet(p.Celsius):
		p.Fahrenheit = types.Float64Value(toFahrenheit(p.Celsius.ValueFloat64()))
		if isSet(state.Fahrenheit) && p.same(setPoint{types.Float64Null(), state.Fahrenheit}) {
			p.Fahrenheit = state.Fahrenheit
		}
	case isSet(p.Fahrenheit):
		p.Celsius = types.Float64Value(toCelsius(p.Fahrenheit.ValueFloat64()))
		if isSet(state.Celsius) && p.same(setPoint{state.Celsius, types.Float64Null()}) {
			p.Celsius = state.Celsius
		}
	}
	return p
}

// request returns the parameters of a request: the configured unit if there is one, otherwise °C.
func (p setPoint) request(config setPoint) (celsius, fahrenheit *float64) {
	if isSet(config.Fahrenheit) {
		return nil, p.Fahrenheit.ValueFloat64Pointer()
	}
	return p.Celsius.ValueFloat64Pointer(), nil
}

// setPointKind is one of the two set points of a thermostat, as attribute names have it.
type setPointKind string

const (
	heatingSetPoint setPointKind = "heating"
	coolingSetPoint setPointKind = "cooling"
)

func (k setPointKind) celsius() string    { return string(k) + "_set_point_celsius" }
func (k setPointKind) fahrenheit() string { return string(k) + "_set_point_fahrenheit" }

// attribute returns the configured one of the two attributes.
func (k setPointKind) attribute(config setPoint) path.Path {
	if isSet(config.Fahrenheit) {
		return path.Root(k.fahrenheit())
	}
	return path.Root(k.celsius())
}

// attributes adds the attributes of both units to a schema.
func (k setPointKind) attributes(to map[string]schema.Attribute, purpose string) {
	to[k.celsius()] = schema.Float64Attribute{
		Optional:            true,
		Computed:            true,
		MarkdownDescription: purpose + " in °C. Set it here or in °F.",
	}
	to[k.fahrenheit()] = schema.Float64Attribute{
		Optional:            true,
		Computed:            true,
		MarkdownDescription: purpose + " in °F. Set it here or in °C.",
	}
}

// checkUnits rejects a set point in both units.
func (k setPointKind) checkUnits(config setPoint, diags *diag.Diagnostics) {
	if isSet(config.Celsius) && isSet(config.Fahrenheit) {
		diagnostics.ErrorAt(diags, path.Root(k.fahrenheit()), "Conflicting arguments", fmt.Sprintf("`%s` and `%s` "+
			"are both set. Set one of them; the provider converts the other one.", k.celsius(), k.fahrenheit()))
	}
}
