package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A write refused because of other codes on the lock is retried when they change. Only the first
// refusal emits an event.
func TestRefusal_IsAnnouncedOncePerRequest(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	b.read(found("k1", "1010"))
	c, _ := b.create("2580")
	refuse := func() {
		t.Helper()
		w := b.work(c)
		if w.Action != access.Put {
			t.Fatalf("planned action %q", w.Action)
		}
		b.begin(w)
		b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedFull, Message: "the lock is full."}})
		clock.pass(time.Minute)
	}
	refuse()
	for _, pin := range []string{"1111", "2222", "3333"} {
		b.read(found("k1", pin))
		refuse()
	}
	const failed = "access_code.failed_to_set_on_device"
	if got := b.told(failed); len(got) != 1 {
		t.Errorf("%d events for the same refusal", len(got))
	}
	b.update(access.CodeChange{ID: c.ID.String(), Name: new("Friend")})
	refuse()
	if got := b.told(failed); len(got) != 2 {
		t.Errorf("%d events after another request", len(got))
	}
}

func TestFailure_IsAnnouncedOncePerRequest(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	c := b.on("2580", "k1")
	var want []string
	for _, name := range []string{"Friend", "Guest"} {
		b.update(access.CodeChange{ID: c.ID.String(), Name: &name})
		for range 6 {
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedForNow, Message: "busy."}})
			clock.pass(time.Hour)
		}
		want = append(want, "access_code.failed_to_update")
		if got := b.told("access_code.failed_to_update"); !slices.Equal(got, want) {
			t.Errorf("events %v", got)
		}
		if got := b.code(c.ID).Errors; len(got) != 1 || got[0].Code != "failed_to_update" {
			t.Errorf("errors %v", got)
		}
	}
}
