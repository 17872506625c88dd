package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// Whoever has deleted a code was told that it is gone: what a vendor delivers afterwards, under the key of that code, is taken off.
func TestCreationThatArrivesAfterItsCodeWasDeletedIsTakenOff(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"its answer was lost": false, "then it was refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			c, _ := b.create("2580")
			b.begin(b.work(c)) // and no answer comes
			if refused {
				w := b.work(c)
				b.begin(w)
				b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedFull, Message: "full"}})
			}
			a := b.deleteCode(c)
			for n := 0; len(b.managed()) > 0; n++ {
				b.read(found("k9", "9999"))
				if clock.pass(10 * time.Second); n > 60 {
					t.Fatal("it is still there")
				}
			}
			if got := b.attempt(a).Status; got != access.Succeeded {
				t.Fatalf("the attempt is %s", got)
			}
			clock.pass(48 * time.Hour)
			late, stranger := found("k1", "2580"), found("k2", "1470")
			late.Key, stranger.Key = c.ID.String(), "11111111-1111-7111-8111-111111111111"
			guessed := found("k3", "") // in the place that it was put to
			guessed.Key, guessed.KeyGuessed = c.ID.String(), true
			b.read(found("k9", "9999"), guessed)
			if w := b.look(); len(w.Codes) > 0 {
				t.Fatalf("with somebody else's there is %v to do", w.Codes)
			}
			b.read(found("k9", "9999"), late, stranger)
			w := b.look()
			if len(w.Codes) != 1 || w.Codes[0].Action != access.Delete || w.Codes[0].Ref != "k1" {
				t.Fatalf("there is %v to do", w.Codes)
			}
			b.taken(w.Codes[0])
			b.read(found("k9", "9999"), stranger)
			if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
				t.Errorf("then there is %v to do, beside %d codes of others", w.Codes, len(b.unmanaged()))
			}
		})
	}
}

// deletedInDoubt is what a vendor may yet deliver for a code that was deleted before anybody had heard what became of it.
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

// Where its vendor does not let it be removed it stays, as a stranger's would.
func TestCreationThatArrivesLateAndCannotBeTakenOffIsAnUnmanagedOne(t *testing.T) {
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
		t.Errorf("there is %v to do, beside %d codes of others", w.Codes, len(b.unmanaged()))
	}
}

// It is remembered for a month.
func TestWhatArrivesLongAfterItsCodeWasDeletedIsAnUnmanagedOne(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	late := deletedInDoubt(b, clock)
	clock.pass(31 * 24 * time.Hour)
	b.read(found("k9", "9999"), late)
	if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
		t.Errorf("there is %v to do, beside %d codes of others", w.Codes, len(b.unmanaged()))
	}
}
