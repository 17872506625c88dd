package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// disabled returns a code that its device stores but that does not open.
func disabled(pin string) access.Found {
	f := found("k1", pin)
	f.Disabled = true
	return f
}

func TestDisabledCode_IsRepaired(t *testing.T) {
	t.Parallel()
	for name, pin := range map[string]string{"shown": "2580", "hidden": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
			c := b.on("2580", "k1")
			b.read(disabled(pin))
			if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "conflicting_external_modification" {
				t.Errorf("errors %v", got.Errors)
			}
			w := b.work(c)
			if w.Action != access.Put || w.Ref != "k1" {
				t.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.begin(w)
			b.read(disabled(pin)) // before the write arrives
			if w := b.work(c); w.Action != access.Put {
				t.Fatalf("a disabled code counts as written: planned action %q", w.Action)
			}
			b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
			b.read(found("k1", pin))
			if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 {
				t.Errorf("enabled again: status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}

func TestDisabledCode_AllowedModification(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	allowed := true
	b.update(access.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: &allowed})
	for range 3 {
		b.read(disabled("2580"))
		got := b.code(c.ID)
		if len(got.Errors) > 0 || len(got.Warnings) != 1 || got.Warnings[0].Code != "external_modification_in_effect" {
			t.Fatalf("errors %v, warnings %v", got.Errors, got.Warnings)
		}
		if w := b.work(c); w.Action != access.Nothing {
			t.Fatalf("planned action %q", w.Action)
		}
	}
	told := 0
	for _, e := range b.events(c.ID) {
		if e == "access_code.modified_external_to_seam" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d events", told)
	}
	b.read(found("k1", "2580"))
	if got := b.code(c.ID); len(got.Warnings) > 0 {
		t.Errorf("enabled again: warnings %v", got.Warnings)
	}
}

func TestDisabledCode_Unmanaged(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	b.read(disabled("2580"), found("k2", "4711"))
	for range 2 {
		for _, u := range b.unmanaged() {
			if inactive := len(u.Errors) == 1 && u.Errors[0].Code == "access_code_inactive"; inactive != (*u.PIN == "2580") {
				t.Errorf("errors %v", u.Errors)
			}
		}
		b.read(found("k2", "4711"), disabled("2580"))
	}
	b.read(found("k1", "2580"), found("k2", "4711"))
	for _, u := range b.unmanaged() {
		if len(u.Errors) > 0 {
			t.Errorf("enabled: errors %v", u.Errors)
		}
	}
}

func TestDisabledCode_EnabledByConversion(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{"put right": false, "left": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
			b.read(disabled("2580"))
			c := b.unmanaged()[0]
			_, err := b.access.ConvertCode(t.Context(), b.p, c.ID.String(), &allowed)
			b.must(err)
			b.read(disabled("2580"))
			if got := b.code(c.ID); len(got.Errors) > 0 || len(got.Warnings) > 0 != allowed {
				t.Errorf("errors %v, warnings %v", got.Errors, got.Warnings)
			}
			if w := b.work(c); (w.Action == access.Put && w.Ref == "k1") == allowed {
				t.Errorf("planned action %q of %q", w.Action, w.Ref)
			}
		})
	}
}
