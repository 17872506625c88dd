package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// unlisted returns the capabilities of locks without a code list.
func unlisted(t *testing.T, more string) (byHand, *testClock) {
	t.Helper()
	b, clock := timeBound(t, "august")
	_, err := b.db.Pool.Exec(t.Context(),
		`update devices set capabilities = capabilities - 'list_codes' || $1::jsonb`, more)
	b.must(err)
	return b, clock
}

// rests lets time pass until nothing is due, and fails if that takes more than a day.
func (b byHand) rests(clock *testClock) {
	b.Helper()
	for end := clock.now().Add(24 * time.Hour); ; {
		due := b.look().Due
		if due == nil {
			return
		}
		if clock.to(later(*due, clock.now().Add(time.Second))); clock.now().After(end) {
			b.Fatalf("endless looks, next at %v", due)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A write that a vendor accepts and never confirms shows nowhere without a code list, and without
// in-place changes nothing overwrites it. The server announces that once. A new request recreates
// the code, and the code can be deleted.
func TestNoCodeList_NeverConfirmed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(b byHand, c access.Code)
		left int
	}{
		"asked for again": {func(b byHand, c access.Code) {
			b.update(access.CodeChange{ID: c.ID.String(), PIN: "2580"})
			w := b.work(c)
			if w.Action != access.Delete || w.Ref != "k1" {
				b.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.taken(w)
			w = b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "k2", Confirmed: true})
			if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 {
				b.Errorf("confirmed: status %s, errors %v", got.Status, got.Errors)
			}
		}, 1},
		"deleted": {func(b byHand, c access.Code) {
			b.deleteCode(c)
			w := b.work(c)
			if w.Action != access.Delete || w.Ref != "k1" {
				b.Fatalf("planned action %q of %q", w.Action, w.Ref)
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
					t.Fatalf("just put: planned action %q", w.Action)
				}
				if away {
					b.away()
				}
				b.rests(clock)
				got := b.code(code.ID)
				if got.Status != access.StatusUnset || len(got.Errors) != 1 ||
					got.Errors[0].Code != "failed_to_set_on_device" ||
					b.attempt(a).Status != access.Failed {
					t.Errorf("status %s, errors %v, attempt %s", got.Status, got.Errors, b.attempt(a).Status)
				}
				if n := countOf(b.events(code.ID), "access_code.failed_to_set_on_device"); n != 1 {
					t.Errorf("%d events", n)
				}
				if c.then(b, code); len(b.managed()) != c.left {
					t.Errorf("%d codes left", len(b.managed()))
				}
			})
		}
	}
}

// Without a code list, nothing shows that a write with a lost answer arrived, so the refusal of the
// next one counts.
func TestNoCodeList_RefusedCodeIsNotAwaited(t *testing.T) {
	t.Parallel()
	for class, says := range map[access.FailureClass]string{access.FailedFull: "no_space_for_access_code_on_device", access.FailedDuplicate: "duplicate_code_on_device"} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			b, clock := unlisted(t, `{}`)
			c, _ := b.create("2580")
			b.begin(b.work(c)) // the answer is lost
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Failure: &access.Failure{Class: class, Message: "refused"}})
			if w := b.work(c); w.Action != access.Await {
				t.Errorf("just refused: planned action %q", w.Action)
			}
			b.rests(clock)
			if got := b.code(c.ID); got.Status != access.StatusUnset || len(got.Errors) != 1 ||
				got.Errors[0].Code != says {
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
			other := b.on("4711", "k2")
			b.deleteCode(other)
			b.taken(b.work(other))
			if w := b.work(c); w.Action != access.Put || !w.New { // a slot is free, and the PIN may be, too
				t.Errorf("after another code left: planned action %q", w.Action)
			}
		})
	}
}
