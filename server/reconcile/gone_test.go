package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// The deletion of a code was reported as successful. If the vendor delivers the code afterwards,
// the server removes it.
func TestTombstone_LateCreateIsRemoved(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"its answer was lost": false, "then it was refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			c, _ := b.create("2580")
			b.begin(b.work(c)) // the answer is lost
			if refused {
				w := b.work(c)
				b.begin(w)
				b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedFull, Message: "full"}})
			}
			a := b.deleteCode(c)
			for n := 0; len(b.managed()) > 0; n++ {
				b.read(found("k9", "9999"))
				if clock.pass(10 * time.Second); n > 60 {
					t.Fatal("the code still exists")
				}
			}
			if got := b.attempt(a).Status; got != access.Succeeded {
				t.Fatalf("attempt status %s", got)
			}
			clock.pass(48 * time.Hour)
			late, stranger := found("k1", "2580"), found("k2", "1470")
			late.Key, stranger.Key = c.ID.String(), "11111111-1111-7111-8111-111111111111"
			guessed := found("k3", "") // in the slot of the code
			guessed.Key, guessed.KeyGuessed = c.ID.String(), true
			b.read(found("k9", "9999"), guessed)
			if w := b.look(); len(w.Codes) > 0 {
				t.Fatalf("with an unmanaged code: planned actions %v", w.Codes)
			}
			b.read(found("k9", "9999"), late, stranger)
			w := b.look()
			if len(w.Codes) != 1 || w.Codes[0].Action != access.Delete || w.Codes[0].Ref != "k1" {
				t.Fatalf("planned actions %v", w.Codes)
			}
			b.taken(w.Codes[0])
			b.read(found("k9", "9999"), stranger)
			if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
				t.Errorf("afterwards: planned actions %v, %d unmanaged codes", w.Codes, len(b.unmanaged()))
			}
		})
	}
}

// deletedInDoubt returns the code that a vendor may still deliver for a code deleted while its
// create was uncertain.
func deletedInDoubt(b byHand, clock *testClock) access.Found {
	b.Helper()
	c, _ := b.create("2580")
	b.begin(b.work(c))
	b.deleteCode(c)
	for len(b.managed()) > 0 {
		b.read(found("k9", "9999"))
		clock.pass(10 * time.Second)
	}
	late := found("k1", "2580")
	late.Key = c.ID.String()
	return late
}

// If the vendor cannot delete codes, the late code becomes unmanaged.
func TestTombstone_LateCreateCannotBeRemoved(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	late := deletedInDoubt(b, clock)
	b.read(found("k9", "9999"), late)
	for _, w := range b.look().Codes {
		b.must(
			b.access.RecordDelete(t.Context(), holder{}, b.id(), w, false,
				&access.Failure{Class: access.FailedUnsupported, Message: "no"}),
		)
	}
	b.read(found("k9", "9999"), late)
	if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
		t.Errorf("planned actions %v, %d unmanaged codes", w.Codes, len(b.unmanaged()))
	}
}

// Tombstones last for a month.
func TestTombstone_Expires(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	late := deletedInDoubt(b, clock)
	clock.pass(31 * 24 * time.Hour)
	b.read(found("k9", "9999"), late)
	if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
		t.Errorf("planned actions %v, %d unmanaged codes", w.Codes, len(b.unmanaged()))
	}
}
