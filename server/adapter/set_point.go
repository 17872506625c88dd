package adapter

import (
	"encoding/json"
	"fmt"
	"math"
)

// Bounds of plausible temperatures, in °C and in °F. Adapters ignore others.
const (
	// Coldest is the lowest plausible temperature.
	Coldest = -100
	// Hottest is the highest plausible temperature.
	Hottest = 300
)

// Number is a number in the JSON of a vendor; nil for other JSON.
type Number struct{ Value *float64 }

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (n *Number) UnmarshalJSON(data []byte) error {
	n.Value = nil
	var v *float64
	if json.Unmarshal(data, &v) == nil {
		n.Value = v
	}
	return nil
}

// Within returns the number if it is between least and most, and nil otherwise.
func (n Number) Within(least, most float64) *float64 {
	if n.Value == nil || *n.Value < least || *n.Value > most {
		return nil
	}
	return n.Value
}

// SetPoint describes how a thermostat behind a gateway stores a set point. Its numbers are in the unit of the device.
type SetPoint struct {
	// Fahrenheit means that the unit is °F instead of °C.
	Fahrenheit bool
	// Min and Max are the range; nil if the device has no bound.
	Min, Max *float64
	// Step is the resolution; nil if the device does not report it. A device may round a set point as it likes, so that
	// half °C or whole °F are assumed, which each device accepts.
	Step *float64
}

// NewSetPoint returns the description without absurd numbers.
func NewSetPoint(isFahrenheit bool, least, most, step Number) SetPoint {
	p := SetPoint{
		Fahrenheit: isFahrenheit,
		Min:        least.Within(Coldest, Hottest),
		Max:        most.Within(Coldest, Hottest),
		Step:       step.Within(0.01, 10),
	}
	if p.Min != nil && p.Max != nil && *p.Min > *p.Max {
		p.Min, p.Max = nil, nil
	}
	return p
}

// Celsius converts a temperature of the device to °C; nil stays nil.
func (p SetPoint) Celsius(v *float64) *float64 {
	if v == nil || !p.Fahrenheit {
		return v
	}
	return new((*v - 32) / 1.8)
}

// FromCelsius converts a temperature to the unit of the device.
func (p SetPoint) FromCelsius(celsius float64) float64 {
	if !p.Fahrenheit {
		return celsius
	}
	return celsius*1.8 + 32
}

// Resolution returns the step, or the assumed one.
func (p SetPoint) Resolution() float64 {
	switch {
	case p.Step != nil:
		return *p.Step
	case p.Fahrenheit:
		return 1
	}
	return 0.5
}

// StepCelsius returns the resolution in °C, for capability.Thermostat.
func (p SetPoint) StepCelsius() float64 {
	if !p.Fahrenheit {
		return p.Resolution()
	}
	return math.Ceil(p.Resolution()/1.8*100) / 100
}

// Round returns the value of the device that is closest to a temperature in °C. It fails with Invalid if the temperature
// is outside the range. name is that of the set point in the error.
func (p SetPoint) Round(name string, celsius float64) (float64, error) {
	const slack = 0.01 // of conversions
	v := p.FromCelsius(celsius)
	if math.IsNaN(v) || v < Coldest || v > Hottest || p.Min != nil && v < *p.Min-slack ||
		p.Max != nil && v > *p.Max+slack {
		return 0, Errorf(Invalid, "the thermostat accepts no %s set point of %.4g °C%s", name, celsius, p.hint())
	}
	v = math.Round(v/p.Resolution()) * p.Resolution()
	if p.Min != nil {
		v = max(v, *p.Min)
	}
	if p.Max != nil {
		v = min(v, *p.Max)
	}
	return math.Round(v*100) / 100, nil
}

func (p SetPoint) hint() string {
	least, most := p.Celsius(p.Min), p.Celsius(p.Max)
	if least == nil || most == nil {
		return ""
	}
	return fmt.Sprintf("; choose one from %.4g to %.4g °C", *least, *most)
}
