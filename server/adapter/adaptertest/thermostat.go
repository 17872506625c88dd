package adaptertest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// thermostatChecks run in parallel, each on its own bed.
var thermostatChecks = []struct {
	name string
	run  func(*trial)
}{
	{"the thermostat is equal when listed and when read", thermostatListedAsRead},
	{"the limits of a thermostat agree with each other", limitsAgree},

	{"every mode is set and read back", modesSet},
	{"every fan mode is set and read back", fanModesSet},
	{"set points at the bounds are accepted", boundsAccepted},
	{"set points outside the bounds are refused", boundsRefused},
	{"set points that are too close are refused", deltaKept},
	{"a set point is rounded by half a step at most", setPointRounded},
	{"fields without a value stay as they are", absentFieldsKept},
	{"a setting can be repeated", settingRepeated},
	{"a mode that the device lacks is not supported", modeUnsupported},

	{"an unknown thermostat is not found", thermostatUnknown},
	{"a removed thermostat is not found", thermostatRemoved},
	{"an offline thermostat refuses, and accepts when back online", thermostatOffline},
	{"a revoked account is reported to a thermostat", thermostatRevoked},
	{"a dropped setting is detected by reading", settingDropped},
	{"a setting that failed on the device is detected by reading", settingBroken},
	{"a setting without a response is unconfirmed and repeatable", settingCut},
	{"each fault of a setting has its class", settingFaultsClassified},
	{"a closed connection is reestablished for a setting", settingReconnected},
	{"a setting ends with its context", settingContextEnds},
	{"no setting is sent without the lease", settingNeedsLease},
	{"a stopped gateway is reported to a thermostat", settingStopped},

	{"a setting is reported", settingTold},
	{"a change by hand is reported and read", adjustmentTold},
	{"a change by hand while offline is read afterwards", adjustmentOffline},
	{"the temperature is reported and read", temperatureTold},
	{"heating and cooling follow the temperature", runningFollows},
	{"going offline and online is reported", connectionTold},
	{"removing a thermostat is reported", removalTold},
	{"closing twice ends the events", closed},
}

// RunThermostat runs the suite for a thermostat. newBed returns a new bed for each check and cleans it up with t.
func RunThermostat(t *testing.T, newBed func(t *testing.T) Bed) {
	for _, check := range thermostatChecks {
		t.Run(check.name, func(t *testing.T) {
			t.Parallel()
			c := openTrial(t, newBed(t))
			if c.caps.Thermostat == nil {
				t.Fatal("the device is not a thermostat")
			}
			check.run(c)
		})
	}
}

// minTolerance is the tolerance in °C of devices that report no resolution.
const minTolerance = 0.06

// tolerance is by how much the device may round a set point, in °C.
func (c *trial) tolerance() float64 { return max(c.caps.Thermostat.Step/2+1e-3, minTolerance) }

// controller returns the adapter as an adapter.ThermostatController.
func (c *trial) controller() adapter.ThermostatController {
	c.Helper()
	t, ok := c.Adapter.(adapter.ThermostatController)
	if !ok {
		c.Fatal("the device is a thermostat, but the adapter does not implement adapter.ThermostatController")
	}
	return t
}

// climate reads the state of the thermostat.
func (c *trial) climate() adapter.Thermostat {
	c.Helper()
	var d adapter.Device
	if err := c.write(func() (err error) { d, err = c.Adapter.Device(c.ctx(), c.Device); return err }); err != nil {
		c.Fatalf("Device: %v", err)
	}
	if d.Thermostat == nil {
		c.Fatal("the thermostat has no state")
	}
	return *d.Thermostat
}

// trySet writes a setting, and repeats the write while its error is retryable.
func (c *trial) trySet(s adapter.ThermostatSetting) error {
	c.Helper()
	t := c.controller()
	var state adapter.State
	err := c.write(func() (err error) { state, err = t.SetThermostat(c.ctx(), c.Device, s); return err })
	c.typed(err, "")
	if err == nil && state != adapter.Accepted && state != adapter.Confirmed {
		c.Fatalf("SetThermostat: state %q", state)
	}
	return err
}

// set writes a setting and waits until the device shows it.
func (c *trial) set(s adapter.ThermostatSetting) {
	c.Helper()
	if err := c.trySet(s); err != nil {
		c.Fatalf("SetThermostat(%s): %v", describe(s), err)
	}
	c.showsSetting(s)
}

