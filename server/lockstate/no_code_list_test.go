package lockstate

import (
	"testing"
	"time"
)

// unlisted returns the capabilities of locks without a code list.
func unlisted(t *testing.T) *bed {
	t.Helper()
	b := newBed(t, "august")
	b.device.Capabilities.ListCodes = false
	return b
}

// rests lets time pass until nothing is due, and fails if that takes more than a day.
func (b *bed) rests() {
	b.Helper()
	for end := b.now().Add(24 * time.Hour); ; {
		due := b.look().Due
		if due == nil {
			return
		}
		if b.to(later(*due, b.now().Add(time.Second))); b.now().After(end) {
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
		then func(b *bed, c view)
		left int
	}{
		"asked for again": {func(b *bed, c view) {
			b.update(c, change{PIN: "2580"})
			w := b.work(c)
			if w.Action != Delete || w.Ref != "k1" {
				b.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.taken(w)
			w = b.work(c)
			b.begin(w)
			b.end(w, Outcome{Ref: "k2", Confirmed: true})
			if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
				b.Errorf("confirmed: status %s, errors %v", got.Status, got.Errors)
			}
		}, 1},
		"deleted": {func(b *bed, c view) {
			b.deleteCode(c)
			w := b.work(c)
			if w.Action != Delete || w.Ref != "k1" {
				b.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.taken(w)
		}, 0},
	} {
		for when, away := range map[string]bool{"": false, ", its lock was away": true} {
			t.Run(name+when, func(t *testing.T) {
				t.Parallel()
				b := unlisted(t)
				b.device.Capabilities.ModifyInPlace = false
				code, a := b.create("2580")
				w := b.work(code)
				b.begin(w)
				b.end(w, Outcome{Ref: "k1"})
				if w := b.work(code); w.Action != Await {
					t.Fatalf("just put: planned action %q", w.Action)
				}
				if away {
					b.away()
				}
				b.rests()
				got := b.code(code.ID)
				if got.Status != StatusUnset || len(got.Errors) != 1 ||
					got.Errors[0].Code != "failed_to_set_on_device" ||
					b.attempt(a).Status != Failed {
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
	for class, says := range map[FailureClass]string{FailedFull: "no_space_for_access_code_on_device", FailedDuplicate: "duplicate_code_on_device"} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			b := unlisted(t)
			c, _ := b.create("2580")
			b.begin(b.work(c)) // the answer is lost
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: class, Message: "refused"}})
			if w := b.work(c); w.Action != Await {
				t.Errorf("just refused: planned action %q", w.Action)
			}
			b.rests()
			if got := b.code(c.ID); got.Status != StatusUnset || len(got.Errors) != 1 ||
				got.Errors[0].Code != says {
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
			other := b.on("4711", "k2")
			b.deleteCode(other)
			b.taken(b.work(other))
			if w := b.work(c); w.Action != Put || !w.New { // a slot is free, and the PIN may be, too
				t.Errorf("after another code left: planned action %q", w.Action)
			}
		})
	}
}

// A vendor without idempotent creates, or one that keeps failing, is asked for some minutes. Other
// codes wait at most as long.
func TestNoCodeList_UncertainCodeIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]FailureClass{"refused": FailedDuplicate, "failing": FailedForNow} {
		for how, leave := range map[string]func(b *bed, c view){
			"deleted": func(b *bed, c view) { b.deleteCode(c) },
			"moved": func(b *bed, c view) {
				b.update(c, change{StartsAt: new(b.now().Add(720 * time.Hour)),
					EndsAt: new(b.now().Add(721 * time.Hour)),
				})
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "smartthings")
				b.device.Capabilities.ListCodes = false
				c, _ := b.create("2580")
				b.begin(b.work(c)) // the answer is lost
				leave(b, c)
				other, _ := b.create("2591")
				began, asked := b.now(), 0
				for waits := true; waits; {
					waits = false
					w := b.look()
					for _, one := range w.Codes {
						waits = waits || one.Leaving
						if one.Action == Find {
							asked++
							if !b.started(one) {
								t.Fatal("the search is not wanted")
							}
							b.end(one,
								Outcome{Failure: &Failure{Class: class, Message: "no"}})
						}
					}
					if asked == 0 {
						t.Fatal("the code is not searched")
					}
					if waits = waits || b.mayBeThere(c); waits {
						b.pass(5 * time.Second)
					}
					if b.now().
						Sub(began) >
						map[string]time.Duration{"refused": 3 * time.Minute, "failing": 20 * time.Minute}[name] {
						t.Fatalf("after %d tries the server still waits: %v", asked, w.Codes)
					}
				}
				if want := map[string]int{"refused": 1, "failing": 8}[name]; asked != want {
					t.Errorf("%d tries", asked)
				}
				if w := b.work(other); w.Action != Put {
					t.Errorf("planned action %q for the other code", w.Action)
				}
			})
		}
	}
}

// mayBeThere reports whether a code is being removed or is uncertain.
func (b *bed) mayBeThere(c view) bool {
	i := b.index(c.ID)
	return i >= 0 && b.codes[i].mayBeOnDevice()
}
