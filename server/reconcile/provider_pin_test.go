package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// invented creates a code whose vendor chose the given PIN.
func (b byHand) invented(pin, ref string) access.Code {
	b.Helper()
	c, _ := b.create("")
	b.invents(c, pin, ref)
	return c
}

func (b byHand) invents(c access.Code, pin, ref string) {
	b.Helper()
	w := b.work(c)
	if w.Action != access.Put {
		b.Fatalf("planned action %q", w.Action)
	}
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: ref, PIN: pin})
	b.read(found(ref, pin))
}

func (b byHand) shows(when string, c access.Code, pin string, status access.Status) {
	b.Helper()
	got := b.code(c.ID)
	if told := got.PIN; told == nil && pin != "" || told != nil && *told != pin || got.Status != status {
		b.Errorf("%s: status %s, PIN known: %v", when, got.Status, told != nil)
	}
}

// A vendor that chooses PINs chooses another one if a code is recreated. That PIN opens.
func TestProviderPIN_ChangesOnRecreation(t *testing.T) {
	t.Parallel()
	lag := access.Options{ListLag: time.Nanosecond}
	t.Run("deleted at the lock", func(t *testing.T) {
		t.Parallel()
		b := hand(t, options{profile: "salto_ks", access: lag})
		c := b.invented("111111", "r1")
		b.shows("at first", c, "111111", access.StatusSet)
		b.read(found("r9", "999999"))
		b.shows("gone", c, "", access.StatusSetting)
		b.invents(c, "222222", "r2")
		b.shows("put back", c, "222222", access.StatusSet)
	})
	t.Run("lost on its way", func(t *testing.T) {
		t.Parallel()
		b := hand(t, options{profile: "salto_ks", access: lag})
		c, _ := b.create("")
		w := b.work(c)
		b.begin(w)
		b.end(w, access.PutOutcome{Ref: "r1", PIN: "111111"})
		b.read(
			access.Found{
				Ref:     "r1",
				PIN:     "111111",
				Failure: &access.Failure{Class: access.FailedForNow, Message: "lost"},
			},
		)
		_, err := b.db.Pool.Exec(t.Context(), "update access_codes set next_attempt_at = null")
		b.must(err)
		b.invents(c, "222222", "r2")
		b.shows("put again", c, "222222", access.StatusSet)
	})
	t.Run("changed at the lock", func(t *testing.T) {
		t.Parallel()
		b := hand(t, options{profile: "salto_ks", access: lag})
		c := b.invented("111111", "r1")
		for range 2 {
			b.read(found("r1", "333333"))
			b.shows("changed", c, "333333", access.StatusSet)
			if w := b.work(c); w.Action != access.Nothing {
				t.Errorf("planned action %q, but no put restores the former PIN", w.Action)
			}
		}
		if n := countOf(b.events(c.ID), "access_code.modified_external_to_seam"); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}
