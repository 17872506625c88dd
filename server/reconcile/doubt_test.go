package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A write whose answer was lost may have arrived, whatever is said to the one after it, which it may itself stand in the way of.
func TestRefusalForgetsNoWriteInDoubt(t *testing.T) {
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
				b.begin(b.work(c)) // and no answer comes
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
					t.Fatal("the code counts as gone, though it may arrive any moment")
				}
				b.read(found("5", "2580"))
				if n := len(b.unmanaged()); n > 0 {
					t.Errorf("there are %d codes of somebody else's", n)
				}
				w = b.work(c)
				if deleted {
					if w.Action != access.Delete || w.Ref != "5" {
						t.Errorf("there is %q of %q to do", w.Action, w.Ref)
					}
				} else if got := b.code(c.ID); w.Action != access.Nothing || got.Status != access.StatusSet || len(got.Errors) > 0 {
					t.Errorf("there is %q to do, and it is %s with %v", w.Action, got.Status, got.Errors)
				}
			})
		}
	}
}

// But not for ever.
func TestRefusedCodeWhoseWriteHasNotShownIsNoLongerAwaited(t *testing.T) {
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
	b.read(found("5", "2580")) // typed in at the keypad
	if got := b.code(c.ID); got.OnDevice || len(b.unmanaged()) != 1 {
		t.Errorf("it is %s, beside %d codes of somebody else's", got.Status, len(b.unmanaged()))
	}
	if b.deleteCode(c); len(b.managed()) > 0 {
		t.Error("it is waited for before it is deleted")
	}
}
