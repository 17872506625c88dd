package zigbee2mqtt_test

import (
	"math"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// modeCodes and fanCodes are the values of the Zigbee specification.
var (
	modeCodes = map[capability.HVACMode]int{
		capability.Off: 0, capability.HeatCool: 1, capability.Cool: 3, capability.Heat: 4,
	}
	fanCodes = map[capability.FanMode]int{capability.FanOn: 4, capability.FanAuto: 5}
)

func TestConformanceThermostats(t *testing.T) {
	for _, profile := range []zigbee.Profile{zigbee.Wall, zigbee.Radiator} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			adaptertest.RunThermostat(
				t,
				func(t *testing.T) adaptertest.Bed { return newThermostatBed(t, profile).thermostat() },
			)
		})
	}
}

func newThermostatBed(t *testing.T, profile zigbee.Profile) *bed {
	t.Helper()
	g := zigbee.Shared(t)
	b := connect(t, g, g.LeaseThermostat(t, profile).Lock)
	b.until("the thermostat is online and read", func() bool {
		d, err := b.Device(t.Context(), b.ref)
		return err == nil && d.Online && d.Thermostat != nil && *d.Thermostat.Setting.Heat == 20
	})
	return b
}

func (b *bed) thermostat() adaptertest.Bed {
	suite := b.suite()
	m := &zigbee.Thermostat{Lock: b.lock}
	hundredths := func(celsius *float64) *int {
		if celsius == nil {
			return nil
		}
		return new(int(math.Round(*celsius * 100)))
	}
	// a setting is a mode and a set point
	suite.DropNext = func(t testing.TB) { b.lock.Drop(t, 2) }
	suite.CutNext = func(testing.TB) { b.proxy.muteAfter("_setpoint\":2") }
	suite.AdjustByHand = func(t testing.TB, s adapter.ThermostatSetting) {
		change := zigbee.ThermostatState{Heat: hundredths(s.Heat), Cool: hundredths(s.Cool)}
		if s.Mode != "" {
			change.Mode = new(modeCodes[s.Mode])
		}
		if s.Fan != "" {
			change.Fan = new(fanCodes[s.Fan])
		}
		m.Adjust(t, change)
	}
	suite.SetTemperature = func(t testing.TB, celsius float64) {
		m.Adjust(t, zigbee.ThermostatState{Temperature: hundredths(&celsius)})
	}
	return suite
}

// Zigbee2MQTT announces what a thermostat has acknowledged and ignored.
func TestAnnouncedSettingIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := newThermostatBed(t, zigbee.Wall)
	b.lock.Drop(t, 1)
	state, err := b.SetThermostat(t.Context(), b.ref, adapter.ThermostatSetting{Heat: new(25.0)})
	if err != nil || state != adapter.Accepted {
		t.Fatalf("SetThermostat: %s, %v", state, err)
	}
	d, err := b.Device(t.Context(), b.ref)
	if err != nil || *d.Thermostat.Setting.Heat != 20 {
		t.Fatalf("the device shows %v, %v", *d.Thermostat.Setting.Heat, err)
	}
	if _, err = b.SetThermostat(t.Context(), b.ref, adapter.ThermostatSetting{Heat: new(25.0)}); err != nil {
		t.Fatal(err)
	}
	b.until("it is shown when the thermostat has it", func() bool {
		d, err := b.Device(t.Context(), b.ref)
		return err == nil && *d.Thermostat.Setting.Heat == 25
	})
	if s := (&zigbee.Thermostat{Lock: b.lock}).State(t); *s.Heat != 2500 {
		t.Errorf("the thermostat is set to %d", *s.Heat)
	}
}

// An idle thermostat is read once after each connection.
func TestIdleThermostatIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newThermostatBed(t, zigbee.Radiator)
	m := &zigbee.Thermostat{Lock: b.lock}
	asked := m.State(t).Frames
	for range 30 {
		if _, err := b.Devices(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Device(t.Context(), b.ref); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.State(t).Frames - asked; n != 0 {
		t.Errorf("an idle thermostat was sent %d frames", n)
	}
}
