package zwavejs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strconv"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Command classes of thermostats.
const (
	ccMultilevelSensor         = 49
	ccThermostatMode           = 64
	ccThermostatOperatingState = 66
	ccThermostatSetpoint       = 67
	ccThermostatFanMode        = 68
	ccThermostatFanState       = 69
)

// Set points of the modes that heat and cool (zwave-js ThermostatSetpointType).
const heating, cooling = 1, 2

// Modes (zwave-js ThermostatMode).
const (
	modeOff            = 0
	modeHeat           = 1
	modeCool           = 2
	modeAuto           = 3
	modeAuxiliary      = 4
	modeFurnace        = 7
	modeAutoChangeover = 10
	modeEnergyHeat     = 11
	modeEnergyCool     = 12
	modeAway           = 13
	modeFullPower      = 15
)

var hvacModes = map[int]capability.HVACMode{
	modeOff: capability.Off, modeHeat: capability.Heat, modeCool: capability.Cool, modeAuto: capability.HeatCool,
	modeAuxiliary: capability.Heat, modeFurnace: capability.Heat, modeAutoChangeover: capability.HeatCool,
	modeEnergyHeat: capability.Eco, modeEnergyCool: capability.Eco, modeAway: capability.Eco,
	modeFullPower: capability.Heat,
}

// fanModes are the modes of a fan (zwave-js ThermostatFanMode) in the order in which they are chosen.
var fanModes = []struct {
	mode  capability.FanMode
	codes []int
}{
	{capability.FanAuto, []int{0, 4, 2}},       // auto low, auto medium, auto high
	{capability.FanOn, []int{1, 5, 3}},         // low, medium, high
	{capability.FanCirculate, []int{6, 7, 11}}, // circulation, humidity circulation, external circulation
}

// What runs (zwave-js ThermostatOperatingState): the stages of heating, cooling, and auxiliary heat. Others run the fan
// only.
var (
	heatingStates   = states(1<<1 | 1<<7 | 1<<8 | 1<<10 | 1<<11)
	coolingStates   = states(1<<2 | 1<<9)
	auxiliaryStates = states(1<<7 | 1<<10 | 1<<11)
	fanOnlyStates   = states(1<<3 | 1<<6)
)

// states is a set of small numbers. As JSON, it is an object with the numbers as keys; other keys are ignored.
type states uint32

// UnmarshalJSON implements json.Unmarshaler.
func (s *states) UnmarshalJSON(data []byte) error {
	*s = 0
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if n, err := strconv.Atoi(key.(string)); err == nil && 0 <= n && n < 32 {
			*s |= 1 << n
		}
		var ignored json.RawMessage
		if err := d.Decode(&ignored); err != nil {
			return err
		}
	}
	return nil
}

func (s states) has(n int) bool { return 0 <= n && n < 32 && s&(1<<n) != 0 }

// codeIn returns the number as a small whole number, and nil if it is none.
func codeIn(n adapter.Number) *int {
	f := n.Within(0, 255)
	if f == nil || *f != math.Trunc(*f) {
		return nil
	}
	return new(int(*f))
}

// isFahrenheit reports whether the unit is °F, and was without a unit.
func isFahrenheit(unit text, was bool) bool {
	if unit == "" {
		return was
	}
	return unit == "°F"
}

// setPoint is one set point.
type setPoint struct {
	adapter.SetPoint

	known bool // the device has it
	value *float64
}

// climate is what a thermostat shows. Adapter.mu guards it.
type climate struct {
	// endpoint is where the thermostat is on the node.
	endpoint int
	// switchable means that the device has modes; otherwise its set points decide.
	switchable bool
	// modes and fans are what the device supports; 0 if unknown.
	modes, fans states
	// mode, fan, operating, and fanState are codes of zwave-js; nil if unknown.
	mode, fan, operating, fanState *int
	fanOff                         bool
	heat, cool                     setPoint
	sensor                         adapter.SetPoint // only its unit
	temperature                    *float64         // in the unit of the sensor
	humidity                       *float64         // between 0 and 1
	// held are the values that are being written. The gateway announces a value before the device has it.
	held map[valueID]bool
	// missed means that changes may have been missed since the thermostat was read.
	missed bool
}

// valueID identifies a value of a node, as zwave-js does.
type valueID struct {
	CC       int    `json:"commandClass"`
	Endpoint int    `json:"endpoint"`
	Property string `json:"property"`
	Key      int    `json:"propertyKey,omitempty"`
}

