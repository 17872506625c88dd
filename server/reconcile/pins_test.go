package reconcile_test

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

// exchange creates codes on the lock and then swaps their PINs in a cycle while the lock is
// offline. It returns the codes and the attempts of their last changes.
func (b *bed) exchange(pins ...string) (codes []device.Code, attempts []device.Attempt) {
	b.Helper()
	for _, pin := range pins {
		c, a := b.create(pin)
		b.succeeded(a)
		codes = append(codes, c)
	}
	b.must(b.rec.SetOnline(b.Context(), b.p, b.device, false))
	update := func(c device.Code, pin string) device.Attempt {
		a, err := b.access.Devices.UpdateCode(b.Context(), b.p,
			device.CodeChange{ID: c.ID.String(), PIN: pin, EvenIfOffline: true})
		b.must(err)
		return a
	}
	last := len(codes) - 1
	update(codes[last], "64646") // frees the PIN, because two codes must not want the same one
	for i := last - 1; i >= 0; i-- {
		attempts = append(attempts, update(codes[i], pins[i+1]))
	}
	return codes, append(attempts, update(codes[last], pins[0]))
}

// Each code wants the PIN of another. One of them leaves temporarily.
func TestSwappedPINs(t *testing.T) {
	t.Parallel()
	for profile, pins := range map[string][]string{"august": {"25801", "25802"}, "smartthings": {"25801", "25802"}, "ttlock": {"25611", "25622", "25633"}} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: profile})
			others := b.memory()
			codes, attempts := b.exchange(pins...)
			b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
			for _, a := range attempts {
				b.succeeded(a)
			}
			for i, c := range codes {
				want := pins[(i+1)%len(pins)]
				b.onlyOnce(want)
				if got := b.code(c.ID); got.Status != device.StatusSet || *got.PIN != want || len(got.Errors) > 0 {
					t.Errorf("code %d is %s with %v", i, got.Status, got.Errors)
				}
				if got := b.events(c.ID); slices.Contains(got, "access_code.deleted_external_to_seam") ||
					slices.Contains(got, "access_code.failed_to_set_on_device") {
					t.Errorf("code %d: events %v", i, got)
				}
			}
			if on := b.memory(); len(on) != len(others)+len(pins) {
				t.Errorf("there are %d codes on the lock, want %d", len(on), len(others)+len(pins))
			}
		})
	}
}
