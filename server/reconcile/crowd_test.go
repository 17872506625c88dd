package reconcile_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// Changes of a code are refused if too many wait for an unreachable lock, because each look
// processes all of them. A removal is still possible.
func TestPendingChanges_AreBounded(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	c := b.set()
	found := b.unmanaged()[0].ID.String()
	b.control("POST", "offline", nil)
	b.until("the lock is offline", func() bool {
		d, err := b.access.GetDevice(t.Context(), b.p, b.device, "")
		b.must(err)
		return !d.Online
	})
	update := func(i int) error {
		_, err := b.access.UpdateCode(t.Context(), b.p,
			access.CodeChange{ID: c.ID.String(), PIN: fmt.Sprint(500000 + i), EvenIfOffline: true})
		return err
	}
	convert := func(int) error { _, err := b.access.ConvertCode(t.Context(), b.p, found, nil); return err }
	for what, ask := range map[string]func(int) error{"changes": update, "conversions": convert} {
		for i := range 20 {
			b.must(ask(i))
		}
		var e *access.Error
		if err := ask(20); !errors.As(err, &e) || e.Kind != access.TooMany || e.Type != "too_many_requests" {
			t.Errorf("with 20 pending %s: %v", what, err)
		}
	}
	removals := map[access.Attempt]int{}
	for range 30 {
		a, err := b.access.DeleteCode(t.Context(), b.p, c.ID.String(), "")
		b.must(err)
		removals[a]++
	}
	if len(removals) != 20 {
		t.Errorf("%d removal attempts", len(removals))
	}
	b.control("POST", "online", nil)
	for a := range removals {
		b.succeeded(a)
	}
	if b.onLock("500019") || b.onLock("2580") {
		t.Error("the code is still on the lock")
	}
}
