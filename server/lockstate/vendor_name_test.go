package lockstate

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
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

// A vendor that requires unique names gets a number where another code has the name, or may have it.
func TestNames_Unique(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		other func(b *bed)
		want  string
	}{
		"no other code": {func(*bed) {}, "Guest"},
		"another case": {func(b *bed) {
			b.read(Found{Ref: "k1", PIN: "4711", Name: "GUEST", Confirmed: true})
		}, "Guest 2"},
		"of a code that is being set": {func(b *bed) {
			c, _, err := b.add(Code{PIN: "4711", Name: new("Guest")})
			b.must(err)
			b.begin(b.work(c))
		}, "Guest 2"},
		"of a code that was just planned": {func(b *bed) {
			_, _, err := b.add(Code{PIN: "4711", Name: new("Guest")})
			b.must(err)
		}, "Guest 2"},
		"of a code that is being renamed": {func(b *bed) {
			c, _, err := b.add(Code{PIN: "4711", Name: new("Guest")})
			b.must(err)
			b.set(c, "k1")
			b.update(c, change{Name: new("Cleaner")})
			b.begin(b.work(c))
		}, "Guest 2"},
		"of a code that was renamed": {func(b *bed) {
			c, _, err := b.add(Code{PIN: "4711", Name: new("Guest")})
			b.must(err)
			b.set(c, "k1")
			b.update(c, change{Name: new("Cleaner")})
			b.set(c, "k1")
		}, "Guest"},
		"of an offline code": {func(b *bed) {
			_, _, err := b.add(Code{
				Name:     new("Guest"),
				StartsAt: new(b.now()),
				EndsAt:   new(b.now().Add(time.Hour)),
				Offline:  OfflineHourly,
			})
			b.must(err)
		}, "Guest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "kwikset")
			c.other(b)
			code, _, err := b.add(Code{PIN: "2580", Name: new("Guest")})
			b.must(err)
			if w := b.work(code); w.Action != Put || w.Name != c.want {
				t.Errorf("planned action %q as %q, want %q", w.Action, w.Name, c.want)
			}
		})
	}
}

// The name on the lock is shown, unless a write will change it or may just have.
func TestNames_PendingChangeKeepsName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(b *bed, c view)
		want string
	}{
		"no change":     {func(*bed, view) {}, "Gast"},
		"to be changed": {func(b *bed, c view) { b.update(c, change{PIN: "471135"}) }, "New Access Code"},
		"being changed": {func(b *bed, c view) { b.update(c, change{PIN: "471135"}); b.begin(b.work(c)) }, "New Access Code"},
		"just set":      {func(b *bed, c view) { b.update(c, change{PIN: "471135"}); b.set(c, "k1") }, "New Access Code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "nuki")
			code := b.on("258036", "k1")
			b.pass(time.Hour)
			c.then(b, code)
			b.read(Found{Ref: "k1", PIN: b.code(code.ID).PIN, Name: "Gast", Confirmed: true})
			if got := b.code(code.ID); domain.Value(got.VendorName) != c.want {
				t.Errorf("named %q on the lock, want %q", domain.Value(got.VendorName), c.want)
			}
		})
	}
}