// showsSetting waits until the device shows the fields of the setting that have a value.
func (c *trial) showsSetting(want adapter.ThermostatSetting) {
	c.Helper()
	c.until(func() string {
		if got := c.climate().Setting; !c.like(got, want) {
			return "the device shows " + describe(got) + ", want " + describe(want)
		}
		return ""
	})
}

// like reports whether a setting has the values of want. A set point that the mode uses must be shown.
func (c *trial) like(got, want adapter.ThermostatSetting) bool {
	near := func(got, want *float64, used bool) bool {
		switch {
		case want == nil || got == nil && !used:
			return true
		case got == nil:
			return false
		}
		return math.Abs(*got-*want) <= c.tolerance()
	}
	return (want.Mode == "" || got.Mode == want.Mode) && (want.Fan == "" || got.Fan == want.Fan) &&
		near(got.Heat, want.Heat, got.Mode.Heats()) && near(got.Cool, want.Cool, got.Mode.Cools())
}

func describe(s adapter.ThermostatSetting) string {
	var b strings.Builder
	b.WriteString("mode " + string(s.Mode) + ", fan " + string(s.Fan))
	for name, p := range map[string]*float64{"heat": s.Heat, "cool": s.Cool} {
		if p != nil {
			b.WriteString(", " + name + " " + celsius(*p))
		}
	}
	return b.String()
}

// setting returns a setting of the mode that the device accepts. Settings with another warmer differ.
func (c *trial) setting(mode capability.HVACMode, warmer float64) adapter.ThermostatSetting {
	l := c.caps.Thermostat
	s := adapter.ThermostatSetting{Mode: mode}
	heat := within(20+warmer, l.MinHeat, l.MaxHeat)
	if mode.Heats() {
		s.Heat = &heat
	}
	if mode.Cools() {
		s.Cool = new(within(max(25+warmer, heat+l.MinDelta+l.Step), l.MinCool, l.MaxCool))
	}
	return s
}

// within returns the number of the range that is closest to v.
func within(v float64, from, to *float64) float64 {
	if from != nil {
		v = max(v, *from)
	}
	if to != nil {
		v = min(v, *to)
	}
	return v
}

// active returns a mode of the device with a set point.
func (c *trial) active() capability.HVACMode {
	c.Helper()
	modes := c.caps.Thermostat.Modes
	i := slices.IndexFunc(modes, func(m capability.HVACMode) bool { return m.Heats() || m.Cools() })
	if i < 0 {
		c.Fatalf("no mode has a set point: %v", modes)
	}
	return modes[i]
}

// settingRefused requires that the device refuses a setting with the class.
func (c *trial) settingRefused(s adapter.ThermostatSetting, class adapter.Class) {
	c.Helper()
	before := c.climate().Setting
	c.fails(c.trySet(s), class, "SetThermostat("+describe(s)+")")
	if got := c.climate().Setting; !c.like(got, before) {
		c.Fatalf("after a refused setting, the device has %s instead of %s", describe(got), describe(before))
	}
}

func thermostatListedAsRead(c *trial) {
	listedAsRead(c)
	s := c.climate()
	l := c.caps.Thermostat
	if !slices.Contains(l.Modes, s.Setting.Mode) || s.Setting.Fan != "" && !slices.Contains(l.FanModes, s.Setting.Fan) {
		c.Fatalf("the device is set to %s, and has the modes %v and %v", describe(s.Setting), l.Modes, l.FanModes)
	}
	if h := s.Humidity; h != nil && (*h < 0 || *h > 1) {
		c.Fatalf("the humidity %v is not between 0 and 1", *h)
	}
	active := slices.ContainsFunc(s.Presets, func(p adapter.ThermostatPreset) bool { return p.Key == s.ActivePreset })
	if s.ActivePreset != "" && !active {
		c.Fatalf("the active preset %q is not among %v", s.ActivePreset, s.Presets)
	}
}

func limitsAgree(c *trial) {
	l := c.caps.Thermostat
	reversed := func(from, to *float64) bool { return from != nil && to != nil && *from > *to }
	switch {
	case c.caps.Kind() != "thermostat" || c.caps.OnlineCodes || c.caps.Lock || c.caps.Unlock:
		c.Fatalf("a thermostat has capabilities of a lock: %+v", c.caps)
	case len(l.Modes) == 0 || len(slices.Compact(slices.Sorted(slices.Values(l.Modes)))) != len(l.Modes):
		c.Fatalf("modes %v", l.Modes)
	case len(slices.Compact(slices.Sorted(slices.Values(l.FanModes)))) != len(l.FanModes):
		c.Fatalf("fan modes %v", l.FanModes)
	case reversed(l.MinHeat, l.MaxHeat) || reversed(l.MinCool, l.MaxCool):
		c.Fatalf("a range of set points is reversed: %+v", l)
	case l.MinDelta < 0 || l.Step < 0:
		c.Fatalf("minimum difference %v and step %v", l.MinDelta, l.Step)
	}
}

