package lockstate

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// The deletion of a code was reported as successful. If the vendor delivers the code afterwards,
// the server removes it.
func TestTombstone_LateCreateIsRemoved(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"its answer was lost": false, "then it was refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, _ := b.create("2580")
			b.begin(b.work(c)) // the answer is lost
			if refused {
				w := b.work(c)
				b.begin(w)
				b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "full"}})
			}
			a := b.deleteCode(c)
			for n := 0; len(b.managed()) > 0; n++ {
				b.read(found("k9", "9999"))
				if b.pass(10 * time.Second); n > 60 {
					t.Fatal("the code still exists")
				}
			}
			if got := b.attempt(a).Status; got != Succeeded {
				t.Fatalf("attempt status %s", got)
			}
			b.pass(48 * time.Hour)
			late, stranger := found("k1", "2580"), found("k2", "1470")
			late.Key, stranger.Key = c.ID, uuid.New()
			guessed := found("k3", "") // in the slot of the code
			guessed.Key, guessed.KeyGuessed = c.ID, true
			b.read(found("k9", "9999"), guessed)
			if w := b.look(); len(w.Codes) > 0 {
				t.Fatalf("with an unmanaged code: planned actions %v", w.Codes)
			}
			b.read(found("k9", "9999"), late, stranger)
			w := b.look()
			if len(w.Codes) != 1 || w.Codes[0].Action != Delete || w.Codes[0].Ref != "k1" {
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
func deletedInDoubt(b *bed) Found {
	b.Helper()
	c, _ := b.create("2580")
	b.begin(b.work(c))
	b.deleteCode(c)
	for len(b.managed()) > 0 {
		b.read(found("k9", "9999"))
		b.pass(10 * time.Second)
	}
	late := found("k1", "2580")
	late.Key = c.ID
	return late
}

// If the vendor cannot delete codes, the late code becomes unmanaged.
func TestTombstone_LateCreateCannotBeRemoved(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	late := deletedInDoubt(b)
	b.read(found("k9", "9999"), late)
	for _, w := range b.look().Codes {
		b.removal(w, false,
			&Failure{Class: FailedUnsupported, Message: "no"})
	}
	b.read(found("k9", "9999"), late)
	if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
		t.Errorf("planned actions %v, %d unmanaged codes", w.Codes, len(b.unmanaged()))
	}
}

// A list without a code is no evidence that it has left. A code that may still open is deleted
// explicitly.
func TestUnlistedCode_IsDeletedExplicitly(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b *bed, c view){
		"deleted": func(b *bed, c view) { b.deleteCode(c) },
		"its end": func(b *bed, _ view) { b.pass(2 * time.Hour) },
		"postponed": func(b *bed, c view) {
			b.update(c, change{StartsAt: new(b.now().Add(100 * time.Hour)), EndsAt: new(b.now().Add(101 * time.Hour))})
		},
	} {
		for what, shown := range map[string][]Found{"nothing": nil, "a part": {found("k9", "9999")}} {
			t.Run(name+", "+what+" is shown", func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "smartthings")
				c := b.between("2580", b.now(), b.now().Add(time.Hour))
				w := b.work(c)
				b.begin(w)
				b.end(w, Outcome{Ref: "k1", Confirmed: true})
				b.read(append(shown, found("k1", ""))...)
				b.pass(time.Minute)
				leave(b, c)
				b.read(shown...)
				if len(b.managed()) != 1 {
					t.Fatal("the code counts as gone without a deletion")
				}
				w = b.work(c)
				if w.Action != Delete || w.Ref != "k1" {
					t.Fatalf("planned action %q of %q", w.Action, w.Ref)
				}
				b.taken(w)
				b.read(shown...)
				if got := b.work(c); got.Action != Nothing {
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
	for what, shown := range map[string][]Found{"nothing": nil, "a part": {found("k9", "9999")}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.read(found("k1", "2580"))
			u := b.unmanaged()[0]
			a := b.deleteUnmanaged(u)
			b.read(shown...)
			w := b.work(u)
			if w.Action != Delete || w.Ref != "k1" || b.attempt(a).Status != Pending {
				t.Fatalf("planned action %q of %q, attempt %s", w.Action, w.Ref, b.attempt(a).Status)
			}
			b.taken(w)
			b.read(shown...)
			if got := b.attempt(a).Status; got != Succeeded || len(b.unmanaged()) != len(shown) {
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
		put    func(b *bed) view
		unborn bool
	}{
		"confirmed": {func(b *bed) view { return b.on("2580", "k1") }, false},
		"not sent since its lock came back": {func(b *bed) view {
			c := b.on("2580", "k1")
			b.away()
			return c
		}, false},
		"never": {func(b *bed) view {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Ref: "k1"})
			return c
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			code := c.put(b)
			if !c.unborn {
				b.pass(time.Minute)
			}
			b.deleteCode(code)
			began := b.now()
			for n := 0; len(b.managed()) > 0; n++ {
				b.read(found("k9", "9999"))
				if w := b.work(code); w.Action == Delete {
					b.removal(w, false,
						&Failure{Class: FailedForNow, Message: "no such code"})
				}
				if b.pass(10 * time.Second); n > 60 {
					t.Fatal("the code still exists")
				}
			}
			if c.unborn && b.now().Sub(began) < time.Minute {
				t.Errorf("gone after %s", b.now().Sub(began))
			}
		})
	}
}

// A slot that was free is not the slot of a code whose removal failed, and our code is not deleted
// because of it.
func TestFreedSlot_BelongsToNextCode(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "5")
	b.pass(time.Minute)
	b.deleteCode(c)
	b.removal(b.work(c), false,
		&Failure{Class: FailedForNow, Message: "busy"})
	b.read(found("9", "9999"))
	next, _ := b.create("4711")
	w := b.work(next)
	b.begin(w)
	b.place(w, "5") // the answer is lost
	b.read(found("9", "9999"), found("5", "4711"))
	if got := b.managed(); len(got) != 1 || got[0].ID != next.ID || got[0].Status != StatusSet {
		t.Errorf("%d managed codes", len(got))
	}
}

