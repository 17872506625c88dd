package zigbee2mqtt

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// Exposes as Zigbee2MQTT 2.14 lists them: a Zen-01, an eCozy, and a Tuya valve.
const (
	zen = `{"type":"climate","features":[
			{"name":"occupied_heating_setpoint","property":"occupied_heating_setpoint","access":7,"type":"numeric","unit":"°C","value_min":10,"value_max":30,"value_step":0.05},
			{"name":"occupied_cooling_setpoint","property":"occupied_cooling_setpoint","access":7,"type":"numeric","unit":"°C","value_min":10,"value_max":31,"value_step":0.5},
			{"name":"local_temperature","property":"local_temperature","access":5,"type":"numeric","unit":"°C"},
			{"name":"system_mode","property":"system_mode","access":7,"type":"enum","values":["off","auto","heat","cool","emergency_heating"]},
			{"name":"running_state","property":"running_state","access":5,"type":"enum","values":["idle","heat","cool"]},
			{"name":"fan_mode","property":"fan_mode","access":7,"type":"enum","values":["auto","on"]}]},
		{"type":"numeric","name":"humidity","property":"humidity","access":1,"unit":"%"}`
	ecozy = `{"type":"climate","features":[
			{"name":"occupied_heating_setpoint","property":"occupied_heating_setpoint","access":7,"type":"numeric","unit":"°C","value_min":7,"value_max":30,"value_step":1},
			{"name":"local_temperature","property":"local_temperature","access":5,"type":"numeric","unit":"°C"},
			{"name":"system_mode","property":"system_mode","access":7,"type":"enum","values":["off","auto","heat"]},
			{"name":"running_state","property":"running_state","access":5,"type":"enum","values":["idle","heat"]}]}`
	tuya = `{"type":"climate","features":[
			{"name":"current_heating_setpoint","property":"current_heating_setpoint","access":3,"type":"numeric","unit":"°C","value_min":5,"value_max":35,"value_step":0.1},
			{"name":"local_temperature","property":"local_temperature","access":1,"type":"numeric","unit":"°C"}]}`
)

// thermostatListed is a thermostat in the list of Zigbee2MQTT.
func thermostatListed(exposes string) string {
	return fmt.Sprintf(
		`{"ieee_address":"0xa","type":"EndDevice","friendly_name":"hall","network_address":7,"power_source":"Battery","definition":{"model":"Zen-01-W","vendor":"Zen","exposes":[%s]}}`,
		exposes,
	)
}

func near(got *float64, want float64) bool { return got != nil && math.Abs(*got-want) < 0.01 }

func TestThermostatThatHeatsAndCools(t *testing.T) {
	t.Parallel()
	a := told(t, thermostatListed(zen))
	a.publish(
		"hall",
		`{"occupied_heating_setpoint":20,"occupied_cooling_setpoint":25.5,"local_temperature":19.25,"system_mode":"auto",
		"running_state":"heat","fan_mode":"on","fan_state":"ON","humidity":41,"battery":77,"linkquality":100}`,
	)
	d := a.device(a.locks["0xa"])
	c, shown := d.Capabilities.Thermostat, d.Thermostat
	if d.Type != "zigbee_thermostat" || d.Provider != "zigbee2mqtt" || d.Name != "hall" || d.Manufacturer != "Zen" ||
		!d.Online || !near(d.BatteryLevel, 0.77) || d.Capabilities.Kind() != "thermostat" || d.Capabilities.Lock {
		t.Fatalf("the device is %+v", d)
	}
	modes := []capability.HVACMode{capability.Off, capability.Heat, capability.Cool, capability.HeatCool}
	if !reflect.DeepEqual(c.Modes, modes) ||
		!reflect.DeepEqual(c.FanModes, []capability.FanMode{capability.FanAuto, capability.FanOn}) ||
		!near(c.MinHeat, 10) || !near(c.MaxHeat, 30) || !near(c.MinCool, 10) || !near(c.MaxCool, 31) || c.Step != 0.5 {
		t.Errorf("limits %+v", c)
	}
	if shown.Setting.Mode != capability.HeatCool || shown.Setting.Fan != capability.FanOn ||
		!near(shown.Setting.Heat, 20) || !near(shown.Setting.Cool, 25.5) || !near(shown.Temperature, 19.25) ||
		!near(shown.Humidity, 0.41) || !*shown.Heating || *shown.Cooling || shown.AuxiliaryHeat {
		t.Errorf("shown %+v", shown)
	}
}

// The program of a radiator valve heats. Some valves have no modes.
func TestRadiatorValves(t *testing.T) {
	t.Parallel()
	for exposes, c := range map[string]struct {
		state string
		modes []capability.HVACMode
		step  float64
	}{
		ecozy: {`{"occupied_heating_setpoint":20,"system_mode":"auto"}`, []capability.HVACMode{capability.Off, capability.Heat}, 1},
		tuya:  {`{"current_heating_setpoint":20}`, []capability.HVACMode{capability.Heat}, 0.1},
	} {
		a := told(t, thermostatListed(exposes))
		if d := a.device(a.locks["0xa"]); d.Thermostat != nil {
			t.Errorf("before it has reported: %+v", d.Thermostat)
		}
		a.publish("hall", c.state)
		d := a.device(a.locks["0xa"])
		if l := d.Capabilities.Thermostat; !reflect.DeepEqual(l.Modes, c.modes) || l.FanModes != nil ||
			l.Step != c.step ||
			l.MinCool != nil {
			t.Errorf("limits %+v", l)
		}
		if s := d.Thermostat.Setting; s.Mode != capability.Heat || !near(s.Heat, 20) || s.Cool != nil || s.Fan != "" {
			t.Errorf("shown %+v", s)
		}
	}
}

