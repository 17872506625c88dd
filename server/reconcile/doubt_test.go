package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A write whose answer was lost may have arrived. The refusal of its successor does not change
// that, because the first write may be the cause.
func TestUncertainWrite_SurvivesRefusal(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"deleted meanwhile": true, "wanted": false} {
		for what, f := range map[string]access.Failure{
			"has the PIN": {Class: access.FailedDuplicate, Message: "taken"},
			"is full":     {Class: access.FailedFull, Message: "no room"},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "smartthings")
				c, _ := b.create("2580")
				b.begin(b.work(c)) // the answer is lost
				b.read()
				w := b.work(c)
				b.begin(w)
				if deleted {
					b.deleteCode(c)
				}
				b.end(w, access.PutOutcome{Failure: &f})
				clock.pass(5 * time.Second)
				b.read()
				if len(b.managed()) != 1 {
					t.Fatal("the code counts as gone, although it may still arrive")
				}
				b.read(found("5", "2580"))
				if n := len(b.unmanaged()); n > 0 {
					t.Errorf("%d unmanaged codes", n)
				}
				w = b.work(c)
				if deleted {
					if w.Action != access.Delete || w.Ref != "5" {
						t.Errorf("planned action %q of %q", w.Action, w.Ref)
					}
				} else if got := b.code(c.ID); w.Action != access.Nothing || got.Status != access.StatusSet || len(got.Errors) > 0 {
					t.Errorf("planned action %q, status %s, errors %v", w.Action, got.Status, got.Errors)
				}
			})
		}
	}
}

// The uncertainty ends after a while.
func TestUncertainWrite_EndsAfterTimeout(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "smartthings")
	c, _ := b.create("2580")
	b.begin(b.work(c))
	b.read()
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedFull, Message: "no room"}})
	clock.pass(2 * time.Minute)
	b.read()
	b.read(found("5", "2580")) // entered at the keypad
	if got := b.code(c.ID); got.OnDevice || len(b.unmanaged()) != 1 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
	if b.deleteCode(c); len(b.managed()) > 0 {
		t.Error("the deletion waits for the uncertain write")
	}
}
