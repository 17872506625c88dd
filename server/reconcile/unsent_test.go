package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A list without a code is no evidence that it has left. A code that may still open is deleted
// explicitly.
func TestUnlistedCode_IsDeletedExplicitly(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b byHand, c access.Code, clock *testClock){
		"deleted": func(b byHand, c access.Code, _ *testClock) { b.deleteCode(c) },
		"its end": func(_ byHand, _ access.Code, clock *testClock) { clock.pass(2 * time.Hour) },
		"postponed": func(b byHand, c access.Code, clock *testClock) {
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
					t.Fatal("the code counts as gone without a deletion")
				}
				w = b.work(c)
				if w.Action != access.Delete || w.Ref != "k1" {
					t.Fatalf("planned action %q of %q", w.Action, w.Ref)
				}
				b.taken(w)
				b.read(shown...)
				if got := b.work(c); got.Action != access.Nothing {
					t.Errorf("afterwards: planned action %q of %q", got.Action, got.Ref)
				}
				if left, stays := len(b.managed()) == 1, name == "postponed"; left != stays {
					t.Errorf("the code still exists: %v", left)
				}
			})
		}
	}
}

func TestUnlistedCode_UnmanagedIsDeletedExplicitly(t *testing.T) {
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
				t.Fatalf("planned action %q of %q, attempt %s", w.Action, w.Ref, b.attempt(a).Status)
			}
			b.taken(w)
			b.read(shown...)
			if got := b.attempt(a).Status; got != access.Succeeded || len(b.unmanaged()) != len(shown) {
				t.Errorf("attempt %s, %d codes", got, len(b.unmanaged()))
			}
		})
	}
}

// If a vendor cannot delete a missing code, the deletion still ends. A recently sent code may yet
// arrive.
func TestUnlistedCode_UndeletableIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put    func(b byHand) access.Code
		unborn bool
	}{
		"confirmed": {func(b byHand) access.Code { return b.on("2580", "k1") }, false},
		"not sent since its lock came back": {func(b byHand) access.Code {
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
					t.Fatal("the code still exists")
				}
			}
			if c.unborn && clock.now().Sub(began) < time.Minute {
				t.Errorf("gone after %s", clock.now().Sub(began))
			}
		})
	}
}

// taken runs the deletion of a code like the engine.
func (b byHand) taken(w access.CodeWork) {
	b.Helper()
	if still, err := b.access.RecordDeleteStarted(b.Context(), holder{}, b.id(), w); err != nil || !still {
		b.Fatal("the deletion is not wanted", err)
	}
	b.must(b.access.RecordDelete(b.Context(), holder{}, b.id(), w, true, nil))
}

// A slot that was free is not the slot of a code whose removal failed, and our code is not deleted
// because of it.
func TestFreedSlot_BelongsToNextCode(t *testing.T) {
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
	b.must(b.access.RecordPlace(t.Context(), holder{}, b.id(), w, "5")) // the answer is lost
	b.read(found("9", "9999"), found("5", "4711"))
	if got := b.managed(); len(got) != 1 || got[0].ID != next.ID || got[0].Status != access.StatusSet {
		t.Errorf("%d managed codes", len(got))
	}
}