func TestThermostatReportsChanges(t *testing.T) {
	t.Parallel()
	a := told(t, thermostatListed(zen))
	const state = `{"occupied_heating_setpoint":20,"system_mode":"heat","linkquality":%d}`
	a.publish("hall", fmt.Sprintf(state, 1))
	a.heardOf()
	a.publish("hall", fmt.Sprintf(state, 2))
	if kinds := a.heardOf(); kinds != nil {
		t.Errorf("without a change: %v", kinds)
	}
	a.publish("hall", `{"occupied_heating_setpoint":21,"system_mode":"heat"}`)
	if kinds := a.heardOf(); !slices.Equal(kinds, []adapter.EventKind{adapter.StatusChanged}) {
		t.Errorf("with a change: %v", kinds)
	}
	end := a.keepShown(a.locks["0xa"])
	a.publish("hall", `{"occupied_heating_setpoint":25,"system_mode":"heat"}`)
	if d := a.device(a.locks["0xa"]); !near(d.Thermostat.Setting.Heat, 21) {
		t.Errorf("while it is set: %+v", d.Thermostat.Setting)
	}
	end()
}

// A sensor, a fan, and a climate that cannot be set are no thermostats.
func TestOtherDevicesAreIgnored(t *testing.T) {
	t.Parallel()
	for _, exposes := range []string{
		`{"type":"numeric","property":"humidity","access":1}`,
		`{"type":"fan","features":[{"name":"mode","property":"fan_mode","access":7,"values":["on"]}]}`,
		strings.ReplaceAll(zen, `"access":7`, `"access":5`),
		`{"type":"climate","features":[]}`, `{"type":"climate"}`,
	} {
		if a := told(t, thermostatListed(exposes)); len(a.locks) != 0 {
			t.Errorf("%.60s: %d devices", exposes, len(a.locks))
		}
	}
}

func TestPlanClimate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exposes string
		setting adapter.ThermostatSetting
		want    string
		class   adapter.Class
	}{
		"nothing": {exposes: zen, want: "[]"},
		"everything": {
			exposes: zen,
			setting: adapter.ThermostatSetting{
				Mode: capability.HeatCool,
				Fan:  capability.FanAuto,
				Heat: new(19.3),
				Cool: new(24.0),
			},
			want: "[system_mode=auto fan_mode=auto occupied_heating_setpoint=19.5 occupied_cooling_setpoint=24]",
		},
		"both higher than before": {
			exposes: zen,
			setting: adapter.ThermostatSetting{Heat: new(26.0), Cool: new(28.0)},
			want:    "[occupied_cooling_setpoint=28 occupied_heating_setpoint=26]",
		},
		"a valve without modes": {
			exposes: tuya,
			setting: adapter.ThermostatSetting{Mode: capability.Heat, Heat: new(21.34)},
			want:    "[current_heating_setpoint=21.3]",
		},
		"its own program is no mode": {exposes: ecozy, setting: adapter.ThermostatSetting{Mode: capability.HeatCool}, class: adapter.NotSupported},
		"no eco":                     {exposes: zen, setting: adapter.ThermostatSetting{Mode: capability.Eco}, class: adapter.NotSupported},
		"no such fan":                {exposes: zen, setting: adapter.ThermostatSetting{Fan: capability.FanCirculate}, class: adapter.NotSupported},
		"no cooling":                 {exposes: ecozy, setting: adapter.ThermostatSetting{Cool: new(25.0)}, class: adapter.NotSupported},
		"too hot":                    {exposes: zen, setting: adapter.ThermostatSetting{Heat: new(30.5)}, class: adapter.Invalid},
		"absurd":                     {exposes: tuya, setting: adapter.ThermostatSetting{Heat: new(math.NaN())}, class: adapter.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := told(t, thermostatListed(c.exposes))
			a.publish("hall", `{"occupied_heating_setpoint":20,"occupied_cooling_setpoint":25}`)
			writes, err := a.planClimate(a.locks["0xa"], c.setting)
			if (err != nil) != (c.class != "") || err != nil && adapter.ClassOf(err) != c.class {
				t.Fatalf("error %v", err)
			}
			got := []string{}
			for _, w := range writes {
				got = append(got, fmt.Sprintf("%s=%v", w.property, w.value))
			}
			if err == nil && fmt.Sprint(got) != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
	a := told(t, lockListed("0xa", "front door", "V"))
	if _, err := a.planClimate(
		a.locks["0xa"],
		adapter.ThermostatSetting{},
	); adapter.ClassOf(
		err,
	) != adapter.NotSupported {
		t.Errorf("a lock: %v", err)
	}
}

func TestStoredThermostatIsLimited(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60_000)
	values := `"` + strings.Join(slices.Repeat([]string{long[:30]}, 1000), `","`) + `"`
	a := told(
		t,
		thermostatListed(`{"type":"climate","features":[{"property":"system_mode","access":7,"values":[`+values+`]},
		{"name":"occupied_heating_setpoint","property":"`+long+`","access":7},{"name":"fan_mode","property":"`+long+`","access":7}]}`),
	)
	a.publish("hall", `{"system_mode":"`+long+`"}`)
	if len(a.locks) != 1 || len(a.locks["0xa"].climate.modes) != maxWords {
		t.Fatalf("%d devices", len(a.locks))
	}
	if size := sizeOf(a.locks["0xa"]); size > 10_000 {
		t.Errorf("%d bytes are kept", size)
	}
}
