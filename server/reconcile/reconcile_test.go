package reconcile_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

func TestCodeIsSetChangedAndRemoved(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	c, a := b.create("2580")
	if c.Status != device.StatusSetting || a.Status != device.Pending {
		t.Fatalf("immediately: %s, %s", c.Status, a.Status)
	}
	b.succeeded(a)
	if got := b.code(c.ID); got.Status != device.StatusSet || !b.onLock("2580") {
		t.Fatalf("status %s, lock has %v", got.Status, b.memory())
	}
	a, err := b.access.Devices.UpdateCode(t.Context(), b.p,
		device.CodeChange{ID: c.ID.String(), PIN: "2581", EvenIfOffline: true})
	b.must(err)
	b.succeeded(a)
	if b.onLock("2580") || !b.onLock("2581") {
		t.Fatalf("after the update: %v", b.memory())
	}
	a, err = b.access.Devices.DeleteCode(t.Context(), b.p, c.ID.String(), "")
	b.must(err)
	b.succeeded(a)
	if b.onLock("2581") {
		t.Fatalf("after the deletion: %v", b.memory())
	}
	if _, err := b.access.Devices.GetCode(t.Context(), b.p, true, c.ID.String(), "", ""); err == nil {
		t.Fatal("the code is still there")
	}
	want := []string{
		"access_code.created",
		"access_code.mutations_requested",
		"access_code.set_on_device",
		"access_code.mutations_requested",
		"access_code.changed",
		"access_code.code_changed",
		"access_code.set_on_device",
		"access_code.mutations_requested",
		"access_code.removed_from_device",
		"access_code.deleted",
	}
	if got := b.events(c.ID); !slices.Equal(got, want) {
		t.Fatalf("events %v", got)
	}
}

func TestConversion_KeepsIdentifier(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	u := b.unmanaged()[0]
	a, err := b.access.Devices.ConvertCode(t.Context(), b.p, u.ID.String(), nil)
	b.must(err)
	b.succeeded(a)
	c := b.code(u.ID)
	if c.Status != device.StatusSet || *c.PIN != *u.PIN || !b.onLock(*u.PIN) {
		t.Fatalf("converted to %s", c.Status)
	}
	if got := b.events(u.ID); got[len(got)-1] != "access_code.unmanaged.converted_to_managed" {
		t.Fatalf("events %v", got)
	}
}

func TestConversion_NotSupportedByVendor(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"igloohome", "kwikset", "smartthings"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: profile})
			u := b.unmanaged()[0]
			if !u.CannotBeManaged {
				t.Error("the capability is not shown beforehand")
			}
			if (u.PIN == nil) != (profile == "smartthings") {
				t.Errorf("PIN shown: %v", u.PIN != nil)
			}
			a, err := b.access.Devices.ConvertCode(t.Context(), b.p, u.ID.String(), nil)
			b.must(err)
			if a = b.ended(a); a.Status != device.Failed || a.ErrorType != "cannot_be_managed" {
				t.Fatalf("attempt %s %s", a.Status, a.ErrorType)
			}
			if got := b.events(u.ID); got[len(got)-1] != "access_code.unmanaged.failed_to_convert_to_managed" {
				t.Fatalf("events %v", got)
			}
			if len(b.unmanaged()) != len(b.memory()) {
				t.Fatal("the code is not unmanaged")
			}
		})
	}
}

func TestProviderPIN_KeptOnRename(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "salto_ks"})
	c, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{DeviceID: b.device, EvenIfOffline: true})
	b.must(err)
	if c.PIN != nil || !c.WaitingForPIN {
		t.Errorf("immediately: has PIN %v, waits for one %v", c.PIN != nil, c.WaitingForPIN)
	}
	b.succeeded(a)
	set := b.code(c.ID)
	if set.PIN == nil || set.WaitingForPIN || !b.onLock(*set.PIN) {
		t.Fatalf("set: has PIN %v", set.PIN != nil)
	}
	name := "Renamed"
	a, err = b.access.Devices.UpdateCode(t.Context(), b.p,
		device.CodeChange{ID: c.ID.String(), Name: &name, EvenIfOffline: true})
	b.must(err)
	b.succeeded(a)
	if got := b.code(c.ID); *got.PIN != *set.PIN || !b.onLock(*set.PIN) {
		t.Error("the PIN has changed")
	}
}

// A code of an offline device shows its pending changes with old and new values.
func TestPendingMutations(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "yale"})
	c, a := b.create("74628351")
	b.succeeded(a)
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	name, starts, ends := "Friend", time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	_, err := b.access.Devices.UpdateCode(t.Context(), b.p, device.CodeChange{
		ID:            c.ID.String(),
		Name:          &name,
		PIN:           "74628352",
		StartsAt:      starts.Format(time.RFC3339),
		EndsAt:        ends.Format(time.RFC3339),
		EvenIfOffline: true,
	})
	b.must(err)
	got := map[string]device.Mutation{}
	for _, m := range b.code(c.ID).Mutations {
		got[m.Code] = m
	}
	for code, field := range map[string]string{"updating_name": "name", "updating_code": "code", "updating_time_frame": "ends_at"} {
		m, ok := got[code]
		if !ok || m.Message == "" || m.At.Before(c.CreatedAt) || reflect.DeepEqual(m.From[field], m.To[field]) {
			t.Errorf("%s: shown %v, %d mutations", code, ok, len(got))
		}
	}
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	b.until("no change is pending", func() bool { return len(b.code(c.ID).Mutations) == 0 })

	// A reverted change stays pending until the device confirms it.
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	for _, name := range []string{"Foe", "Friend"} {
		_, err := b.access.Devices.UpdateCode(t.Context(), b.p,
			device.CodeChange{ID: c.ID.String(), Name: &name, EvenIfOffline: true})
		b.must(err)
	}
	back := b.code(c.ID).Mutations
	if len(back) != 1 || back[0].Code != "updating_code" {
		t.Fatalf("reverted change: %d mutations", len(back))
	}
	for side, state := range map[string]map[string]any{"from": back[0].From, "to": back[0].To} {
		if pin, _ := state["code"].(*string); pin == nil || *pin != "74628352" {
			t.Errorf("%s is no PIN", side)
		}
	}
}