func modesSet(c *trial) {
	modes := c.caps.Thermostat.Modes
	for i, mode := range append(slices.Clone(modes), modes[0]) {
		c.set(c.setting(mode, float64(i%2)))
	}
}

func fanModesSet(c *trial) {
	modes := c.caps.Thermostat.FanModes
	c.need(len(modes) > 0, "set the fan")
	s := c.setting(c.active(), 0)
	c.set(s)
	for _, fan := range append(slices.Clone(modes), modes[0]) {
		c.set(adapter.ThermostatSetting{Fan: fan})
		s.Fan = fan
		c.showsSetting(s)
	}
}

// bounds calls do for each bounded set point with its mode, its bounds, and a function that sets it.
func (c *trial) bounds(do func(from, to *float64, at func(celsius float64) adapter.ThermostatSetting)) {
	c.Helper()
	l := c.caps.Thermostat
	tried := false
	if slices.Contains(l.Modes, capability.Heat) && (l.MinHeat != nil || l.MaxHeat != nil) {
		tried = true
		do(l.MinHeat, l.MaxHeat, func(v float64) adapter.ThermostatSetting {
			return adapter.ThermostatSetting{Mode: capability.Heat, Heat: &v}
		})
	}
	if slices.Contains(l.Modes, capability.Cool) && (l.MinCool != nil || l.MaxCool != nil) {
		tried = true
		do(l.MinCool, l.MaxCool, func(v float64) adapter.ThermostatSetting {
			return adapter.ThermostatSetting{Mode: capability.Cool, Cool: &v}
		})
	}
	c.need(tried, "bound set points")
}

func boundsAccepted(c *trial) {
	c.bounds(func(from, to *float64, at func(float64) adapter.ThermostatSetting) {
		for _, bound := range []*float64{from, to} {
			if bound != nil {
				c.set(at(*bound))
			}
		}
	})
}

func boundsRefused(c *trial) {
	beyond := max(1, 2*c.caps.Thermostat.Step)
	c.bounds(func(from, to *float64, at func(float64) adapter.ThermostatSetting) {
		if from != nil {
			c.settingRefused(at(*from-beyond), adapter.Invalid)
		}
		if to != nil {
			c.settingRefused(at(*to+beyond), adapter.Invalid)
		}
	})
	c.settingRefused(adapter.ThermostatSetting{Mode: c.active(), Heat: new(math.NaN())}, adapter.Invalid)
}

func deltaKept(c *trial) {
	l := c.caps.Thermostat
	c.need(slices.Contains(l.Modes, capability.HeatCool) && l.MinDelta > 0, "require a difference of set points")
	s := c.setting(capability.HeatCool, 0)
	s.Heat = new(*s.Cool - l.MinDelta - c.tolerance())
	c.set(s)
	s.Heat = new(*s.Cool - l.MinDelta/2 + c.tolerance())
	c.settingRefused(s, adapter.Invalid)
}

func setPointRounded(c *trial) {
	for _, by := range []float64{0.1, 0.23, 0.37, 0.5} {
		c.set(c.setting(c.active(), by))
	}
}

func absentFieldsKept(c *trial) {
	mode := c.active()
	if slices.Contains(c.caps.Thermostat.Modes, capability.HeatCool) {
		mode = capability.HeatCool
	}
	first, second := c.setting(mode, 0), c.setting(mode, 2)
	c.set(first)
	second.Mode = ""
	c.set(second)
	second.Mode = mode
	c.showsSetting(second)
	if mode != capability.HeatCool {
		return
	}
	c.set(adapter.ThermostatSetting{Heat: first.Heat})
	c.showsSetting(adapter.ThermostatSetting{Mode: mode, Heat: first.Heat, Cool: second.Cool})
}

func settingRepeated(c *trial) {
	s := c.setting(c.active(), 0)
	for range 3 {
		c.set(s)
	}
}

func modeUnsupported(c *trial) {
	l := c.caps.Thermostat
	for _, mode := range []capability.HVACMode{
		capability.Off, capability.Heat, capability.Cool, capability.HeatCool, capability.Eco, "boost",
	} {
		if !slices.Contains(l.Modes, mode) {
			c.settingRefused(c.setting(mode, 0), adapter.NotSupported)
		}
	}
	for _, fan := range []capability.FanMode{capability.FanAuto, capability.FanOn, capability.FanCirculate, "fast"} {
		if !slices.Contains(l.FanModes, fan) {
			c.settingRefused(adapter.ThermostatSetting{Fan: fan}, adapter.NotSupported)
		}
	}
}

