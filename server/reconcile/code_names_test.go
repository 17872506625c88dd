package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
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

// A read that shows the shortened name is no drift, whatever the last write was.
func TestNames_ShownByTheLock(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "nuki"})
	code, _ := b.create("345678")
	b.renameOnly(code, longName)
	w := b.work(code)
	if w.Name != atNuki {
		t.Fatalf("the lock gets %q", w.Name)
	}
	b.begin(w)
	shows := func(name string) {
		t.Helper()
		b.read(shown{Ref: "1", Key: code.ID.String(), PIN: "345678", Name: name, Confirmed: true})
	}
	shows(atNuki) // the answer was lost
	if got := b.code(code.ID); got.Status != device.StatusSet || *got.Name != longName || *got.VendorName != atNuki {
		t.Fatalf("after the lost answer it is %s, %q, shown as %q", got.Status, *got.Name, *got.VendorName)
	}
	// The next name is written, but the list still shows the previous one.
	b.renameOnly(code, "Ana")
	w = b.work(code)
	b.begin(w)
	b.must(b.put(w, outcome{Ref: "1"}))
	if shows(atNuki); len(b.code(code.ID).Mutations) == 0 {
		t.Error("the previous name counts as the new one")
	}
	if shows("Ana"); len(b.code(code.ID).Mutations) > 0 {
		t.Error("the new name does not count")
	}
}

// The name that someone gives a code in the vendor's app is shown, and is no drift.
func TestNames_ChangedInTheVendorsApp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ shown, want string }{
		"another name":          {"Gast", "Gast"},
		"control characters":    {"Ga\x1b\u202est", "Gast"},
		"no name, or none kept": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "nuki", access: access.Options{ReadLag: time.Nanosecond}})
			code, _ := b.create("345678")
			b.renameOnly(code, longName)
			w := b.work(code)
			b.begin(w)
			outcome := outcome{Ref: "1", Confirmed: true}
			b.must(b.put(w, outcome))
			b.read(shown{Ref: "1", PIN: "345678", Name: c.shown, Confirmed: true})
			got := b.code(code.ID)
			shown := ""
			if got.VendorName != nil {
				shown = *got.VendorName
			}
			if *got.Name != longName || shown != c.want || len(got.Errors)+len(got.Warnings)+len(got.Mutations) > 0 {
				t.Errorf("%q appears as %q: %v %v %v", *got.Name, shown, got.Errors, got.Warnings, got.Mutations)
			}
		})
	}
}

// renameOnly is rename without an engine.
func (b byHand) renameOnly(c device.Code, name string) {
	b.Helper()
	_, err := b.access.Devices.UpdateCode(b.Context(), b.p, device.CodeChange{
		ID:            c.ID.String(),
		Name:          &name,
		EvenIfOffline: true,
	})
	b.must(err)
}
