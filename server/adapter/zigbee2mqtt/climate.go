package zigbee2mqtt

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// words is a list of texts. Other elements, long texts, and those after maxWords are left out.
type words []string

// maxWords and maxWordSize bound the values of a property; a thermostat has some ten modes.
const maxWords, maxWordSize = 32, 32

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(data []byte) error {
	*w = nil
	var all few[json.RawMessage]
	_ = json.Unmarshal(data, &all) // another type has no texts
	for _, one := range all {
		var text string
		if json.Unmarshal(one, &text) == nil && text != "" && len(text) <= maxWordSize && len(*w) < maxWords {
			*w = append(*w, text)
		}
	}
	return nil
}

// climate describes a thermostat: the properties in its state, and what they accept.
type climate struct {
	mode, fan, running, temperature, humidity string // properties; empty if the device has none
	modes, fans                               words
	heat, cool                                climatePoint
	// thermometer is only a unit.
	thermometer adapter.SetPoint
	// readable holds the properties that can be read from the device.
	readable map[string]bool
}

// climatePoint is a set point that can be set.
type climatePoint struct {
	adapter.SetPoint

	property string // empty if the device has none
}

// zclStep is the step of Zigbee2MQTT for the set points of the Zigbee specification, in °C
// (zigbee-herdsman-converters, thermostat_occupied_heating_setpoint).
const zclStep = 0.5

// climateOf returns the thermostat that a device exposes, and nil if it exposes none. Of several, it is the first.
func climateOf(all []expose) *climate {
	c := &climate{readable: map[string]bool{}}
	found := false
	for _, e := range all {
		switch {
		case e.Type == "climate" && !found:
			found = true
			for _, f := range e.Features {
				c.add(f)
			}
		case e.Type == "fan":
			for _, f := range e.Features {
				c.addFan(f)
			}
		default:
			c.addFan(e.feature)
			if e.Property == "humidity" {
				c.humidity = e.Property
			}
		}
	}
	if !found || c.heat.property == "" && c.cool.property == "" && c.mode == "" {
		return nil
	}
	return c
}

// add adds a part of the climate.
func (c *climate) add(f feature) {
	if f.Property == "" || len(f.Property) > maxTextSize {
		return
	}
	known := true
	switch name := cmp.Or(f.Name, f.Property); name {
	case "system_mode":
		if f.Access&canSet != 0 {
			c.mode, c.modes = f.Property, f.Values
		}
	case "occupied_heating_setpoint", "current_heating_setpoint":
		c.heat.set(f, name)
	case "occupied_cooling_setpoint", "current_cooling_setpoint":
		c.cool.set(f, name)
	case "local_temperature":
		c.temperature, c.thermometer.Fahrenheit = f.Property, f.Unit == "°F"
	case "running_state":
		c.running = f.Property
	default:
		known = false
		c.addFan(f)
	}
	if known && f.Access&canGet != 0 {
		c.readable[f.Property] = true
	}
}

// set describes the set point. Of several it is the first.
func (p *climatePoint) set(f feature, name string) {
	if f.Access&canSet == 0 || p.property != "" {
		return
	}
	p.property, p.SetPoint = f.Property, adapter.NewSetPoint(f.Unit == "°F", f.Min, f.Max, f.Step)
	if p.Step != nil && *p.Step < zclStep &&
		(name == "occupied_heating_setpoint" || name == "occupied_cooling_setpoint") {
		p.Step = new(zclStep)
	}
}

// addFan adds the mode of a fan, which can be a part of the climate, a fan, or a property of its own.
func (c *climate) addFan(f feature) {
	if cmp.Or(f.Name, f.Property) != "fan_mode" && f.Property != "fan_mode" || f.Access&canSet == 0 || c.fan != "" ||
		len(f.Property) > maxTextSize {
		return
	}
	c.fan, c.fans = f.Property, f.Values
	if f.Access&canGet != 0 {
		c.readable[f.Property] = true
	}
}

// systemModes are the values of system_mode (zigbee-herdsman-converters, thermostatSystemModes) in the order in which
// they are chosen. Without a cooling set point, auto is the program of a radiator valve, which heats.
func (c *climate) systemModes() []wordOf[capability.HVACMode] {
	automatic := capability.HeatCool
	if c.cool.property == "" {
		automatic = capability.Heat
	}
	return []wordOf[capability.HVACMode]{
		{capability.Off, "off"},
		{capability.Heat, "heat"},
		{capability.Cool, "cool"},
		{automatic, "auto"},
		{capability.HeatCool, "heat_cool"},
		{capability.Eco, "eco"},
		{capability.Heat, "emergency_heating"},
		{capability.Cool, "precooling"},
	}
}

// fanModes are the values of fan_mode in the order in which they are chosen.
var fanModes = []wordOf[capability.FanMode]{
	{capability.FanAuto, "auto"},
	{capability.FanAuto, "smart"},
	{capability.FanOn, "on"},
	{capability.FanOn, "low"},
	{capability.FanOn, "medium"},
	{capability.FanOn, "high"},
	{capability.FanCirculate, "circulate"},
	{capability.FanCirculate, "circulation"},
}

// wordOf is a mode and its word.
type wordOf[T ~string] struct {
	mode T
	word string
}

// choose returns the first word of a mode that the device has.
func choose[T ~string](all []wordOf[T], mode T, has words) (string, bool) {
	for _, w := range all {
		if w.mode == mode && slices.Contains(has, w.word) {
			return w.word, true
		}
	}
	return "", false
}

// meaning returns the mode of a word, and empty if the word means none of the API.
func meaning[T ~string](all []wordOf[T], word string) T {
	for _, w := range all {
		if w.word == word {
			return w.mode
		}
	}
	return ""
}

