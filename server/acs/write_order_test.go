package acs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// Imports do not delay removals of access: deletions come first, then suspensions, other changes,
// and new users.
func TestWriteOrder_RemovalsOfAccessComeFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.create("New")
	kim, joe := h.create("Kim"), h.create("Joe")
	for _, u := range []acs.User{kim, joe} {
		h.users = append(h.users,
			acs.FoundUser{Ref: u.FullName, Key: u.ID.String(), Profile: acs.Profile{FullName: u.FullName}})
	}
	h.look(h.users)
	err := h.s.UpdateUser(t.Context(), h.p, acs.UserName{UserID: h.jane.ID.String()},
		acs.UserChange{FullName: "Jane Roe"})
	if err == nil {
		err = h.s.SetSuspended(t.Context(), h.p, acs.UserName{UserID: kim.ID.String()}, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.delete(joe)
	var order []string
	for _, w := range h.look(append(h.users, h.stray())) {
		order = append(order, w.Ref)
	}
	if want := []string{"Joe", "Kim", "u1", "", "late"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}

// The same for reductions of access by a group or a time.
func TestWriteOrder_ReductionsPrecedeOtherChanges(t *testing.T) {
	t.Parallel()
	const starts, ends = 24 * time.Hour, 48 * time.Hour // relative to now, on the system
	change := func(starts, ends time.Duration) func(*house, acs.UserName) error {
		return func(h *house, u acs.UserName) error {
			schedule := acs.NewSchedule{StartsAt: h.now.Add(starts).Format(time.RFC3339)}
			if ends > 0 {
				schedule.EndsAt = h.now.Add(ends).Format(time.RFC3339)
			}
			return h.s.UpdateUser(h.Context(), h.p, u, acs.UserChange{ScheduleGiven: true, Schedule: &schedule})
		}
	}
	for name, c := range map[string]struct {
		change func(*house, acs.UserName) error
		first  bool
	}{
		"a group less":          {func(h *house, u acs.UserName) error { return h.s.RevokeAllEntrances(h.Context(), h.p, u) }, true},
		"another group instead": {func(h *house, u acs.UserName) error { return h.moves(u, "g1", "g2") }, true},
		"an earlier end":        {change(starts, ends-time.Hour), true},
		"a later start":         {change(starts+time.Hour, ends), true},
		"a group more":          {func(h *house, u acs.UserName) error { return h.moves(u, "", "g2") }, false},
		"a later end":           {change(starts, ends+time.Hour), false},
		"no end":                {change(starts, 0), false},
		"an earlier start":      {change(starts-time.Hour, ends), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.now = h.now.Truncate(time.Second)
			kim := h.create("Kim")
			u := acs.UserName{UserID: kim.ID.String()}
			if err := change(starts, ends)(h, u); err != nil {
				t.Fatal(err)
			}
			if err := h.moves(u, "", "g1"); err != nil {
				t.Fatal(err)
			}
			from, until := h.now.Add(starts), h.now.Add(ends)
			h.users = append(h.users, acs.FoundUser{Ref: "u2", Key: kim.ID.String(), Profile: acs.Profile{
				FullName: "Kim",
				StartsAt: &from,
				EndsAt:   &until,
				Groups:   []string{"g1"},
			}})
			h.settled("all writes")
			if err := h.s.UpdateUser(
				t.Context(),
				h.p,
				acs.UserName{UserID: h.jane.ID.String()},
				acs.UserChange{FullName: "Jane Roe"},
			); err != nil {
				t.Fatal(err)
			}
			if err := c.change(h, u); err != nil {
				t.Fatal(err)
			}
			todo := h.look(h.users)
			if len(todo) != 2 || todo[0].UserID == kim.ID != c.first {
				t.Errorf("order %+v", todo)
			}
		})
	}
}

// moves moves a user between groups. Empty names mean none.
func (h *house) moves(u acs.UserName, from, to string) error {
	groups := map[string]uuid.UUID{}
	all, err := h.s.ListGroups(h.Context(), h.p, acs.GroupFilter{SystemID: h.system.String()})
	if err != nil {
		return err
	}
	for _, g := range all {
		groups[map[string]string{"Everyone": "g1", "Staff": "g2"}[g.Name]] = g.ID
	}
	if from != "" {
		err = h.s.RemoveFromGroup(h.Context(), h.p, u, groups[from].String())
	}
	if err == nil {
		err = h.s.AddToGroup(h.Context(), h.p, u, groups[to].String())
	}
	return err
}
