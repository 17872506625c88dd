package zwavejs_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	lab "github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
)

// modeCodes and fanCodes are the codes of Z-Wave.
var (
	modeCodes = map[capability.HVACMode]int{
		capability.Off: 0, capability.Heat: 1, capability.Cool: 2, capability.HeatCool: 3, capability.Eco: 11,
	}
	fanCodes = map[capability.FanMode]int{capability.FanAuto: 0, capability.FanOn: 1, capability.FanCirculate: 6}
)

// TestConformanceThermostats runs the suite for each kind of thermostat.
func TestConformanceThermostats(t *testing.T) {
	t.Parallel()
	for _, profile := range []lab.Profile{lab.Wall, lab.Radiator} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			adaptertest.RunThermostat(t, func(t *testing.T) adaptertest.Bed {
				g := lab.Shared(t)
				return thermostatBed(newHouse(t, g.LeaseThermostat(t, profile).Lock, g.URL))
			})
		})
	}
}

func thermostatBed(h *house) adaptertest.Bed {
	bed := h.bed()
	thermostat := &lab.Thermostat{Lock: h.Lock}
	unit := func(celsius *float64) *float64 {
		if celsius == nil || h.Profile == lab.Radiator {
			return celsius
		}
		return new(*celsius*1.8 + 32)
	}
	bed.FailNext = nil // the device itself is not asked for what it reports
	bed.BreakNext = nil
	// a setting is a mode and a set point
	bed.DropNext = func(t testing.TB) { h.Fault(t, lab.Faults{Drop: 2}) }
	bed.Heal = func(testing.TB) { h.relay.set(func(r *relay) { r.cutNext = false }) }
	bed.AdjustByHand = func(t testing.TB, s adapter.ThermostatSetting) {
		change := lab.Adjustment{Heat: unit(s.Heat), Cool: unit(s.Cool)}
		if s.Mode != "" {
			change.Mode = new(modeCodes[s.Mode])
		}
		if s.Fan != "" {
			change.Fan = new(fanCodes[s.Fan])
		}
		thermostat.Adjust(t, change)
	}
	bed.SetTemperature = func(t testing.TB, celsius float64) {
		thermostat.Adjust(t, lab.Adjustment{Temperature: unit(&celsius)})
	}
	return bed
}

// An idle thermostat is read once after each connection, and not by listing it.
func TestIdleThermostatIsLeftAlone(t *testing.T) {
	t.Parallel()
	g := lab.Shared(t)
	m := g.LeaseThermostat(t, lab.Wall)
	h := newHouse(t, m.Lock, g.URL)
	if _, err := h.adapter.Device(t.Context(), h.device); err != nil {
		t.Fatal(err)
	}
	// The gateway itself verifies what an earlier test has set.
	until(t, "thirty reads send nothing to an idle thermostat", func() bool {
		asked := m.State(t).Frames
		for range 30 {
			if _, err := h.adapter.Devices(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := h.adapter.Device(t.Context(), h.device); err != nil {
				t.Fatal(err)
			}
		}
		return m.State(t).Frames == asked
	})
}

// The thermostat ignores what it has acknowledged, and the gateway announces it nevertheless.
func TestAnnouncedSettingIsNotBelieved(t *testing.T) {
	t.Parallel()
	g := lab.Shared(t)
	m := g.LeaseThermostat(t, lab.Wall)
	h := newHouse(t, m.Lock, g.URL)
	h.Fault(t, lab.Faults{Drop: 1})
	state, err := h.adapter.SetThermostat(t.Context(), h.device, adapter.ThermostatSetting{Heat: new(25.0)})
	if err != nil || state != adapter.Accepted {
		t.Fatalf("SetThermostat: %s, %v", state, err)
	}
	d, err := h.adapter.Device(t.Context(), h.device)
	if err != nil || *d.Thermostat.Setting.Heat != 20 {
		t.Fatalf("the device shows %v, %v", *d.Thermostat.Setting.Heat, err)
	}
	if _, err = h.adapter.SetThermostat(t.Context(), h.device, adapter.ThermostatSetting{Heat: new(25.0)}); err != nil {
		t.Fatal(err)
	}
	until(t, "it is shown when the thermostat has it", func() bool {
		d, err := h.adapter.Device(t.Context(), h.device)
		return err == nil && *d.Thermostat.Setting.Heat == 25
	})
	if s := m.State(t); s.Heat != 77 {
		t.Errorf("the thermostat is set to %+v", s)
	}
}
