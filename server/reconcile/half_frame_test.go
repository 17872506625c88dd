package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A vendor may list a code with one end of a time frame alone. The other is given, or both are taken away, before anything else of the
// code is changed: a lock takes no half of one.
func TestHalfATimeFrameIsMadeWholeBeforeACodeIsChanged(t *testing.T) {
	t.Parallel()
	const starts, ends = "starts_at", "ends_at"
	for name, c := range map[string]struct {
		has     string // on the lock
		change  func(from, to string) access.CodeChange
		refused string // for that field
		whole   bool   // afterwards
	}{
		"the end of one that has a start":     {starts, func(_, to string) access.CodeChange { return access.CodeChange{EndsAt: to} }, "", true},
		"the start of one that has an end":    {ends, func(from, _ string) access.CodeChange { return access.CodeChange{StartsAt: from} }, "", true},
		"both":                                {starts, func(from, to string) access.CodeChange { return access.CodeChange{StartsAt: from, EndsAt: to} }, "", true},
		"none":                                {starts, func(string, string) access.CodeChange { return access.CodeChange{Type: "ongoing"} }, "", false},
		"the start of one that has a start":   {starts, func(from, _ string) access.CodeChange { return access.CodeChange{StartsAt: from} }, ends, false},
		"the end of one that has an end":      {ends, func(_, to string) access.CodeChange { return access.CodeChange{EndsAt: to} }, starts, false},
		"another name of one with a start":    {starts, func(string, string) access.CodeChange { return access.CodeChange{Name: new("Friend")} }, ends, false},
		"another PIN of one that has an end":  {ends, func(string, string) access.CodeChange { return access.CodeChange{PIN: "9988"} }, starts, false},
		"the end, and another name, together": {starts, func(_, to string) access.CodeChange { return access.CodeChange{Name: new("Friend"), EndsAt: to} }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			from, to := clock.now().Add(-time.Hour), clock.now().Add(time.Hour)
			f := found("k1", "2580")
			if c.has == starts {
				f.StartsAt = &from
			} else {
				f.EndsAt = &to
			}
			b.read(f)
			code := b.unmanaged()[0]
			if !code.TimeBound() {
				t.Error("a code with half a time frame counts as ongoing")
			}
			_, err := b.access.ConvertCode(t.Context(), b.p, code.ID.String(), nil)
			b.must(err)
			b.read(f)
			ch := c.change(from.Format(time.RFC3339), to.Format(time.RFC3339))
			ch.ID = code.ID.String()
			a, err := b.access.UpdateCode(t.Context(), b.p, ch)
			if refused, ok := errors.AsType[*access.Error](err); c.refused != "" {
				if !ok || refused.Kind != access.Invalid || refused.Field != c.refused {
					t.Errorf("it is answered %v", err)
				}
				if w := b.work(code); w.Action != access.Nothing {
					t.Errorf("there is %q to do", w.Action)
				}
				return
			}
			b.must(err)
			w := b.work(code)
			if a.Status != access.Pending || w.Action != access.Put || (w.StartsAt != nil) != c.whole ||
				(w.EndsAt != nil) != c.whole {
				t.Fatalf("there is %q to do, from %v to %v", w.Action, w.StartsAt, w.EndsAt)
			}
			if c.whole && (!w.StartsAt.Equal(from) || !w.EndsAt.Equal(to)) {
				t.Errorf("it is put from %v to %v", w.StartsAt, w.EndsAt)
			}
		})
	}
}
