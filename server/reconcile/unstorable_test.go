package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
)

// unkeepable lists references that the database or an index cannot store.
var unkeepable = map[string]string{
	"empty":      "",
	"with a NUL": "k\x001",
	"no UTF-8":   "k\xff",
	"of 5 kB":    strings.Repeat("k", 5000),
}

// A code with an unstorable reference can be neither changed nor removed. It is ignored and delays
// no other code.
func TestUnstorableReference_CodeIsIgnored(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	read := []shown{found("k1", "2580")}
	for _, ref := range unkeepable {
		read = append(read, found(ref, "2581"))
	}
	b.read(read...)
	if us := b.unmanaged(); len(us) != 1 || *us[0].PIN != "2580" {
		t.Errorf("%d codes", len(us))
	}
}

func TestUnstorableMessage_DelaysNothing(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c, a := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no\x00such PIN"}})
	if a = b.attempt(a); a.Message != "nosuch PIN" {
		t.Errorf("attempt %s: %q", a.Status, a.Message)
	}
}

// A lock operation with such an identifier is announced once, with a storable time.
func TestUnstorableIdentifier_OperationIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, ref := range unkeepable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			for range 2 {
				known, err := b.access.Devices.RecordOperation(t.Context(), b.account, b.lock, device.Operation{
					Kind:    device.BoltMoved,
					ID:      ref,
					CodeRef: ref,
					Method:  "keycode",
					At:      time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
				})
				b.must(err)
				if !known {
					t.Error("the lock is unknown")
				}
			}
			if told := b.tales("lock.unlocked"); len(told) != 1 || told[0].OccurredAt.Year() < 1 {
				t.Errorf("%d events: %v", len(told), told)
			}
		})
	}
}

// The removal of an impossible device ends immediately.
func TestUnstorableReference_DeviceRemoval(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	events, _ := b.telling()
	before := b.woken()
	events <- adapter.Event{Kind: adapter.DeviceRemoved, Device: "\x00"}
	events <- adapter.Event{Kind: adapter.DeviceListed}
	b.until("the next event is handled", func() bool { return b.woken() > before })
}

// Presets of a thermostat keep no text that the database cannot store.
func TestUnstorablePreset_IsCleaned(t *testing.T) {
	t.Parallel()
	shown := &adapter.Thermostat{
		ActivePreset: "a\x00",
		Presets:      []adapter.ThermostatPreset{{Key: "home", Name: "a\x00b"}},
	}
	for _, ref := range unkeepable {
		shown.Presets = append(shown.Presets, adapter.ThermostatPreset{Key: ref})
	}
	got := reconcile.ToObservedClimate(shown)
	if len(got.Presets) != 1 || got.Presets[0].Name != "ab" || got.ActivePreset != "" {
		t.Errorf("%+v", got)
	}
}
