package lockstate

import (
	"slices"
	"testing"
	"time"
)

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
				c := b.onBetween("2580", b.now(), b.now().Add(time.Hour))
				b.read(append(shown, found("k1", ""))...)
				b.pass(time.Minute)
				leave(b, c)
				b.read(shown...)
				if len(b.managed()) != 1 {
					t.Fatal("the code counts as gone without a deletion")
				}
				w := b.work(c)
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

// A code removed in the vendor's app is gone, even if an expired subscription prevents writes to
// its lock.
func TestDeletedAtVendor_WhileWritesAreImpossible(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "r1")
	b.read(found("r1", "2580"), found("k9", "9999"))
	b.device.SubscriptionMissing = true
	b.deleteCode(c)
	b.read(found("k9", "9999"))
	if b.exists(c.ID) {
		t.Errorf("status %s", b.code(c.ID).Status)
	}
}

// A stale list shows neither the new write nor the code.
func TestStaleList_MissingCodeIsNotGone(t *testing.T) {
	t.Parallel()
	for name, confirmed := range map[string]bool{"accepted": false, "confirmed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Ref: "r1", Confirmed: confirmed})
			b.deleteCode(c)
			b.read()
			if w := b.work(c); w.Action != Delete || w.Ref != "r1" {
				t.Errorf("planned action %q of %q", w.Action, w.Ref)
			}
		})
	}
}

func TestStaleList_DoesNotUndoChange(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "r1")
	b.update(c, change{PIN: "2581", ExternalModificationAllowed: new(true)})
	b.set(c, "r1")
	b.read(found("r1", "2580"))
	if pin := b.code(c.ID).PIN; pin != "2581" {
		t.Errorf("the PIN is back at %s", pin)
	}
	if slices.Contains(b.events(c.ID), "access_code.modified_external_to_seam") {
		t.Error("a stale list counts as a change at the device")
	}
	if b.look().Due == nil {
		t.Error("no read is planned")
	}
}

// After a crash, only the name shows whether a rename arrived, because the PIN is the same.
func TestCrash_RenameIsRepeated(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "7")
	named := func(name string) Found {
		f := found("7", "2580")
		f.Name = name
		return f
	}
	b.update(c, change{Name: new("First")})
	first := b.work(c)
	b.begin(first)
	b.end(first, Outcome{Ref: "7", Confirmed: true})
	b.update(c, change{Name: new("Other")})
	b.begin(b.work(c))
	b.read(named("First"))
	w := b.work(c)
	if w.Action != Put || w.Ref != "7" {
		t.Fatalf("planned action %q of %q", w.Action, w.Ref)
	}
	b.begin(w)
	b.end(w, Outcome{Ref: "7"}) // accepted: it may take a while
	b.read(named("First"))
	if got := b.code(c.ID); got.Status == StatusSet {
		t.Error("the code is set with its old name")
	}
	b.read(named("Other"))
	if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// If a vendor accepts every change but keeps the first name, the server gives up after one retry.
func TestRename_VendorKeepsName(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "7")
	was := found("7", "2580")
	was.Name = "First"
	b.update(c, change{Name: new("First")})
	first := b.work(c)
	b.begin(first)
	b.end(first, Outcome{Ref: "7", Confirmed: true})
	b.update(c, change{Name: new("Other")})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "It is busy."}})
	b.begin(w)
	b.end(w, Outcome{Ref: "7"})
	b.read(was)
	if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// A list that may be out of date is read once more when it no longer is.
func TestStaleList_IsReadAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "r1")
	b.pass(time.Second)
	b.read(found("r9", "9999"))
	p := b.look()
	if p.ReadNeeded || p.Due == nil || !p.Due.Equal(b.code(c.ID).AppliedAt.Add(b.timeouts.ReadLag)) {
		t.Fatalf("read needed %t, due at %v", p.ReadNeeded, p.Due)
	}
	b.to(*p.Due)
	if p := b.look(); !p.ReadNeeded {
		t.Error("the list is not read again")
	}
}

// Only a write that changes the name waits for the name.
func TestRename_NotPartOfChange(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]string{"shown": "Guest", "not kept": "", "another, which the lock chose": "Code 1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			c, _, err := b.add(Code{PIN: "2580", Name: new("Guest")})
			b.must(err)
			b.set(c, "k1")
			b.update(c, change{PIN: "4711"})
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Ref: "k1"})
			is := found("k1", "4711")
			is.Name = shown
			b.read(is)
			if got := b.code(c.ID); got.Status != StatusSet || got.pending() {
				t.Errorf("status %s", got.Status)
			}
		})
	}
}