// thermostatUnsupported runs with a lock.
func thermostatUnsupported(c *trial) {
	t, ok := c.Adapter.(adapter.ThermostatController)
	c.need(ok, "control thermostats")
	_, err := t.SetThermostat(c.ctx(), c.Device, adapter.ThermostatSetting{Mode: capability.Off})
	c.fails(err, adapter.NotSupported, "SetThermostat of a lock")
}

func thermostatUnknown(c *trial) {
	c.settingNotFound(c.Device + "0")
}

func (c *trial) settingNotFound(device adapter.DeviceRef) {
	c.Helper()
	_, err := c.Adapter.Device(c.ctx(), device)
	c.fails(err, adapter.NotFound, "Device")
	_, err = c.controller().SetThermostat(c.ctx(), device, c.setting(c.active(), 0))
	c.fails(err, adapter.NotFound, "SetThermostat")
}

func thermostatRemoved(c *trial) {
	c.need(c.Remove != nil, "remove the device")
	c.Remove(c.T)
	c.settingNotFound(c.Device)
}

// disconnect takes the device offline and waits until it is shown as offline.
func (c *trial) disconnect() {
	c.Helper()
	c.need(c.SetOnline != nil, "take the device offline")
	c.SetOnline(c.T, false)
	c.until(func() string {
		if d, err := c.Adapter.Device(c.ctx(), c.Device); err != nil || d.Online {
			return "the device is not shown as offline"
		}
		return ""
	})
}

func thermostatOffline(c *trial) {
	c.set(c.setting(c.active(), 0))
	c.disconnect()
	s := c.setting(c.active(), 1)
	_, err := c.controller().SetThermostat(c.ctx(), c.Device, s)
	c.fails(err, adapter.Offline, "SetThermostat of an offline device")
	c.SetOnline(c.T, true)
	c.set(s)
}

func thermostatRevoked(c *trial) {
	c.need(c.Revoke != nil, "revoke the account")
	c.Revoke(c.T)
	c.until(func() string {
		if _, err := c.Adapter.Device(c.ctx(), c.Device); adapter.ClassOf(err) != adapter.AuthRevoked {
			return "the revocation is not reported"
		}
		return ""
	})
	_, err := c.controller().SetThermostat(c.ctx(), c.Device, c.setting(c.active(), 0))
	c.fails(err, adapter.AuthRevoked, "SetThermostat")
}

func settingDropped(c *trial) {
	c.need(c.DropNext != nil, "drop a write")
	before, s := c.setting(c.active(), 0), c.setting(c.active(), 2)
	c.set(before)
	c.DropNext(c.T)
	if _, err := c.controller().SetThermostat(c.ctx(), c.Device, s); err != nil { // the adapter detected it
		c.fails(err, adapter.Unconfirmed, "SetThermostat")
	}
	c.showsSetting(before)
	c.set(s)
}

func settingBroken(c *trial) {
	c.need(c.BreakNext != nil && c.Heal != nil, "break a write")
	before, s := c.setting(c.active(), 0), c.setting(c.active(), 2)
	c.set(before)
	c.BreakNext(c.T)
	_, err := c.controller().SetThermostat(c.ctx(), c.Device, s)
	c.typed(err, "")
	c.Heal(c.T)
	c.showsSetting(before)
	c.set(s)
}

func settingCut(c *trial) {
	c.need(c.CutNext != nil && c.Heal != nil, "lose an answer")
	s := c.setting(c.active(), 1)
	c.CutNext(c.T)
	_, err := c.controller().SetThermostat(c.ctx(), c.Device, s)
	c.fails(err, adapter.Unconfirmed, "SetThermostat")
	c.Heal(c.T)
	c.showsSetting(s)
	c.set(s)
}

func settingFaultsClassified(c *trial) {
	c.need(c.FailNext != nil && c.Heal != nil, "make calls fail")
	s := c.setting(c.active(), 1)
	for _, class := range []adapter.Class{
		adapter.Transient, adapter.Offline, adapter.Invalid, adapter.AuthRevoked,
	} {
		c.FailNext(c.T, class)
		_, err := c.controller().SetThermostat(c.ctx(), c.Device, s)
		c.fails(err, class, "SetThermostat")
		if class == adapter.Transient || class == adapter.AuthRevoked {
			_, err = c.Adapter.Device(c.ctx(), c.Device)
			c.fails(err, class, "Device")
		}
		c.Heal(c.T)
	}
	c.set(s)
}