// hides returns a code of a lock that hides its PINs. Its slot is being cleared before another PIN
// is written.
func hides(t *testing.T) (*bed, view, *Operation) {
	t.Helper()
	b := newBed(t, "smartthings")
	c := b.on("2580", "1")
	b.pass(time.Hour) // past the read lag
	b.read(found("1", ""))
	b.update(c, change{PIN: "4711"})
	w := b.work(c)
	if w.Action != Put || w.Ref != "1" {
		t.Fatalf("planned action %q at %q", w.Action, w.Ref)
	}
	b.begin(w)
	b.place(w, w.Ref)
	return b, c, w
}

// external reports whether a code was announced as deleted externally.
func (b *bed) external(c view) bool {
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
	for name, o := range map[string]*Failure{
		"a crash, or the lock is out of reach": nil,
		"in doubt":                             {Class: FailedForNow, Message: "no answer", Unsure: true},
		"refused":                              {Class: FailedDuplicate, Message: "the lock has this PIN already", ConflictRef: "9"},
		"refused permanently":                  {Class: FailedInvalid, Message: "not such a PIN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, c, w := hides(t)
			if o != nil {
				b.end(w, Outcome{Failure: o})
			}
			b.read(found("9", ""))
			b.pass(time.Minute)
			if b.external(c) {
				t.Errorf("the code was announced as deleted externally: %v", b.code(c.ID).Errors)
			}
			if n := countOf(b.events(c.ID), "access_code.removed_from_device"); n != 1 {
				t.Errorf("%d removal events", n)
			}
			if w := b.work(c); w.Action != Put || !w.New || w.PIN != "4711" {
				t.Errorf("planned action %q, new: %v", w.Action, w.New)
			}
		})
	}
}

// The retry happens before the empty list counts.
func TestClearedSlot_RetriedIsOurs(t *testing.T) {
	t.Parallel()
	b, c, w := hides(t)
	b.end(w,
		Outcome{Failure: &Failure{Class: FailedForNow, Message: "no answer", Unsure: true}})
	b.read() // an empty list has a grace period
	b.pass(2 * time.Second)
	b.begin(w)
	b.end(w,
		Outcome{Failure: &Failure{Class: FailedForNow, Message: "slot 1 of the lock is empty"}})
	b.pass(time.Minute)
	b.read()
	b.pass(time.Minute)
	b.read()
	if b.external(c) {
		t.Errorf("the code was announced as deleted externally: %v", b.code(c.ID).Errors)
	}
	if w := b.work(c); w.Action != Put || !w.New || w.PIN != "4711" {
		t.Errorf("planned action %q, new: %v", w.Action, w.New)
	}
}

// Another code may take the slot before the next read.
func TestClearedSlot_TakenByAnotherCode(t *testing.T) {
	t.Parallel()
	b, c, w := hides(t)
	b.end(w,
		Outcome{Failure: &Failure{Class: FailedForNow, Message: "no answer", Unsure: true}})
	other, _ := b.create("8642")
	next := b.work(other)
	b.begin(next)
	b.place(next, "1")
	b.end(next, Outcome{Ref: "1", Confirmed: true})
	b.pass(time.Minute)
	b.read(found("1", ""))
	if b.external(c) {
		t.Errorf("the code was announced as deleted externally: %v", b.code(c.ID).Errors)
	}
	if w := b.work(c); w.Action != Put || !w.New {
		t.Errorf("planned action %q, new: %v", w.Action, w.New)
	}
	if got := b.code(other.ID); got.Status != StatusSet {
		t.Errorf("the other code: status %s", got.Status)
	}
}

// A deletion at the lock is announced, both after a successful change and after the lock has shown
// that the slot was not cleared.
func TestDeletedAtLock_HiddenPINIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Outcome{
		"the change is made":    {Ref: "1", Confirmed: true},
		"the change is refused": {Failure: &Failure{Class: FailedInvalid, Message: "not such a PIN"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, c, w := hides(t)
			b.end(w, o)
			b.pass(time.Minute)
			if o.Failure != nil {
				b.read(found("1", ""))
			} else {
				b.update(c, change{PIN: "4712"}) // no part of it was sent
			}
			b.read(found("9", ""))
			if !b.external(c) {
				t.Error("the deletion was not announced")
			}
		})
	}
}
