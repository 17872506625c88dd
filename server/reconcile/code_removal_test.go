package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
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
				b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedFull, Message: "full"}})
			}
			a := b.deleteCode(c)
			for n := 0; len(b.managed()) > 0; n++ {
				b.read(found("k9", "9999"))
				if clock.pass(10 * time.Second); n > 60 {
					t.Fatal("the code still exists")
				}
			}
			if got := b.attempt(a).Status; got != device.Succeeded {
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
			if len(w.Codes) != 1 || w.Codes[0].Action != lockstate.Delete || w.Codes[0].Ref != "k1" {
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
func deletedInDoubt(b byHand, clock *testClock) shown {
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
			b.removal(w, false,
				&lockstate.Failure{Class: lockstate.FailedUnsupported, Message: "no"}),
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

// A list without a code is no evidence that it has left. A code that may still open is deleted
// explicitly.
func TestUnlistedCode_IsDeletedExplicitly(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b byHand, c device.Code, clock *testClock){
		"deleted": func(b byHand, c device.Code, _ *testClock) { b.deleteCode(c) },
		"its end": func(_ byHand, _ device.Code, clock *testClock) { clock.pass(2 * time.Hour) },
		"postponed": func(b byHand, c device.Code, clock *testClock) {
			b.update(device.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Add(100 * time.Hour).Format(time.RFC3339), EndsAt: clock.now().Add(101 * time.Hour).Format(time.RFC3339)})
		},
	} {
		for what, shown := range map[string][]shown{"nothing": nil, "a part": {found("k9", "9999")}} {
			t.Run(name+", "+what+" is shown", func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "smartthings")
				c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
				w := b.work(c)
				b.begin(w)
				b.end(w, outcome{Ref: "k1", Confirmed: true})
				b.read(append(shown, found("k1", ""))...)
				clock.pass(time.Minute)
				leave(b, c, clock)
				b.read(shown...)
				if len(b.managed()) != 1 {
					t.Fatal("the code counts as gone without a deletion")
				}
				w = b.work(c)
				if w.Action != lockstate.Delete || w.Ref != "k1" {
					t.Fatalf("planned action %q of %q", w.Action, w.Ref)
				}
				b.taken(w)
				b.read(shown...)
				if got := b.work(c); got.Action != lockstate.Nothing {
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
	for what, shown := range map[string][]shown{"nothing": nil, "a part": {found("k9", "9999")}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			b.read(found("k1", "2580"))
			u := b.unmanaged()[0]
			a, err := b.access.Devices.DeleteUnmanagedCode(t.Context(), b.p, u.ID.String())
			b.must(err)
			b.read(shown...)
			w := b.work(u)
			if w.Action != lockstate.Delete || w.Ref != "k1" || b.attempt(a).Status != device.Pending {
				t.Fatalf("planned action %q of %q, attempt %s", w.Action, w.Ref, b.attempt(a).Status)
			}
			b.taken(w)
			b.read(shown...)
			if got := b.attempt(a).Status; got != device.Succeeded || len(b.unmanaged()) != len(shown) {
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
		put    func(b byHand) device.Code
		unborn bool
	}{
		"confirmed": {func(b byHand) device.Code { return b.on("2580", "k1") }, false},
		"not sent since its lock came back": {func(b byHand) device.Code {
			c := b.on("2580", "k1")
			b.away()
			return c
		}, false},
		"never": {func(b byHand) device.Code {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Ref: "k1"})
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
				if w := b.work(code); w.Action == lockstate.Delete {
					b.must(
						b.removal(w, false,
							&lockstate.Failure{Class: lockstate.FailedForNow, Message: "no such code"}),
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
func (b byHand) taken(w work) {
	b.Helper()
	if still, err := b.started(w); err != nil || !still {
		b.Fatal("the deletion is not wanted", err)
	}
	b.must(b.removal(w, true, nil))
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
		b.removal(b.work(c), false,
			&lockstate.Failure{Class: lockstate.FailedForNow, Message: "busy"}),
	)
	b.read(found("9", "9999"))
	next, _ := b.create("4711")
	w := b.work(next)
	b.begin(w)
	b.must(b.place(w, "5")) // the answer is lost
	b.read(found("9", "9999"), found("5", "4711"))
	if got := b.managed(); len(got) != 1 || got[0].ID != next.ID || got[0].Status != device.StatusSet {
		t.Errorf("%d managed codes", len(got))
	}
}

// hides returns a code of a lock that hides its PINs. Its slot is being cleared before another PIN
// is written.
func hides(t *testing.T) (byHand, *testClock, device.Code, work) {
	t.Helper()
	b, clock := timeBound(t, "smartthings")
	c := b.on("2580", "1")
	clock.pass(time.Hour) // past the read lag
	b.read(found("1", ""))
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "4711"})
	w := b.work(c)
	if w.Action != lockstate.Put || w.Ref != "1" {
		t.Fatalf("planned action %q at %q", w.Action, w.Ref)
	}
	b.begin(w)
	b.must(b.place(w, w.Ref))
	return b, clock, c, w
}

// external reports whether a code was announced as deleted externally.
func (b byHand) external(c device.Code) bool {
	b.Helper()
	for _, e := range b.code(c.ID).Errors {
		if e.Code == "conflicting_external_modification" {
			return true
		}
	}
	return countOf(b.events(c.ID), "access_code.deleted_external_to_seam") > 0
}

// A slot that was cleared for a PIN that is then refused does not count as deleted externally.
func TestClearedSlot_IsOurs(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*lockstate.Failure{
		"a crash, or the lock is out of reach": nil,
		"in doubt":                             {Class: lockstate.FailedForNow, Message: "no answer", Unsure: true},
		"refused":                              {Class: lockstate.FailedDuplicate, Message: "the lock has this PIN already", ConflictRef: "9"},
		"refused permanently":                  {Class: lockstate.FailedInvalid, Message: "not such a PIN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock, c, w := hides(t)
			if o != nil {
				b.end(w, outcome{Failure: o})
			}
			b.read(found("9", ""))
			clock.pass(time.Minute)
			if b.external(c) {
				t.Errorf("the code was announced as deleted externally: %v", b.code(c.ID).Errors)
			}
			if n := countOf(b.events(c.ID), "access_code.removed_from_device"); n != 1 {
				t.Errorf("%d removal events", n)
			}
			if w := b.work(c); w.Action != lockstate.Put || !w.New || w.PIN != "4711" {
				t.Errorf("planned action %q, new: %v", w.Action, w.New)
			}
		})
	}
}

// The retry happens before the empty list counts.
func TestClearedSlot_RetriedIsOurs(t *testing.T) {
	t.Parallel()
	b, clock, c, w := hides(t)
	b.end(w,
		outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "no answer", Unsure: true}})
	b.read() // an empty list has a grace period
	clock.pass(2 * time.Second)
	b.begin(w)
	b.end(w,
		outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "slot 1 of the lock is empty"}})
	clock.pass(time.Minute)
	b.read()
	clock.pass(time.Minute)
	b.read()
	if b.external(c) {
		t.Errorf("the code was announced as deleted externally: %v", b.code(c.ID).Errors)
	}
	if w := b.work(c); w.Action != lockstate.Put || !w.New || w.PIN != "4711" {
		t.Errorf("planned action %q, new: %v", w.Action, w.New)
	}
}

// Another code may take the slot before the next read.
func TestClearedSlot_TakenByAnotherCode(t *testing.T) {
	t.Parallel()
	b, clock, c, w := hides(t)
	b.end(w,
		outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "no answer", Unsure: true}})
	other, _ := b.create("8642")
	next := b.work(other)
	b.begin(next)
	b.must(b.place(next, "1"))
	b.end(next, outcome{Ref: "1", Confirmed: true})
	clock.pass(time.Minute)
	b.read(found("1", ""))
	if b.external(c) {
		t.Errorf("the code was announced as deleted externally: %v", b.code(c.ID).Errors)
	}
	if w := b.work(c); w.Action != lockstate.Put || !w.New {
		t.Errorf("planned action %q, new: %v", w.Action, w.New)
	}
	if got := b.code(other.ID); got.Status != device.StatusSet {
		t.Errorf("the other code: status %s", got.Status)
	}
}

// A deletion at the lock is announced, both after a successful change and after the lock has shown
// that the slot was not cleared.
func TestDeletedAtLock_HiddenPINIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]outcome{
		"the change is made":    {Ref: "1", Confirmed: true},
		"the change is refused": {Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "not such a PIN"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock, c, w := hides(t)
			b.end(w, o)
			clock.pass(time.Minute)
			if o.Failure != nil {
				b.read(found("1", ""))
			} else {
				b.update(device.CodeChange{ID: c.ID.String(), PIN: "4712"}) // no part of it was sent
			}
			b.read(found("9", ""))
			if !b.external(c) {
				t.Error("the deletion was not announced")
			}
		})
	}
}
