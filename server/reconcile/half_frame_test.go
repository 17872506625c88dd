package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A vendor may list a code with only a start or an end. A change must complete or remove the time
// frame first, because a lock accepts no half of one.
func TestIncompleteTimeFrame_MustBeCompleted(t *testing.T) {
	t.Parallel()
	const starts, ends = "starts_at", "ends_at"
	for name, c := range map[string]struct {
		has     string // on the lock
		change  func(from, to string) access.CodeChange
		refused string // the field that is refused
		whole   bool   // expected afterwards
	}{
		"end, has a start":          {starts, func(_, to string) access.CodeChange { return access.CodeChange{EndsAt: to} }, "", true},
		"start, has an end":         {ends, func(from, _ string) access.CodeChange { return access.CodeChange{StartsAt: from} }, "", true},
		"both":                      {starts, func(from, to string) access.CodeChange { return access.CodeChange{StartsAt: from, EndsAt: to} }, "", true},
		"none":                      {starts, func(string, string) access.CodeChange { return access.CodeChange{Type: "ongoing"} }, "", false},
		"start, has a start":        {starts, func(from, _ string) access.CodeChange { return access.CodeChange{StartsAt: from} }, ends, false},
		"end, has an end":           {ends, func(_, to string) access.CodeChange { return access.CodeChange{EndsAt: to} }, starts, false},
		"name, has a start":         {starts, func(string, string) access.CodeChange { return access.CodeChange{Name: new("Friend")} }, ends, false},
		"PIN, has an end":           {ends, func(string, string) access.CodeChange { return access.CodeChange{PIN: "9988"} }, starts, false},
		"end and name, has a start": {starts, func(_, to string) access.CodeChange { return access.CodeChange{Name: new("Friend"), EndsAt: to} }, "", true},
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
				t.Error("a code with an incomplete time frame counts as ongoing")
			}
			_, err := b.access.ConvertCode(t.Context(), b.p, code.ID.String(), nil)
			b.must(err)
			b.read(f)
			ch := c.change(from.Format(time.RFC3339), to.Format(time.RFC3339))
			ch.ID = code.ID.String()
			a, err := b.access.UpdateCode(t.Context(), b.p, ch)
			if refused, ok := errors.AsType[*access.Error](err); c.refused != "" {
				if !ok || refused.Kind != access.Invalid || refused.Field != c.refused {
					t.Errorf("got %v", err)
				}
				if w := b.work(code); w.Action != access.Nothing {
					t.Errorf("planned action %q", w.Action)
				}
				return
			}
			b.must(err)
			w := b.work(code)
			if a.Status != access.Pending || w.Action != access.Put || (w.StartsAt != nil) != c.whole ||
				(w.EndsAt != nil) != c.whole {
				t.Fatalf("planned action %q, from %v to %v", w.Action, w.StartsAt, w.EndsAt)
			}
			if c.whole && (!w.StartsAt.Equal(from) || !w.EndsAt.Equal(to)) {
				t.Errorf("put from %v to %v", w.StartsAt, w.EndsAt)
			}
		})
	}
}
