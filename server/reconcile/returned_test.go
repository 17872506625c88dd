package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// away removes the lock from its account temporarily.
func (b byHand) away() {
	b.Helper()
	device, err := b.access.GetDevice(b.Context(), b.p, b.device, "")
	b.must(err)
	b.must(b.access.RecordRemoved(b.Context(), holder{}, b.id(), false))
	b.look()
	b.must(b.access.RecordDevices(b.Context(), holder{}, b.account, []access.FoundDevice{
		{
			Ref:          device.Ref,
			Name:         "Door",
			Type:         device.Type,
			Provider:     device.Provider,
			Online:       true,
			Capabilities: device.Capabilities,
		}}))
}

// refuse makes the next write of a code fail permanently.
func (b byHand) refuse(c access.Code) {
	b.Helper()
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "not such a PIN"}})
}

// After the lock comes back, a code whose change was refused keeps its former state, and that one
// opens.
func TestReturnedLock_RefusedChange(t *testing.T) {
	t.Parallel()
	for name, profile := range map[string]string{"PINs are shown": "august", "PINs are hidden": "smartthings"} {
		for when, before := range map[string]bool{"before": true, "after": false} {
			if !before && profile != "august" { // its state is unknown
				continue
			}
			t.Run(name+", refused "+when, func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, profile)
				c := b.on("2580", "k1")
				is := map[string]access.Found{"august": found("k1", "2580"), "smartthings": found("k1", "")}[profile]
				b.update(access.CodeChange{ID: c.ID.String(), PIN: "2581"})
				if before {
					b.refuse(c)
				}
				b.away()
				b.read(is)
				if !before {
					b.refuse(c)
				}
				if got := b.code(c.ID); got.Status != access.StatusSet || !got.OnDevice || len(got.Errors) != 1 {
					t.Errorf("back: status %s, errors %v, on the device: %v", got.Status, got.Errors, got.OnDevice)
				}
				clock.pass(time.Minute)
				b.read(found("k9", "9999"))
				if w := b.work(c); w.Action != access.Put || !w.New {
					t.Errorf("deleted at the lock: planned action %q", w.Action)
				}
			})
		}
	}
}

func TestReturnedLock_RefusedChangeMissingCodeIsPut(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "k1")
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2581"})
	b.refuse(c)
	b.away()
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != access.Put || !w.New {
		t.Errorf("planned action %q", w.Action)
	}
}

func TestReturnedLock_AllowedDisabledCode(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	c := b.on("2580", "k1")
	b.update(access.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
	clock.pass(time.Minute)
	off := found("k1", "2580")
	off.Disabled = true
	b.read(off)
	b.away()
	b.read(off)
	if w, got := b.work(c), b.code(c.ID); w.Action != access.Nothing || got.Status != access.StatusSet ||
		len(got.Warnings) != 1 {
		t.Errorf("planned action %q, status %s, warnings %v", w.Action, got.Status, got.Warnings)
	}
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2581"})
	b.away()
	b.read(off)
	if w := b.work(c); w.Action != access.Put || w.PIN != "2581" {
		t.Errorf("changed: planned action %q", w.Action)
	}
}
