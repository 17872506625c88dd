package reconcile_test

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

const (
	longName   = "Reservation 2025-07 Ana Gómez"
	atNuki     = "Reservation 2025-07"
	longerName = longName + " Ruiz"
)

// rename gives a code another name, and waits until its device has it.
func (b *bed) rename(c device.Code, name string) device.Code {
	b.Helper()
	a, err := b.access.Devices.UpdateCode(b.Context(), b.p, device.CodeChange{ID: c.ID.String(), Name: &name})
	b.must(err)
	b.succeeded(a)
	return b.code(c.ID)
}

// named returns the name that the lock has for a PIN.
func (b *bed) named(pin string) string {
	b.Helper()
	for _, c := range b.memory() {
		if c.Code == pin {
			return c.Name
		}
	}
	b.Fatal("the code is not on the lock")
	return ""
}

// A rename that the lock does not notice leaves the code on a lock that cannot change it.
func TestNames_RecreatedOnlyIfTheLockNotices(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "nuki", vendor: rigid(t, saysSo)})
	code, a := b.create("345678")
	b.succeeded(a)
	for _, step := range []struct {
		name, want string
		removals   int
	}{
		{longName, atNuki, 1},
		{longerName, atNuki, 1},
		{"Ana", "Ana", 2},
	} {
		got := b.rename(code, step.name)
		events := b.events(code.ID)
		removals := len(
			slices.DeleteFunc(events, func(e string) bool { return e != "access_code.removed_from_device" }),
		)
		if b.named("345678") != step.want || *got.Name != step.name || removals != step.removals {
			t.Errorf("%q: the lock has %q, and the code left it %d times, want %q and %d times",
				step.name, b.named("345678"), removals, step.want, step.removals)
		}
	}
}
