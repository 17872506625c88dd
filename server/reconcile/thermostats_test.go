package reconcile_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// thermostatMemory is what a simulated thermostat is set to.
type thermostatMemory struct {
	Mode string  `json:"mode"`
	Heat float64 `json:"heat_set_point"`
	Cool float64 `json:"cool_set_point"`
}

func (b *bed) thermostat() thermostatMemory {
	b.Helper()
	var out struct {
		Thermostat thermostatMemory `json:"thermostat"`
	}
	b.must(json.Unmarshal(b.control(http.MethodGet, "memory", nil), &out))
	return out.Thermostat
}

func (b *bed) heat(celsius float64) device.Attempt {
	b.Helper()
	setting := climate.Setting{Mode: capability.Heat, Heat: &celsius}
	a, err := b.access.Thermostats.SetMode(b.Context(), b.p, b.device, setting)
	b.must(err)
	return a
}

func writesThermostat(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/thermostat")
}

// crash makes the engine lose what it has not recorded, as if it had been killed.
func (b *bed) crash(r *http.Request) {
	_, err := b.db.Pool.Exec(
		r.Context(), "update leases set fence = fence + 1, held_until = now() where key like 'device:%'",
	)
	if err != nil {
		b.Errorf("steal the lease: %v", err)
	}
}

// A crash between a write and its record is repaired by looking at the device.
func TestThermostat_CrashDuringWrite(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"the write arrives": true, "the write is lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *bed
			var crashing atomic.Bool
			var writes atomic.Int32
			b = start(t, options{profile: "nest", vendor: func(w http.ResponseWriter, r *http.Request) bool {
				if !writesThermostat(r) {
					return false
				}
				writes.Add(1)
				if !crashing.CompareAndSwap(true, false) {
					return false
				}
				b.crash(r)
				if !arrives {
					http.Error(w, `{"error_code":"UNAVAILABLE","message":"gone"}`, http.StatusServiceUnavailable)
				}
				return !arrives
			}})
			crashing.Store(true)
			a := b.heat(23)
			b.until("the attempt ends", func() bool { return b.attempt(a).Status == device.Succeeded })
			if m := b.thermostat(); m.Mode != "heat" || m.Heat != 23 {
				t.Errorf("it is set to %+v", m)
			}
			if n, want := writes.Load(), map[bool]int32{true: 1, false: 2}[arrives]; n != want {
				t.Errorf("it was set %d times, want %d", n, want)
			}
		})
	}
}

// Two instances, a vendor with all faults, a person at the device, and clients that change their minds. Afterwards, the
// thermostat is set to the last command, and no attempt is pending.
func TestThermostat_ConvergesDespiteFaults(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"ecobee", "nest"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{
				profile: profile,
				access:  access.Options{ConfirmTimeout: 500 * time.Millisecond, ReadLag: 400 * time.Millisecond},
			})
			one := b.stopEngine
			b.startEngine()
			defer one()
			b.faults(map[string]any{
				"failure_rate": map[string]float64{
					"transient":   0.1,
					"unconfirmed": 0.1,
					"failed":      0.1,
				},
				"lost_webhook":                   0.2,
				"eventual_consistency_window_ms": 50,
			})
			rng := rand.New(rand.NewPCG(1, 2))
			var attempts []device.Attempt
			for range 30 {
				if rng.IntN(4) == 0 {
					b.control(http.MethodPost, "thermostat/adjust", map[string]any{"mode": "off"})
				}
				attempts = append(attempts, b.heat(15+float64(rng.IntN(8))))
			}
			b.faults(map[string]any{})
			attempts = append(attempts, b.heat(21))
			b.until("the thermostat is set", func() bool {
				b.look()
				m := b.thermostat()
				return m.Mode == "heat" && m.Heat > 20.7 && m.Heat < 21.3
			})
			for _, a := range attempts {
				b.until(
					"attempt "+a.Type+" ends",
					func() bool { b.look(); return b.attempt(a).Status != device.Pending },
				)
			}
		})
	}
}

// look makes the engine look at the device now, without the pause after failed writes.
func (b *bed) look() {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(),
		"update devices set due_at = now(), climate = climate - 'retry' where due_at > now() + interval '2 s'")
	b.must(err)
}
