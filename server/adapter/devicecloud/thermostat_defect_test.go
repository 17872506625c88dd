package devicecloud_test

import (
	"cmp"
	"context"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// twistedThermostat is a correct adapter of a thermostat with one defect: the field that is set.
type twistedThermostat struct {
	twisted
	set  func(ctx context.Context, next setFunc, s adapter.ThermostatSetting) (adapter.State, error)
	read func(d *adapter.Device)
}

type setFunc func(context.Context, adapter.ThermostatSetting) (adapter.State, error)

func (w *twistedThermostat) SetThermostat(ctx context.Context, ref adapter.DeviceRef,
	s adapter.ThermostatSetting,
) (adapter.State, error) {
	next := func(ctx context.Context, s adapter.ThermostatSetting) (adapter.State, error) {
		return w.Adapter.(adapter.ThermostatController).SetThermostat(w.context(ctx), ref, s)
	}
	if w.set != nil {
		return w.set(ctx, next, s)
	}
	state, err := next(ctx, s)
	return state, w.error(err)
}

func (w *twistedThermostat) Device(ctx context.Context, ref adapter.DeviceRef) (adapter.Device, error) {
	d, err := w.twisted.Device(ctx, ref)
	if w.read != nil && err == nil {
		w.read(&d)
	}
	return d, err
}

// changing passes a changed setting on.
func changing(change func(*adapter.ThermostatSetting)) *twistedThermostat {
	return &twistedThermostat{
		set: func(ctx context.Context, next setFunc, s adapter.ThermostatSetting) (adapter.State, error) {
			change(&s)
			return next(ctx, s)
		},
	}
}

// lenient reports errors of a class as success.
func lenient(class adapter.Class) *twistedThermostat {
	return &twistedThermostat{
		set: func(ctx context.Context, next setFunc, s adapter.ThermostatSetting) (adapter.State, error) {
			state, err := next(ctx, s)
			if adapter.ClassOf(err) == class {
				return adapter.Confirmed, nil
			}
			return state, err
		},
	}
}

// observing changes what is read of the thermostat.
func observing(change func(*adapter.Thermostat)) *twistedThermostat {
	return &twistedThermostat{read: func(d *adapter.Device) {
		if d.Thermostat != nil {
			change(d.Thermostat)
		}
	}}
}

// thermostatDefects are checks of the suite for thermostats, each with an adapter that it must reject.
var thermostatDefects = []struct {
	check   string
	profile string // default: ecobee
	make    func() *twistedThermostat
}{
	{"the thermostat is equal when listed and when read", "", func() *twistedThermostat {
		return observing(func(s *adapter.Thermostat) { s.Temperature = new(1.0) })
	}},
	{"the limits of a thermostat agree with each other", "", func() *twistedThermostat {
		return &twistedThermostat{twisted: twisted{caps: func(c *capability.Set) { c.Lock = true }}}
	}},
	{"every mode is set and read back", "nest", func() *twistedThermostat {
		return observing(func(s *adapter.Thermostat) {
			if s.Setting.Mode == capability.Eco {
				s.Setting.Mode = capability.HeatCool
			}
		})
	}},
	{"every fan mode is set and read back", "", func() *twistedThermostat {
		return changing(func(s *adapter.ThermostatSetting) { s.Fan = "" })
	}},
	{"set points outside the bounds are refused", "", func() *twistedThermostat {
		return changing(func(s *adapter.ThermostatSetting) {
			if s.Heat != nil && !math.IsNaN(*s.Heat) {
				s.Heat = new(max(*s.Heat, 10))
			}
		})
	}},
	{"set points that are too close are refused", "", func() *twistedThermostat { return lenient(adapter.Invalid) }},
	{"a set point is rounded by half a step at most", "", func() *twistedThermostat {
		return changing(func(s *adapter.ThermostatSetting) {
			if s.Heat != nil {
				s.Heat = new(math.Round(*s.Heat))
			}
		})
	}},
	{"fields without a value stay as they are", "", func() *twistedThermostat {
		return changing(func(s *adapter.ThermostatSetting) { s.Mode = cmp.Or(s.Mode, capability.Off) })
	}},
	{"a mode that the device lacks is not supported", "tado", func() *twistedThermostat {
		return lenient(adapter.NotSupported)
	}},
	{"an unknown thermostat is not found", "", func() *twistedThermostat { return lenient(adapter.NotFound) }},
	{"an offline thermostat refuses, and accepts when back online", "", func() *twistedThermostat {
		return lenient(adapter.Offline)
	}},
	{"a dropped setting is detected by reading", "", func() *twistedThermostat {
		var last sync.Map // the adapter believes its writes
		w := observing(func(s *adapter.Thermostat) {
			if set, ok := last.Load("setting"); ok {
				s.Setting = set.(adapter.ThermostatSetting)
			}
		})
		w.set = func(ctx context.Context, next setFunc, s adapter.ThermostatSetting) (adapter.State, error) {
			last.Store("setting", s)
			return next(ctx, s)
		}
		return w
	}},
	{"a setting without a response is unconfirmed and repeatable", "", func() *twistedThermostat {
		return lenient(adapter.Unconfirmed)
	}},
	{"a change by hand is reported and read", "", func() *twistedThermostat {
		return &twistedThermostat{twisted: *without(adapter.StatusChanged)}
	}},
	{"heating and cooling follow the temperature", "", func() *twistedThermostat {
		return observing(func(s *adapter.Thermostat) { s.Heating = new(false) })
	}},
}

// TestDefectiveThermostat is a helper: TestThermostatSuiteNotices runs it in a separate process, and expects it to fail.
func TestDefectiveThermostat(t *testing.T) {
	check := os.Getenv(defectVariable)
	if check == "" {
		t.Skip("run by TestThermostatSuiteNotices")
	}
	for _, d := range thermostatDefects {
		if d.check != check {
			continue
		}
		adaptertest.RunThermostat(t, func(t *testing.T) adaptertest.Bed {
			bed := newCloud(t, cmp.Or(d.profile, "ecobee")).bed()
			bed.Timeout = 300 * time.Millisecond
			w := d.make()
			w.Adapter = bed.Adapter
			bed.Adapter = w
			return bed
		})
	}
}

// TestThermostatSuiteNotices verifies that checks fail for their defects.
func TestThermostatSuiteNotices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts one process for each check")
	}
	for _, d := range thermostatDefects {
		t.Run(d.check, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(d.check, " ", "_")
			cmd := exec.CommandContext(t.Context(), os.Args[0],
				"-test.run", "^TestDefectiveThermostat$/^"+name+"$", "-test.v")
			cmd.Env = append(os.Environ(), defectVariable+"="+d.check)
			out, _ := cmd.CombinedOutput() // the output contains the exit status as well
			if !strings.Contains(string(out), "--- FAIL: TestDefectiveThermostat/"+name) {
				t.Errorf("the suite did not detect the defect:\n%s", out)
			}
		})
	}
}
