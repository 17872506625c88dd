package zwavejs

import (
	"math"
	"reflect"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Nodes as zwave-js 15.29 lists a Honeywell T6 Pro, in °F, and a Eurotronic Spirit, in °C.
const (
	wallThermostat = `{"nodeId":2,"name":"Hall","status":4,"ready":true,"manufacturerId":57,"productType":17,"productId":8,"label":"TH6320ZW","deviceConfig":{"manufacturer":"Honeywell","label":"TH6320ZW"},
		"endpoints":[{"index":0,"commandClasses":[{"id":128,"version":1},{"id":64,"version":2},{"id":67,"version":3},{"id":49,"version":5},{"id":66,"version":1},{"id":68,"version":3},{"id":69,"version":1}]}],
		"values":[{"commandClass":64,"endpoint":0,"property":"mode","value":3,"metadata":{"min":0,"max":255,"label":"Thermostat mode","states":{"0":"Off","1":"Heat","2":"Cool","3":"Auto","11":"Energy heat"}}},
			{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"value":68,"metadata":{"label":"Setpoint (Heating)","ccSpecific":{"setpointType":1},"min":40,"max":90,"unit":"°F"}},
			{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":2,"value":77,"metadata":{"label":"Setpoint (Cooling)","ccSpecific":{"setpointType":2},"min":50,"max":99,"unit":"°F"}},
			{"commandClass":68,"endpoint":0,"property":"off","value":false,"metadata":{"label":"Thermostat fan turned off"}},
			{"commandClass":68,"endpoint":0,"property":"mode","value":6,"metadata":{"states":{"0":"Auto low","1":"Low","6":"Circulation"}}},
			{"commandClass":69,"endpoint":0,"property":"state","value":1,"metadata":{"states":{"0":"Idle / off","1":"Running / running low"}}},
			{"commandClass":66,"endpoint":0,"property":"state","value":7,"metadata":{"states":{"0":"Idle","1":"Heating"}}},
			{"commandClass":49,"endpoint":0,"property":"Air temperature","value":65.3,"metadata":{"unit":"°F"}},
			{"commandClass":49,"endpoint":0,"property":"Humidity","value":41,"metadata":{"unit":"%"}},
			{"commandClass":128,"endpoint":0,"property":"level","value":87}]}`
	radiatorValve = `{"nodeId":2,"status":4,"ready":true,"manufacturerId":328,"productType":3,"productId":1,"label":"Spirit","deviceConfig":{"manufacturer":"Eurotronics"},
		"endpoints":[{"index":0,"commandClasses":[{"id":64,"version":2},{"id":67,"version":3},{"id":49,"version":5}]}],
		"values":[{"commandClass":64,"endpoint":0,"property":"mode","value":11,"metadata":{"states":{"0":"Off","1":"Heat","11":"Energy heat","15":"Full power","31":"Manufacturer specific"}}},
			{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"value":20.5,"metadata":{"min":8,"max":28,"steps":0.1,"unit":"°C"}},
			{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":11,"value":17,"metadata":{"min":8,"max":28,"unit":"°C"}},
			{"commandClass":49,"endpoint":0,"property":"Air temperature","value":19.25,"metadata":{"unit":"°C"}}]}`
)

func lists(node string) string {
	return `{"type":"result","success":true,"messageId":"1","result":{"state":{"nodes":[` + node + `]}}}`
}

// listed returns the only device of a network.
func listed(t *testing.T, node string) (*Adapter, *session, adapter.Device) {
	t.Helper()
	a, s := told(t)
	a.hear(s, lists(node))
	if len(a.nodes) != 1 {
		t.Fatalf("%d devices", len(a.nodes))
	}
	return a, s, a.device(a.nodes[2])
}

func near(got *float64, want float64) bool { return got != nil && math.Abs(*got-want) < 0.01 }

func TestThermostatInFahrenheit(t *testing.T) {
	t.Parallel()
	_, _, d := listed(t, wallThermostat)
	c, shown := d.Capabilities.Thermostat, d.Thermostat
	if d.Type != "zwave_thermostat" || d.Provider != "zwave_js" || d.Name != "Hall" || d.Manufacturer != "Honeywell" ||
		!d.Online || d.CapabilitiesUnknown || !near(d.BatteryLevel, 0.87) || d.Locked != nil ||
		d.Capabilities.Kind() != "thermostat" || d.Capabilities.Lock || d.Capabilities.OnlineCodes {
		t.Fatalf("the device is %+v", d)
	}
	if want := []capability.HVACMode{
		capability.Off, capability.Heat, capability.Cool, capability.HeatCool, capability.Eco,
	}; !reflect.DeepEqual(c.Modes, want) {
		t.Errorf("modes %v", c.Modes)
	}
	if want := []capability.FanMode{
		capability.FanAuto, capability.FanOn, capability.FanCirculate,
	}; !reflect.DeepEqual(c.FanModes, want) {
		t.Errorf("fan modes %v", c.FanModes)
	}
	if !near(c.MinHeat, 4.44) || !near(c.MaxHeat, 32.22) || !near(c.MinCool, 10) || !near(c.MaxCool, 37.22) ||
		c.Step != 0.56 {
		t.Errorf("limits %+v", c)
	}
	if shown.Setting.Mode != capability.HeatCool || shown.Setting.Fan != capability.FanCirculate ||
		!near(shown.Setting.Heat, 20) || !near(shown.Setting.Cool, 25) || !near(shown.Temperature, 18.5) ||
		!near(shown.Humidity, 0.41) {
		t.Errorf("shown %+v", shown)
	}
	if !*shown.Heating || *shown.Cooling || !*shown.FanRunning || !shown.AuxiliaryHeat {
		t.Errorf("running %+v", shown)
	}
}

func TestThermostatThatOnlyHeats(t *testing.T) {
	t.Parallel()
	_, _, d := listed(t, radiatorValve)
	c, shown := d.Capabilities.Thermostat, d.Thermostat
	if want := []capability.HVACMode{
		capability.Off, capability.Heat, capability.Eco,
	}; !reflect.DeepEqual(c.Modes, want) || c.FanModes != nil || c.MinCool != nil || c.Step != 0.1 {
		t.Errorf("limits %+v", c)
	}
	if shown.Setting.Mode != capability.Eco || !near(shown.Setting.Heat, 20.5) || shown.Setting.Cool != nil ||
		shown.Setting.Fan != "" || shown.Heating != nil || shown.FanRunning != nil || !near(shown.Temperature, 19.25) {
		t.Errorf("shown %+v", shown)
	}
}

// A node without lock and thermostat is ignored, and so is a sensor.
func TestOtherNodesAreIgnored(t *testing.T) {
	t.Parallel()
	a, s := told(t)
	a.hear(
		s,
		lists(
			`{"nodeId":2,"status":4,"ready":true,"manufacturerId":1,"endpoints":[{"index":0,"commandClasses":[{"id":49,"version":5}]}],
		"values":[{"commandClass":49,"endpoint":0,"property":"Air temperature","value":20}]}`,
		),
	)
	if len(a.nodes) != 0 {
		t.Errorf("%d devices", len(a.nodes))
	}
}

// Some thermostats show their values at an endpoint only, and some have no modes.
func TestThermostatAtAnEndpoint(t *testing.T) {
	t.Parallel()
	_, _, d := listed(t, `{"nodeId":2,"status":4,"ready":true,"manufacturerId":1,
		"endpoints":[{"index":0,"commandClasses":[]},{"index":1,"commandClasses":[{"id":67,"version":3}]}],
		"values":[{"commandClass":67,"endpoint":1,"property":"setpoint","propertyKey":1,"value":21,"metadata":{"unit":"°C"}},
			{"commandClass":67,"endpoint":2,"property":"setpoint","propertyKey":1,"value":5,"metadata":{"unit":"°C"}},
			{"commandClass":49,"endpoint":0,"property":"Air temperature","value":20,"metadata":{"unit":"°C"}}]}`)
	if c := d.Capabilities.Thermostat; !reflect.DeepEqual(c.Modes, []capability.HVACMode{capability.Heat}) {
		t.Errorf("modes %v", c.Modes)
	}
	if s := d.Thermostat; s.Setting.Mode != capability.Heat || !near(s.Setting.Heat, 21) || !near(s.Temperature, 20) {
		t.Errorf("shown %+v", s)
	}
}

// An interview in progress shows the command classes before the values.
func TestThermostatBeforeItsInterview(t *testing.T) {
	t.Parallel()
	const bare = `{"nodeId":2,"status":4,"ready":false,"manufacturerId":57,"productType":17,"productId":8,"endpoints":[{"index":0,"commandClasses":[{"id":64,"version":2},{"id":67,"version":3}]}],"values":[]}`
	a, s, d := listed(t, bare)
	if !d.CapabilitiesUnknown || d.Thermostat != nil || d.Capabilities.Kind() != "thermostat" {
		t.Errorf("before: %+v", d)
	}
	if _, err := a.planClimate(
		a.nodes[2],
		adapter.ThermostatSetting{Mode: capability.Heat},
	); adapter.ClassOf(
		err,
	) != adapter.Transient {
		t.Errorf("before, a setting: %v", err)
	}
	a.hear(s, `{"type":"event","event":{"source":"node","nodeId":2,"event":"ready","nodeState":`+wallThermostat+`}}`)
	a.hear(s, lists(bare)) // after a restart of the gateway
	if d := a.device(a.nodes[2]); d.CapabilitiesUnknown || !near(d.Thermostat.Setting.Heat, 20) {
		t.Errorf("afterwards: %+v", d)
	}
}

func TestThermostatReportsChanges(t *testing.T) {
	t.Parallel()
	const updated = `{"type":"event","event":{"source":"node","nodeId":2,"event":"value updated","args":`
	for name, c := range map[string]struct {
		frame string
		want  func(*adapter.Thermostat) bool
	}{
		"the mode": {
			updated + `{"commandClass":64,"endpoint":0,"property":"mode","newValue":1}}}`,
			func(s *adapter.Thermostat) bool { return s.Setting.Mode == capability.Heat },
		},
		"an unknown mode": {
			updated + `{"commandClass":64,"endpoint":0,"property":"mode","newValue":8}}}`,
			func(s *adapter.Thermostat) bool { return s.Setting.Mode == "" },
		},
		"a set point": {
			updated + `{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":2,"newValue":86}}}`,
			func(s *adapter.Thermostat) bool { return near(s.Setting.Cool, 30) },
		},
		"the fan": {
			updated + `{"commandClass":68,"endpoint":0,"property":"mode","newValue":1}}}`,
			func(s *adapter.Thermostat) bool { return s.Setting.Fan == capability.FanOn },
		},
		"a fan that is switched off": {
			updated + `{"commandClass":68,"endpoint":0,"property":"off","newValue":true}}}`,
			func(s *adapter.Thermostat) bool { return s.Setting.Fan == "" },
		},
		"the room": {
			updated + `{"commandClass":49,"endpoint":0,"property":"Air temperature","newValue":50}}}`,
			func(s *adapter.Thermostat) bool { return near(s.Temperature, 10) },
		},
		"what runs": {
			updated + `{"commandClass":66,"endpoint":0,"property":"state","newValue":9}}}`,
			func(s *adapter.Thermostat) bool { return !*s.Heating && *s.Cooling && !s.AuxiliaryHeat },
		},
		"an absurd temperature": {
			updated + `{"commandClass":49,"endpoint":0,"property":"Air temperature","newValue":1e300}}}`,
			func(s *adapter.Thermostat) bool { return s.Temperature == nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s, _ := listed(t, wallThermostat)
			a.heardOf()
			a.hear(s, c.frame)
			if got := a.device(a.nodes[2]).Thermostat; !c.want(got) {
				t.Errorf("shown %+v", got)
			}
			if kinds := a.heardOf(); !reflect.DeepEqual(kinds, []adapter.EventKind{adapter.StatusChanged}) {
				t.Errorf("events %v", kinds)
			}
			a.hear(s, c.frame)
			if kinds := a.heardOf(); kinds != nil {
				t.Errorf("repeated: events %v", kinds)
			}
		})
	}
}

// A person can switch the unit at the thermostat: the metadata changes, and the values with it.
func TestThermostatChangesItsUnit(t *testing.T) {
	t.Parallel()
	a, s, _ := listed(t, wallThermostat)
	const event = `{"type":"event","event":{"source":"node","nodeId":2,"event":`
	a.hear(
		s,
		event+`"metadata updated","args":{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"metadata":{"min":5,"max":32,"unit":"°C"}}}}`,
	)
	a.hear(
		s,
		event+`"value updated","args":{"commandClass":67,"endpoint":0,"property":"setpoint","propertyKey":1,"newValue":21}}}`,
	)
	if d := a.device(a.nodes[2]); !near(d.Thermostat.Setting.Heat, 21) ||
		!near(d.Capabilities.Thermostat.MinHeat, 5) {
		t.Errorf("afterwards %+v, %+v", d.Thermostat, d.Capabilities.Thermostat)
	}
}

// heardOf returns the kinds of the events that were sent.
func (a *Adapter) heardOf() (kinds []adapter.EventKind) {
	for {
		select {
		case e := <-a.hints.Events():
			kinds = append(kinds, e.Kind)
		default:
			return kinds
		}
	}
}

func TestPlanClimate(t *testing.T) {
	t.Parallel()
	write := func(commandClass int, property string, key int, value any) climateWrite {
		return climateWrite{valueID: valueID{commandClass, 0, property, key}, value: value}
	}
	heat := func(v float64) climateWrite { return write(ccThermostatSetpoint, "setpoint", heating, v) }
	cool := func(v float64) climateWrite { return write(ccThermostatSetpoint, "setpoint", cooling, v) }
	for name, c := range map[string]struct {
		node    string
		setting adapter.ThermostatSetting
		want    []climateWrite
		class   adapter.Class
	}{
		"nothing": {node: wallThermostat},
		"everything": {
			node: wallThermostat,
			setting: adapter.ThermostatSetting{
				Mode: capability.HeatCool,
				Fan:  capability.FanAuto,
				Heat: new(19.4),
				Cool: new(24.0),
			},
			want: []climateWrite{
				write(ccThermostatMode, "mode", 0, 3.0), write(ccThermostatFanMode, "mode", 0, 0.0), heat(67), cool(75),
			},
		},
		"both higher than before": {
			node:    wallThermostat,
			setting: adapter.ThermostatSetting{Heat: new(26.0), Cool: new(28.0)},
			want:    []climateWrite{cool(82), heat(79)},
		},
		"one set point, rounded": {
			node:    radiatorValve,
			setting: adapter.ThermostatSetting{Heat: new(21.34)},
			want:    []climateWrite{heat(21.3)},
		},
		"the bound, converted": {
			node:    wallThermostat,
			setting: adapter.ThermostatSetting{Heat: new((90 - 32) / 1.8)},
			want:    []climateWrite{heat(90)},
		},
		"eco":            {node: radiatorValve, setting: adapter.ThermostatSetting{Mode: capability.Eco}, want: []climateWrite{write(ccThermostatMode, "mode", 0, 11.0)}},
		"too hot":        {node: radiatorValve, setting: adapter.ThermostatSetting{Heat: new(28.6)}, class: adapter.Invalid},
		"too cold":       {node: wallThermostat, setting: adapter.ThermostatSetting{Cool: new(9.0)}, class: adapter.Invalid},
		"absurd":         {node: radiatorValve, setting: adapter.ThermostatSetting{Heat: new(math.NaN())}, class: adapter.Invalid},
		"no such mode":   {node: radiatorValve, setting: adapter.ThermostatSetting{Mode: capability.HeatCool}, class: adapter.NotSupported},
		"no such fan":    {node: radiatorValve, setting: adapter.ThermostatSetting{Fan: capability.FanOn}, class: adapter.NotSupported},
		"no cooling":     {node: radiatorValve, setting: adapter.ThermostatSetting{Cool: new(25.0)}, class: adapter.NotSupported},
		"not for a lock": {node: plainLock, setting: adapter.ThermostatSetting{Mode: capability.Heat}, class: adapter.NotSupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _, _ := listed(t, c.node)
			got, err := a.planClimate(a.nodes[2], c.setting)
			if (err != nil) != (c.class != "") || err != nil && adapter.ClassOf(err) != c.class {
				t.Fatalf("error %v", err)
			}
			for i := range got {
				got[i].number, got[i].tolerance = 0, 0
			}
			if len(got)+len(c.want) > 0 && !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
