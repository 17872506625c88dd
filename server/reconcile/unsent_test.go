package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A list that does not show a code, for a moment or for good, is no word that it has left: what may still open is taken away.
func TestCodeThatIsToLeaveAndIsNotShownIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b byHand, c access.Code, clock *testClock){
		"deleted": func(b byHand, c access.Code, _ *testClock) { b.deleteCode(c) },
		"its end": func(_ byHand, _ access.Code, clock *testClock) { clock.pass(2 * time.Hour) },
		"moved far on": func(b byHand, c access.Code, clock *testClock) {
			b.update(access.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Add(100 * time.Hour).Format(time.RFC3339), EndsAt: clock.now().Add(101 * time.Hour).Format(time.RFC3339)})
		},
	} {
		for what, shown := range map[string][]access.Found{"nothing": nil, "a part": {found("k9", "9999")}} {
			t.Run(name+", "+what+" is shown", func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "smartthings")
				c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
				w := b.work(c)
				b.begin(w)
				b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
				b.read(append(shown, found("k1", ""))...)
				clock.pass(time.Minute)
				leave(b, c, clock)
				b.read(shown...)
				if len(b.managed()) != 1 {
					t.Fatal("it counts as gone, and nobody has taken it away")
				}
				w = b.work(c)
				if w.Action != access.Delete || w.Ref != "k1" {
					t.Fatalf("there is %q of %q to do", w.Action, w.Ref)
				}
				b.taken(w)
				b.read(shown...)
				if got := b.work(c); got.Action != access.Nothing {
					t.Errorf("after that there is %q of %q to do", got.Action, got.Ref)
				}
				if left, stays := len(b.managed()) == 1, name == "moved far on"; left != stays {
					t.Errorf("it is still there: %v", left)
				}
			})
		}
	}
}

func TestUnmanagedCodeThatIsToLeaveAndIsNotShownIsTakenAway(t *testing.T) {
	t.Parallel()
	for what, shown := range map[string][]access.Found{"nothing": nil, "a part": {found("k9", "9999")}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			b.read(found("k1", "2580"))
			u := b.unmanaged()[0]
			a, err := b.access.DeleteUnmanagedCode(t.Context(), b.p, u.ID.String())
			b.must(err)
			b.read(shown...)
			w := b.work(u)
			if w.Action != access.Delete || w.Ref != "k1" || b.attempt(a).Status != access.Pending {
				t.Fatalf("there is %q of %q to do, the attempt %s", w.Action, w.Ref, b.attempt(a).Status)
			}
			b.taken(w)
			b.read(shown...)
			if got := b.attempt(a).Status; got != access.Succeeded || len(b.unmanaged()) != len(shown) {
				t.Errorf("the attempt is %s, beside %d codes", got, len(b.unmanaged()))
			}
		})
	}
}

// A vendor that cannot delete what is not there has no code be on its way off for ever. One that was sent a moment ago may still come.
func TestCodeThatIsNotShownAndCannotBeTakenAwayIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put    func(b byHand) access.Code
		unborn bool
	}{
		"confirmed": {func(b byHand) access.Code { return b.on("2580", "k1") }, false},
		"not since its lock is back": {func(b byHand) access.Code {
			c := b.on("2580", "k1")
			b.away()
			return c
		}, false},
		"never": {func(b byHand) access.Code {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "k1"})
			return c
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			code := c.put(b)
			if !c.unborn {
				clock.pass(time.Minute)
			}
			b.deleteCode(code)
			began := clock.now()
			for n := 0; len(b.managed()) > 0; n++ {
				b.read(found("k9", "9999"))
				if w := b.work(code); w.Action == access.Delete {
					b.must(
						b.access.RecordDelete(t.Context(), holder{}, b.id(), w, false,
							&access.Failure{Class: access.FailedForNow, Message: "no such code"}),
					)
				}
				if clock.pass(10 * time.Second); n > 60 {
					t.Fatal("it is still there")
				}
			}
			if c.unborn && clock.now().Sub(began) < time.Minute {
				t.Errorf("after %s it counts as gone", clock.now().Sub(began))
			}
		})
	}
}

// taken has a code be taken off, as the engine does it.
func (b byHand) taken(w access.CodeWork) {
	b.Helper()
	if still, err := b.access.RecordDeleteStarted(b.Context(), holder{}, b.id(), w); err != nil || !still {
		b.Fatal("it is not to leave any more", err)
	}
	b.must(b.access.RecordDelete(b.Context(), holder{}, b.id(), w, true, nil))
}

// A place that was free just now is no place of a code whose removal has failed, and ours is not taken away for it.
func TestPlaceOfACodeThatHasLeftIsAnothers(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	c := b.on("2580", "5")
	clock.pass(time.Minute)
	b.deleteCode(c)
	b.must(
		b.access.RecordDelete(t.Context(), holder{}, b.id(), b.work(c), false,
			&access.Failure{Class: access.FailedForNow, Message: "busy"}),
	)
	b.read(found("9", "9999"))
	next, _ := b.create("4711")
	w := b.work(next)
	b.begin(w)
	b.must(b.access.RecordPlace(t.Context(), holder{}, b.id(), w, "5")) // and no answer comes
	b.read(found("9", "9999"), found("5", "4711"))
	if got := b.managed(); len(got) != 1 || got[0].ID != next.ID || got[0].Status != access.StatusSet {
		t.Errorf("there are %d codes of ours", len(got))
	}
}