// choose returns the word of a mode.
func (c *climate) choose(mode capability.HVACMode) (string, bool) {
	if c.mode == "" || mode.Heats() && c.heat.property == "" || mode.Cools() && c.cool.property == "" {
		return "", false
	}
	return choose(c.systemModes(), mode, c.modes)
}

// fixed returns the mode of a device without modes, and empty if the device has modes.
func (c *climate) fixed() capability.HVACMode {
	switch {
	case c.mode != "":
		return ""
	case c.heat.property != "" && c.cool.property != "":
		return capability.HeatCool
	case c.cool.property != "":
		return capability.Cool
	}
	return capability.Heat
}

// limits returns what the thermostat accepts.
func (c *climate) limits() *capability.Thermostat {
	t := &capability.Thermostat{}
	if mode := c.fixed(); mode != "" {
		t.Modes = append(t.Modes, mode)
	}
	for _, m := range []capability.HVACMode{
		capability.Off, capability.Heat, capability.Cool, capability.HeatCool, capability.Eco,
	} {
		if _, ok := c.choose(m); ok {
			t.Modes = append(t.Modes, m)
		}
	}
	for _, f := range []capability.FanMode{capability.FanAuto, capability.FanOn, capability.FanCirculate} {
		if _, ok := choose(fanModes, f, c.fans); ok {
			t.FanModes = append(t.FanModes, f)
		}
	}
	t.MinHeat, t.MaxHeat = c.heat.Celsius(c.heat.Min), c.heat.Celsius(c.heat.Max)
	t.MinCool, t.MaxCool = c.cool.Celsius(c.cool.Min), c.cool.Celsius(c.cool.Max)
	for _, p := range []climatePoint{c.heat, c.cool} {
		if p.property != "" {
			t.Step = max(t.Step, p.StepCelsius())
		}
	}
	return t
}

// climateState is the state of a thermostat in a message, in the units of the device.
type climateState struct {
	mode, fan, running string
	heat, cool         optional
	temperature        optional
	humidity           optional // percent
}

// optional is a number that can be unknown. It is comparable.
type optional struct {
	value float64
	known bool
}

func optionalOf(v *float64) optional {
	if v == nil {
		return optional{}
	}
	return optional{*v, true}
}

func (o optional) pointer() *float64 {
	if !o.known {
		return nil
	}
	return &o.value
}

// read decodes the properties of the thermostat in a message.
func (c *climate) read(payload []byte) (s climateState) {
	text := func(value json.RawMessage) string {
		var t string
		_ = json.Unmarshal(value, &t) // otherwise it is no mode
		return brief(t, maxWordSize)
	}
	number := func(value json.RawMessage, least, most float64) optional {
		var n adapter.Number
		_ = n.UnmarshalJSON(value) // never fails
		return optionalOf(n.Within(least, most))
	}
	_ = members(payload, func(name string, value *json.Decoder) error { // readState has reported errors
		var v json.RawMessage
		if err := value.Decode(&v); err != nil {
			return err
		}
		switch name {
		case "":
		case c.mode:
			s.mode = text(v)
		case c.fan:
			s.fan = text(v)
		case c.running:
			s.running = text(v)
		case c.heat.property:
			s.heat = number(v, adapter.Coldest, adapter.Hottest)
		case c.cool.property:
			s.cool = number(v, adapter.Coldest, adapter.Hottest)
		case c.temperature:
			s.temperature = number(v, adapter.Coldest, adapter.Hottest)
		case c.humidity:
			s.humidity = number(v, 0, 100)
		}
		return nil
	})
	return s
}

// thermostat converts the state; nil if it is empty.
func (c *climate) thermostat(s climateState) *adapter.Thermostat {
	if s == (climateState{}) {
		return nil
	}
	t := &adapter.Thermostat{
		Setting: adapter.ThermostatSetting{
			Mode: cmp.Or(c.fixed(), meaning(c.systemModes(), s.mode)),
			Fan:  meaning(fanModes, s.fan),
			Heat: c.heat.Celsius(s.heat.pointer()),
			Cool: c.cool.Celsius(s.cool.pointer()),
		},
		Temperature: c.thermometer.Celsius(s.temperature.pointer()),
	}
	if s.humidity.known {
		t.Humidity = new(s.humidity.value / 100)
	}
	if s.running != "" {
		t.Heating, t.Cooling = new(s.running == "heat"), new(s.running == "cool")
		t.AuxiliaryHeat = s.running == "heat" && s.mode == "emergency_heating"
		if s.running == "fan_only" {
			t.FanRunning = new(true)
		}
	}
	return t
}

// contents is the event of a device whose contents may have changed.
func (l *lock) contents() adapter.EventKind {
	if l.climate != nil {
		return adapter.StatusChanged
	}
	return adapter.CodesChanged
}

// thermostat returns the description of a thermostat; Adapter.mu is held.
func (l *lock) thermostat() adapter.Device {
	return adapter.Device{
		Ref:          l.ref,
		Name:         l.name,
		Type:         "zigbee_thermostat",
		Provider:     "zigbee2mqtt",
		Manufacturer: l.vendor,
		Model:        l.model,
		SerialNumber: string(l.ref),
		Online:       l.online(),
		BatteryLevel: l.battery,
		Thermostat:   l.climate.thermostat(l.shown),
		Capabilities: capability.Set{
			Thermostat:  l.climate.limits(),
			Convert:     capability.ConvertNever,
			Confirm:     capability.ConfirmSync,
			DirectPower: l.directPower,
		},
	}
}
