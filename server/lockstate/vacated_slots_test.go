package lockstate

import (
	"testing"
	"time"
)

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
		"refused": {
			Class:       FailedDuplicate,
			Message:     "the lock has this PIN already",
			ConflictRef: "9",
		},
		"refused permanently": {Class: FailedInvalid, Message: "not such a PIN"},
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
