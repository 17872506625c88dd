package lockstate

import (
	"testing"
)

const (
	longName = "Reservation 2025-07 Ana Gómez"
	atNuki   = "Reservation 2025-07"
)

// A read that shows the shortened name is no drift, whatever the last write was.
func TestNames_ShownByTheLock(t *testing.T) {
	t.Parallel()
	b := newBed(t, "nuki")
	code, _ := b.create("345678")
	b.update(code, change{Name: new(longName)})
	w := b.work(code)
	if w.Name != atNuki {
		t.Fatalf("the lock gets %q", w.Name)
	}
	b.begin(w)
	shows := func(name string) {
		t.Helper()
		b.read(Found{Ref: "1", Key: code.ID, PIN: "345678", Name: name, Confirmed: true})
	}
	shows(atNuki) // the answer was lost
	if got := b.code(code.ID); got.Status != StatusSet || *got.Name != longName || *got.VendorName != atNuki {
		t.Fatalf("after the lost answer it is %s, %q, shown as %q", got.Status, *got.Name, *got.VendorName)
	}
	// The next name is written, but the list still shows the previous one.
	b.update(code, change{Name: new("Ana")})
	w = b.work(code)
	b.begin(w)
	b.end(w, Outcome{Ref: "1"})
	if shows(atNuki); !b.code(code.ID).pending() {
		t.Error("the previous name counts as the new one")
	}
	if shows("Ana"); b.code(code.ID).pending() {
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
			b := newFreshBed(t, "nuki")
			code, _ := b.create("345678")
			b.update(code, change{Name: new(longName)})
			w := b.work(code)
			b.begin(w)
			outcome := Outcome{Ref: "1", Confirmed: true}
			b.end(w, outcome)
			b.read(Found{Ref: "1", PIN: "345678", Name: c.shown, Confirmed: true})
			got := b.code(code.ID)
			shown := ""
			if got.VendorName != nil {
				shown = *got.VendorName
			}
			if *got.Name != longName || shown != c.want || len(got.Errors)+len(got.Warnings) > 0 || got.pending() {
				t.Errorf("%q appears as %q: %v %v", *got.Name, shown, got.Errors, got.Warnings)
			}
		})
	}
}