func settingReconnected(c *trial) {
	c.need(c.Disconnect != nil, "cut connections")
	c.set(c.setting(c.active(), 0))
	c.Disconnect(c.T)
	c.set(c.setting(c.active(), 1))
}

func settingContextEnds(c *trial) {
	c.need(c.Stall != nil, "leave calls without an answer")
	s := c.setting(c.active(), 0)
	c.Stall(c.T)
	ctx, cancel := context.WithTimeout(c.Context(), testenv.Timeout(time.Second)) // the request is sent within
	defer cancel()
	start := time.Now()
	_, err := c.controller().SetThermostat(ctx, c.Device, s)
	c.fails(err, adapter.Unconfirmed, "SetThermostat")
	if !errors.Is(err, context.DeadlineExceeded) {
		c.Errorf("%v, want the context's error wrapped", err)
	}
	if took := time.Since(start); took > testenv.Timeout(promptly) {
		c.Errorf("SetThermostat continued for %s", took)
	}
}

func settingNeedsLease(c *trial) {
	before, s := c.setting(c.active(), 0), c.setting(c.active(), 2)
	c.set(before)
	ended, lose := context.WithCancelCause(c.ctx())
	ctx := adapter.WithLeaseCheck(ended, func() error {
		lost := errors.New("another server has the lease")
		lose(lost)
		return lost
	})
	_, err := c.controller().SetThermostat(ctx, c.Device, s)
	c.typed(err, "")
	if class := adapter.ClassOf(err); err == nil || class != adapter.Transient && class != adapter.Unconfirmed {
		c.Errorf("%v, want %s, or %s if something may have been sent earlier", err, adapter.Transient,
			adapter.Unconfirmed)
	}
	c.showsSetting(before)
}

func settingStopped(c *trial) {
	c.need(c.Stop != nil, "stop what the adapter calls")
	c.Stop(c.T)
	_, err := c.Adapter.Devices(c.ctx())
	c.fails(err, adapter.GatewayDown, "Devices")
	_, err = c.controller().SetThermostat(c.ctx(), c.Device, c.setting(c.active(), 0))
	c.fails(err, adapter.GatewayDown, "SetThermostat")
}

func settingTold(c *trial) {
	if err := c.trySet(c.setting(c.active(), 1)); err != nil {
		c.Fatalf("SetThermostat: %v", err)
	}
	c.awaitEvent(adapter.StatusChanged)
}

func adjustmentTold(c *trial) {
	c.need(c.AdjustByHand != nil, "adjust the device by hand")
	s := c.setting(c.active(), 3)
	c.AdjustByHand(c.T, s)
	c.awaitEvent(adapter.StatusChanged)
	c.showsSetting(s)
}

func adjustmentOffline(c *trial) {
	c.need(c.AdjustByHand != nil, "adjust the device by hand")
	c.disconnect()
	s := c.setting(c.active(), 3)
	c.AdjustByHand(c.T, s)
	c.SetOnline(c.T, true)
	c.awaitEvent(adapter.DeviceOnline, adapter.StatusChanged)
	c.showsSetting(s)
}

func temperatureTold(c *trial) {
	c.need(c.SetTemperature != nil, "change the temperature")
	c.SetTemperature(c.T, 12.5)
	c.awaitEvent(adapter.StatusChanged)
	c.showsTemperature(12.5)
}

// showsTemperature waits until the device shows the temperature.
func (c *trial) showsTemperature(want float64) {
	c.Helper()
	c.until(func() string {
		if got := c.climate().Temperature; got == nil || math.Abs(*got-want) > max(c.tolerance(), 0.5) {
			return "the device does not show the temperature"
		}
		return ""
	})
}

func runningFollows(c *trial) {
	state := c.climate()
	c.need(c.SetTemperature != nil, "change the temperature")
	c.need(state.Heating != nil && state.Cooling != nil, "report what runs")
	mode := c.active()
	c.set(c.setting(mode, 0))
	for _, temperature := range []float64{10, 35} {
		c.SetTemperature(c.T, temperature)
		heating, cooling := mode.Heats() && temperature < 20, mode.Cools() && temperature > 30
		c.until(func() string {
			if s := c.climate(); *s.Heating != heating || *s.Cooling != cooling {
				return "the device shows at " + celsius(temperature) + " that something else runs"
			}
			return ""
		})
	}
}

func celsius(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + " °C" }
