package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// hides is a lock that hides its PINs. The place of one of its codes is being emptied, before another PIN is written.
func hides(t *testing.T) (byHand, *testClock, access.Code, access.CodeWork) {
	t.Helper()
	b, clock := timeBound(t, "smartthings")
	c := b.on("2580", "1")
	clock.pass(time.Hour) // a list that lags is over
	b.read(found("1", ""))
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "4711"})
	w := b.work(c)
	if w.Action != access.Put || w.Ref != "1" {
		t.Fatalf("there is %q to do at %q", w.Action, w.Ref)
	}
	b.begin(w)
	b.must(b.access.RecordPlace(t.Context(), holder{}, b.id(), w, w.Ref))
	return b, clock, c, w
}

// external says whether a code was told as deleted by somebody else.
func (b byHand) external(c access.Code) bool {
	b.Helper()
	for _, e := range b.code(c.ID).Errors {
		if e.Code == "conflicting_external_modification" {
			return true
		}
	}
	return countOf(b.events(c.ID), "access_code.deleted_external_to_seam") > 0
}

// A place that is emptied for another PIN, which then is not taken, is not told as the deed of somebody else.
func TestPlaceThatWasEmptiedForAnotherPINIsOurs(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*access.Failure{
		"a crash, or the lock is out of reach": nil,
		"in doubt":                             {Class: access.FailedForNow, Message: "no answer", Unsure: true},
		"refused":                              {Class: access.FailedDuplicate, Message: "the lock has this PIN already", ConflictRef: "9"},
		"refused for good":                     {Class: access.FailedInvalid, Message: "not such a PIN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock, c, w := hides(t)
			if o != nil {
				b.end(w, access.PutOutcome{Failure: o})
			}
			b.read(found("9", ""))
			clock.pass(time.Minute)
			if b.external(c) {
				t.Errorf("it is told as deleted by somebody else: %v", b.code(c.ID).Errors)
			}
			if n := countOf(b.events(c.ID), "access_code.removed_from_device"); n != 1 {
				t.Errorf("that it is not on the lock is told %d times", n)
			}
			if w := b.work(c); w.Action != access.Put || !w.New || w.PIN != "4711" {
				t.Errorf("there is %q to do, new: %v", w.Action, w.New)
			}
		})
	}
}

// It is tried again before the lock is believed that it has no code at all.
func TestPlaceThatWasEmptiedIsOursAlsoOnceItWasTriedAgain(t *testing.T) {
	t.Parallel()
	b, clock, c, w := hides(t)
	b.end(w,
		access.PutOutcome{Failure: &access.Failure{Class: access.FailedForNow, Message: "no answer", Unsure: true}})
	b.read() // nothing at all: that is doubted
	clock.pass(2 * time.Second)
	b.begin(w)
	b.end(w,
		access.PutOutcome{Failure: &access.Failure{Class: access.FailedForNow, Message: "slot 1 of the lock is empty"}})
	clock.pass(time.Minute)
	b.read()
	clock.pass(time.Minute)
	b.read()
	if b.external(c) {
		t.Errorf("it is told as deleted by somebody else: %v", b.code(c.ID).Errors)
	}
	if w := b.work(c); w.Action != access.Put || !w.New || w.PIN != "4711" {
		t.Errorf("there is %q to do, new: %v", w.Action, w.New)
	}
}

// The place may have been given to another code before the lock is read again.
func TestPlaceThatWasEmptiedAndTakenByAnotherIsOurs(t *testing.T) {
	t.Parallel()
	b, clock, c, w := hides(t)
	b.end(w,
		access.PutOutcome{Failure: &access.Failure{Class: access.FailedForNow, Message: "no answer", Unsure: true}})
	other, _ := b.create("8642")
	next := b.work(other)
	b.begin(next)
	b.must(b.access.RecordPlace(t.Context(), holder{}, b.id(), next, "1"))
	b.end(next, access.PutOutcome{Ref: "1", Confirmed: true})
	clock.pass(time.Minute)
	b.read(found("1", ""))
	if b.external(c) {
		t.Errorf("it is told as deleted by somebody else: %v", b.code(c.ID).Errors)
	}
	if w := b.work(c); w.Action != access.Put || !w.New {
		t.Errorf("there is %q to do, new: %v", w.Action, w.New)
	}
	if got := b.code(other.ID); got.Status != access.StatusSet {
		t.Errorf("the other one is %s", got.Status)
	}
}

// What somebody deletes at the lock is told as that: after the change was made, and after the lock has shown that its place was not emptied.
func TestCodeThatIsDeletedAtALockWhichHidesPINsIsTold(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]access.PutOutcome{
		"the change is made":    {Ref: "1", Confirmed: true},
		"the change is refused": {Failure: &access.Failure{Class: access.FailedInvalid, Message: "not such a PIN"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock, c, w := hides(t)
			b.end(w, o)
			clock.pass(time.Minute)
			if o.Failure != nil {
				b.read(found("1", ""))
			} else {
				b.update(access.CodeChange{ID: c.ID.String(), PIN: "4712"}) // nothing of which was sent
			}
			b.read(found("9", ""))
			if !b.external(c) {
				t.Error("it is not told")
			}
		})
	}
}