// isThermostat reports whether an endpoint of the node is a thermostat.
func (w *wireNode) isThermostat() bool {
	return w.offers(ccThermostatMode) || w.offers(ccThermostatSetpoint)
}

// offers reports whether an endpoint of the node has the command class.
func (w *wireNode) offers(commandClass int) bool {
	for _, e := range w.Endpoints {
		for _, c := range e.CommandClasses {
			if c.ID == commandClass {
				return true
			}
		}
	}
	return false
}

// list applies the description of the node. What an incomplete interview does not show stays. The thermostat is at the
// first endpoint with its values, because the gateway hides what an endpoint repeats.
func (c *climate) list(w *wireNode) {
	found := false
	for _, v := range w.Values {
		if (v.CC == ccThermostatMode || v.CC == ccThermostatSetpoint) && v.Endpoint >= 0 &&
			(!found || v.Endpoint < c.endpoint) {
			c.endpoint, found = v.Endpoint, true
		}
	}
	c.switchable, c.missed = c.switchable || w.offers(ccThermostatMode), true
	for _, v := range w.Values {
		v.NewValue = v.Value
		c.describe(v)
		c.apply(v)
	}
}

// describe applies the metadata of a value: the supported modes, ranges, and units.
func (c *climate) describe(v wireValue) {
	m := v.Metadata
	switch {
	case v.CC == ccMultilevelSensor && v.Property == "Air temperature" && c.senses(v):
		c.sensor.Fahrenheit = isFahrenheit(m.Unit, c.sensor.Fahrenheit)
	case v.Endpoint != c.endpoint:
	case v.CC == ccThermostatMode && v.Property == "mode":
		c.modes, c.switchable = cmp.Or(m.States, c.modes), true
	case v.CC == ccThermostatFanMode && v.Property == "mode":
		c.fans = cmp.Or(m.States, c.fans)
	case v.CC == ccThermostatSetpoint && v.Property == "setpoint":
		p := c.point(v)
		if p == nil {
			return
		}
		p.known = true
		p.SetPoint = adapter.NewSetPoint(isFahrenheit(m.Unit, p.Fahrenheit), m.Min, m.Max, m.Steps)
	}
}

// point returns the set point of a value, and nil for those of other modes.
func (c *climate) point(v wireValue) *setPoint {
	switch n, _ := v.PropertyKey.number(); n {
	case heating:
		return &c.heat
	case cooling:
		return &c.cool
	}
	return nil
}

// senses reports whether the value is of the thermostat, or of the node itself.
func (c *climate) senses(v wireValue) bool { return v.Endpoint == c.endpoint || v.Endpoint == 0 }

// apply applies an announced value, and reports whether it is one of a thermostat, and whether it differs.
func (c *climate) apply(v wireValue) (changed, ok bool) {
	key, _ := v.PropertyKey.number()
	if c.held[valueID{v.CC, v.Endpoint, string(v.Property), key}] {
		return false, true
	}
	return c.store(v)
}

// store is apply for a value that the device itself has just shown.
func (c *climate) store(v wireValue) (changed, ok bool) {
	var n adapter.Number
	_ = n.UnmarshalJSON(v.NewValue) // never fails
	switch {
	case v.CC == ccMultilevelSensor && c.senses(v) && v.Property == "Air temperature":
		return replace(&c.temperature, n.Within(adapter.Coldest, adapter.Hottest)), true
	case v.CC == ccMultilevelSensor && c.senses(v) && v.Property == "Humidity":
		humidity := n.Within(0, 100)
		if humidity != nil {
			humidity = new(*humidity / 100)
		}
		return replace(&c.humidity, humidity), true
	case v.Endpoint != c.endpoint:
		return false, false
	case v.CC == ccThermostatMode && v.Property == "mode":
		return replace(&c.mode, codeIn(n)), true
	case v.CC == ccThermostatOperatingState && v.Property == "state":
		return replace(&c.operating, codeIn(n)), true
	case v.CC == ccThermostatFanState && v.Property == "state":
		return replace(&c.fanState, codeIn(n)), true
	case v.CC == ccThermostatFanMode && v.Property == "mode":
		return replace(&c.fan, codeIn(n)), true
	case v.CC == ccThermostatFanMode && v.Property == "off":
		off := string(v.NewValue) == "true"
		changed, c.fanOff = off != c.fanOff, off
		return changed, true
	case v.CC == ccThermostatSetpoint && v.Property == "setpoint":
		if p := c.point(v); p != nil {
			p.known = true
			return replace(&p.value, n.Within(adapter.Coldest, adapter.Hottest)), true
		}
	}
	return false, false
}

