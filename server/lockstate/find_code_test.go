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
