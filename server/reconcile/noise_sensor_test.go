package reconcile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noisesensor"
)

// thresholdsOnSensor returns the levels of the thresholds in the memory of the noise sensor, by name.
func (b *bed) thresholdsOnSensor() map[string]float64 {
	b.Helper()
	var out struct {
		Sensor struct {
			Thresholds []struct {
				Name     string  `json:"name"`
				Decibels float64 `json:"decibels"`
			} `json:"thresholds"`
		} `json:"noise_sensor"`
	}
	b.must(json.Unmarshal(b.control(http.MethodGet, "memory", nil), &out))
	levels := map[string]float64{}
	for _, t := range out.Sensor.Thresholds {
		levels[t.Name] = t.Decibels
	}
	if len(levels) != len(out.Sensor.Thresholds) {
		b.Errorf("two thresholds of one name: %+v", out.Sensor.Thresholds)
	}
	return levels
}

func (b *bed) thresholds() []noisesensor.Threshold {
	b.Helper()
	list, err := b.access.NoiseSensors.List(b.Context(), b.p, b.device, nil)
	b.must(err)
	return list
}

// hurryThresholds skips the backoff after repeated failures.
func (b *bed) hurryThresholds() {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), "update devices set due_at = now() where device_id in "+
		"(select device_id from noise_thresholds where next_at > now() + interval '2 s')")
	b.must(err)
	_, err = b.db.Pool.Exec(b.Context(),
		"update noise_thresholds set next_at = null where next_at > now() + interval '2 s'")
	b.must(err)
}

func startSensor(t *testing.T, o options) *bed {
	t.Helper()
	o.profile = "noiseaware"
	b := start(t, o)
	b.until("the thresholds are read", func() bool { return len(b.thresholds()) == 1 })
	return b
}

// Two instances, a vendor with all faults, and clients that change their minds. Afterwards, the sensor has the desired
// thresholds, and no attempt is pending.
func TestNoiseSensor_ConvergesDespiteFaults(t *testing.T) {
	t.Parallel()
	b := startSensor(t, options{access: access.Options{ConfirmTimeout: 500 * time.Millisecond}})
	one := b.stopEngine
	b.startEngine()
	defer one()
	b.faults(map[string]any{
		"failure_rate": map[string]float64{
			"transient":   0.1,
			"unconfirmed": 0.1,
			"failed":      0.1,
			"busy":        0.05,
		},
		"lost_webhook": 0.2,
		"latency_ms":   map[string]int{"min": 1, "max": 20},
	})
	rng := rand.New(rand.NewPCG(1, 2))
	var attempts []device.Attempt
	for i := range 40 {
		list := b.thresholds()
		var a device.Attempt
		var err error
		switch n := rng.IntN(3); {
		case len(list) < 3 || n == 0 && len(list) < 12:
			_, a, err = b.access.NoiseSensors.Create(t.Context(), b.p, b.device, noisesensor.Change{
				Name:     fmt.Sprint("threshold ", i),
				StartsAt: fmt.Sprintf("22:%02d:00", i),
				EndsAt:   fmt.Sprintf("22:%02d:30", i),
				Decibels: new(float64(40 + rng.IntN(20))),
			})
		case n == 1:
			change := noisesensor.Change{Decibels: new(float64(70 + rng.IntN(20)))}
			id := list[rng.IntN(len(list))].ID.String()
			a, err = b.access.NoiseSensors.Update(t.Context(), b.p, b.device, id, change)
		default:
			a, err = b.access.NoiseSensors.Delete(t.Context(), b.p, b.device, list[rng.IntN(len(list))].ID.String())
		}
		if e, ok := errors.AsType[*domain.Error](err); ok && (e.Kind == domain.NotFound || e.Kind == domain.TooMany) {
			continue
		}
		b.must(err)
		attempts = append(attempts, a)
	}
	if len(attempts) < 15 {
		t.Fatalf("only %d of 40 were accepted", len(attempts))
	}
	b.faults(map[string]any{})
	for _, a := range attempts {
		b.until("attempt "+a.Type+" ends", func() bool {
			b.hurryThresholds()
			return b.attempt(a).Status != device.Pending
		})
	}
	b.must(b.access.Accounts.Resync(t.Context(), b.account))
	b.until("the sensor has the desired thresholds", func() bool {
		b.hurryThresholds()
		want, got := map[string]float64{}, b.thresholdsOnSensor()
		for _, one := range b.thresholds() {
			want[one.Name] = one.Decibels
		}
		return fmt.Sprint(want) == fmt.Sprint(got)
	})
}

// A server that stops after a write, before it has recorded the outcome, repeats nothing.
func TestNoiseSensor_CrashAfterWrite(t *testing.T) {
	t.Parallel()
	var writes atomic.Int32
	var b *bed
	b = startSensor(t, options{vendor: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/noise_thresholds") && writes.Add(1) == 1 {
			_, err := b.db.Pool.Exec(r.Context(),
				"update leases set fence = fence + 1, held_until = now() where key like 'device:%'")
			if err != nil {
				b.Errorf("steal the lease: %v", err)
			}
		}
		return false
	}})
	made, a, err := b.access.NoiseSensors.Create(t.Context(), b.p, b.device, noisesensor.Change{
		Name:     "Night",
		StartsAt: "22:00:00",
		EndsAt:   "07:00:00",
		Decibels: new(50.0),
	})
	b.must(err)
	b.succeeded(a)
	if n := writes.Load(); n != 1 || len(b.thresholdsOnSensor()) != 2 {
		t.Errorf("%d writes, %v", n, b.thresholdsOnSensor())
	}
	if !slices.ContainsFunc(b.thresholds(), func(one noisesensor.Threshold) bool { return one.ID == made.ID }) {
		t.Error("the threshold is another one")
	}
}
