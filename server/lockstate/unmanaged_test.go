package lockstate

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// An unmanaged code is what the device shows.
func TestUnmanaged_FollowsDevice(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k1", "2580"))
	u := b.unmanaged()[0]
	is := Found{
		Ref:       "k1",
		PIN:       "4711",
		Name:      "Ga\x1bst",
		StartsAt:  new(b.now().Add(-time.Hour)),
		EndsAt:    new(time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)), // beyond the calendar
		Confirmed: true,
	}
	b.read(is)
	got := b.code(u.ID)
	if got.PIN != "4711" || domain.Value(got.Name) != "Gast" || !got.StartsAt.Equal(*is.StartsAt) ||
		got.EndsAt.Year() != 9999 {
		t.Errorf("named %q from %v to %v", domain.Value(got.Name), got.StartsAt, got.EndsAt)
	}
	b.read(found("k1", "4711"))
	if got := b.code(u.ID); got.Name != nil || got.StartsAt != nil || got.EndsAt != nil {
		t.Errorf("named %q from %v to %v", domain.Value(got.Name), got.StartsAt, got.EndsAt)
	}
}

// An account's inventory rate limit defers the codes that appear and leave, but not what follows for managed codes.
func TestUnmanaged_RateLimit(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	room := 2
	b.admits = func(n int) int { n = min(n, room); room -= n; return n }
	deferred := func(codes ...Found) (n int) {
		t.Helper()
		b.step(func(l *Lock) { n = l.Observe(Observation{Found: codes}) })
		return n
	}
	ours := b.on("2580", "k9")
	all := []Found{found("k1", "1111"), found("k2", "2222"), found("k3", "3333"), found("k9", "2580")}
	if n := deferred(all...); n != 1 || len(b.unmanaged()) != 2 {
		t.Errorf("%d deferred, %d stored", n, len(b.unmanaged()))
	}
	room = 1
	if n := deferred(all...); n != 0 || len(b.unmanaged()) != 3 {
		t.Errorf("%d deferred, %d stored", n, len(b.unmanaged()))
	}
	refused, _ := b.create("4711")
	w := b.work(refused)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "no room"}})
	room = 1
	if n := deferred(found("k9", "2580")); n != 2 || len(b.unmanaged()) != 2 {
		t.Errorf("%d deferred, %d stored", n, len(b.unmanaged()))
	}
	if w := b.work(refused); w.Action != Put {
		t.Errorf("planned action %q although codes have left", w.Action)
	}
	room = 2
	if n := deferred(found("k9", "2580")); n != 0 || len(b.unmanaged()) != 0 {
		t.Errorf("%d deferred, %d stored", n, len(b.unmanaged()))
	}
	if got := b.code(ours.ID); got.Status != StatusSet {
		t.Errorf("our code: status %s", got.Status)
	}
	for _, eventType := range []string{"access_code.unmanaged.created", "access_code.unmanaged.removed"} {
		if n := len(b.told(eventType)); n != 3 {
			t.Errorf("%s: %d events", eventType, n)
		}
	}
}
