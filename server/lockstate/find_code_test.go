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

// A vendor without idempotent creates, or one that keeps failing, is asked for some minutes. Other
// codes wait at most as long.
func TestNoCodeList_UncertainCodeIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]FailureClass{"refused": FailedDuplicate, "failing": FailedForNow} {
		for how, leave := range map[string]func(b *bed, c view){
			"deleted": func(b *bed, c view) { b.deleteCode(c) },
			"moved": func(b *bed, c view) {
				b.update(c, change{
					StartsAt: new(b.now().Add(720 * time.Hour)),
					EndsAt:   new(b.now().Add(721 * time.Hour)),
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

// uncertain returns a code of a lock without a code list that must leave although its creation is uncertain, and its
// next operation.
func uncertain(t *testing.T) (*bed, view, *Operation) {
	t.Helper()
	b := unlisted(t)
	c, _ := b.create("2580")
	b.begin(b.work(c)) // the answer is lost
	b.deleteCode(c)
	w := b.work(c)
	if w.Action != Find || w.PIN != "2580" {
		t.Fatalf("planned action %q", w.Action)
	}
	return b, c, w
}

// The vendor answers a repeated creation with the reference, by which the code is removed.
func TestNoCodeList_FoundCodeIsRemoved(t *testing.T) {
	t.Parallel()
	b, c, w := uncertain(t)
	vanished := b.on("4711", "k1") // the vendor has used its reference again
	if !b.started(w) {
		t.Fatal("the search is not wanted")
	}
	b.end(w, Outcome{Ref: "k1"})
	b.end(w, Outcome{Ref: "k2"}) // a second answer
	again := b.work(c)
	if again.Action != Delete || again.Ref != "k1" {
		t.Fatalf("planned action %q of %q", again.Action, again.Ref)
	}
	if b.started(w) {
		t.Error("the search continues")
	}
	b.taken(again)
	if b.exists(c.ID) {
		t.Error("the code still exists")
	}
	if w := b.work(vanished); w.Action != Put || !w.New {
		t.Errorf("planned action %q for the code of the reference", w.Action)
	}
}

// The search pauses between its attempts, and an invalid reference is no answer.
func TestNoCodeList_SearchPauses(t *testing.T) {
	t.Parallel()
	b, c, w := uncertain(t)
	b.started(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "busy", RetryAfter: time.Hour}})
	if w := b.work(c); w.Action != Nothing {
		t.Errorf("planned action %q in a pause", w.Action)
	}
	b.pass(time.Hour)
	w = b.work(c)
	b.started(w)
	b.end(w, Outcome{Ref: "k\x00"})
	if w := b.work(c); w.Action == Find || w.Ref != "" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}