// replace replaces a value, and reports whether it differs.
func replace[T comparable](to **T, by *T) bool {
	was := *to
	*to = by
	return (was == nil) != (by == nil) || was != nil && *was != *by
}

// code returns the code of a mode. Of the two energy saving modes it returns the one that fits what the device does.
func (c *climate) code(m capability.HVACMode) (int, bool) {
	choice := map[capability.HVACMode][]int{
		capability.Off:      {modeOff},
		capability.Heat:     {modeHeat},
		capability.Cool:     {modeCool},
		capability.HeatCool: {modeAuto, modeAutoChangeover},
		capability.Eco:      {modeEnergyHeat, modeEnergyCool, modeAway},
	}[m]
	if c.mode != nil && (*c.mode == modeCool || *c.mode == modeEnergyCool) && m == capability.Eco {
		choice = []int{modeEnergyCool, modeEnergyHeat, modeAway}
	}
	if m.Heats() && !c.heat.known || m.Cools() && !c.cool.known {
		return 0, false
	}
	for _, code := range choice {
		if c.modes.has(code) {
			return code, true
		}
	}
	return 0, false
}

// fixed returns the mode of a device without modes, and empty if the device has modes or no set point.
func (c *climate) fixed() capability.HVACMode {
	switch {
	case c.switchable:
		return ""
	case c.heat.known && c.cool.known:
		return capability.HeatCool
	case c.heat.known:
		return capability.Heat
	case c.cool.known:
		return capability.Cool
	}
	return ""
}

// fanCode returns the code of a fan mode. The present one stays if it is of that mode.
func (c *climate) fanCode(m capability.FanMode) (int, bool) {
	if c.fan != nil && fanMode(*c.fan) == m && c.fans.has(*c.fan) {
		return *c.fan, true
	}
	for _, f := range fanModes {
		for _, code := range f.codes {
			if f.mode == m && c.fans.has(code) {
				return code, true
			}
		}
	}
	return 0, false
}

func fanMode(code int) capability.FanMode {
	for _, f := range fanModes {
		for _, c := range f.codes {
			if c == code {
				return f.mode
			}
		}
	}
	return ""
}

// limits returns what the thermostat accepts.
func (c *climate) limits() *capability.Thermostat {
	t := &capability.Thermostat{}
	if mode := c.fixed(); mode != "" {
		t.Modes = []capability.HVACMode{mode}
	}
	for _, m := range []capability.HVACMode{
		capability.Off, capability.Heat, capability.Cool, capability.HeatCool, capability.Eco,
	} {
		if _, ok := c.code(m); ok {
			t.Modes = append(t.Modes, m)
		}
	}
	for _, f := range fanModes {
		if _, ok := c.fanCode(f.mode); ok {
			t.FanModes = append(t.FanModes, f.mode)
		}
	}
	t.MinHeat, t.MaxHeat = c.heat.Celsius(c.heat.Min), c.heat.Celsius(c.heat.Max)
	t.MinCool, t.MaxCool = c.cool.Celsius(c.cool.Min), c.cool.Celsius(c.cool.Max)
	for _, p := range []setPoint{c.heat, c.cool} {
		if p.known {
			t.Step = max(t.Step, p.StepCelsius())
		}
	}
	return t
}

// shown returns the state of the thermostat, and nil while the gateway knows neither its mode nor a set point.
func (c *climate) shown() *adapter.Thermostat {
	if c.mode == nil && c.heat.value == nil && c.cool.value == nil {
		return nil
	}
	t := &adapter.Thermostat{
		Setting: adapter.ThermostatSetting{
			Mode: c.fixed(),
			Heat: c.heat.Celsius(c.heat.value),
			Cool: c.cool.Celsius(c.cool.value),
		},
		Temperature: c.sensor.Celsius(c.temperature),
		Humidity:    c.humidity,
	}
	if c.mode != nil {
		t.Setting.Mode = hvacModes[*c.mode]
	}
	if c.fan != nil && !c.fanOff {
		t.Setting.Fan = fanMode(*c.fan)
	}
	if c.operating != nil {
		t.Heating, t.Cooling = new(heatingStates.has(*c.operating)), new(coolingStates.has(*c.operating))
		t.AuxiliaryHeat = auxiliaryStates.has(*c.operating)
		if fanOnlyStates.has(*c.operating) {
			t.FanRunning = new(true)
		}
	}
	if c.fanState != nil {
		t.FanRunning = new(*c.fanState != 0)
	}
	return t
}
