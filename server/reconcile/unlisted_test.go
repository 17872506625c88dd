package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// unlisted are locks whose codes nobody can read.
func unlisted(t *testing.T, more string) (byHand, *testClock) {
	t.Helper()
	b, clock := timeBound(t, "august")
	_, err := b.db.Pool.Exec(t.Context(),
		`update devices set capabilities = capabilities - 'list_codes' || $1::jsonb`, more)
	b.must(err)
	return b, clock
}

// rests lets time pass until nothing more is due, and says when that is not within a day.
func (b byHand) rests(clock *testClock) {
	b.Helper()
	for end := clock.now().Add(24 * time.Hour); ; {
		due := b.look().Due
		if due == nil {
			return
		}
		if clock.to(later(*due, clock.now().Add(time.Second))); clock.now().After(end) {
			b.Fatalf("it is looked at again and again, next at %v", due)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// What a vendor has taken and never confirms can show nowhere where codes cannot be read, and nothing is written over it where they
// cannot be changed. That is told, once; the code is put anew when somebody asks for that, and can be taken off.
func TestACodeThatIsNeverConfirmedWhereNobodyCanLookIsToldAsThat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(b byHand, c access.Code)
		left int
	}{
		"asked for again": {func(b byHand, c access.Code) {
			b.update(access.CodeChange{ID: c.ID.String(), PIN: "2580"})
			w := b.work(c)
			if w.Action != access.Delete || w.Ref != "k1" {
				b.Fatalf("there is %q of %q to do", w.Action, w.Ref)
			}
			b.taken(w)
			w = b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "k2", Confirmed: true})
			if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 {
				b.Errorf("confirmed it is %s with %v", got.Status, got.Errors)
			}
		}, 1},
		"deleted": {func(b byHand, c access.Code) {
			b.deleteCode(c)
			w := b.work(c)
			if w.Action != access.Delete || w.Ref != "k1" {
				b.Fatalf("there is %q of %q to do", w.Action, w.Ref)
			}
			b.taken(w)
		}, 0},
	} {
		for when, away := range map[string]bool{"": false, ", its lock was away": true} {
			t.Run(name+when, func(t *testing.T) {
				t.Parallel()
				b, clock := unlisted(t, `{"put_anew": true}`)
				code, a := b.create("2580")
				w := b.work(code)
				b.begin(w)
				b.end(w, access.PutOutcome{Ref: "k1"})
				if w := b.work(code); w.Action != access.Await {
					t.Fatalf("just put, there is %q to do", w.Action)
				}
				if away {
					b.away()
				}
				b.rests(clock)
				got := b.code(code.ID)
				if got.Status != access.StatusUnset || len(got.Errors) != 1 ||
					got.Errors[0].Code != "failed_to_set_on_device" ||
					b.attempt(a).Status != access.Failed {
					t.Errorf("it is %s with %v, its attempt %s", got.Status, got.Errors, b.attempt(a).Status)
				}
				if n := countOf(b.events(code.ID), "access_code.failed_to_set_on_device"); n != 1 {
					t.Errorf("that is told %d times", n)
				}
				if c.then(b, code); len(b.managed()) != c.left {
					t.Errorf("%d codes are left", len(b.managed()))
				}
			})
		}
	}
}

// Nor does anything show that a write has arrived whose answer was lost: a refusal of the next one stands.
func TestARefusedCodeIsNotAwaitedWhereNobodyCanLook(t *testing.T) {
	t.Parallel()
	for class, says := range map[access.FailureClass]string{access.FailedFull: "no_space_for_access_code_on_device", access.FailedDuplicate: "duplicate_code_on_device"} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			b, clock := unlisted(t, `{}`)
			c, _ := b.create("2580")
			b.begin(b.work(c)) // and no answer comes
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Failure: &access.Failure{Class: class, Message: "refused"}})
			if w := b.work(c); w.Action != access.Await {
				t.Errorf("just refused, there is %q to do", w.Action)
			}
			b.rests(clock)
			if got := b.code(c.ID); got.Status != access.StatusUnset || len(got.Errors) != 1 ||
				got.Errors[0].Code != says {
				t.Errorf("it is %s with %v", got.Status, got.Errors)
			}
			other := b.on("4711", "k2")
			b.deleteCode(other)
			b.taken(b.work(other))
			if w := b.work(c); w.Action != access.Put || !w.New { // there is room, and the PIN may be free
				t.Errorf("after another has left there is %q to do", w.Action)
			}
		})
	}
}
