package acs_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// withEntrances adds two entrances to the system and returns their identifiers.
func (h *house) withEntrances() (ids []string) {
	h.Helper()
	h.entrances = []acs.FoundEntrance{{Ref: "e1", Name: "Door"}, {Ref: "e2", Name: "Gate"}}
	h.look(h.users)
	all, _, err := h.s.ListEntrances(h.Context(), h.p, acs.EntranceFilter{}, domain.Page{Limit: 10})
	if err != nil || len(all) != 2 {
		h.Fatal(all, err)
	}
	for _, e := range all {
		ids = append(ids, e.ID.String())
	}
	return ids
}

func (h *house) grant(name acs.UserName, entrance string) {
	h.Helper()
	if err := h.s.GrantAccess(h.Context(), h.p, name, entrance); err != nil {
		h.Fatal(err)
	}
}

// shows sets the entrances that the system shows for Jane.
func (h *house) shows(entrances ...string) {
	h.users = slices.Clone(h.users)
	h.users[0].Entrances = entrances
}

// passes returns the names of the entrances that a user may pass.
func (h *house) passes(name acs.UserName) (names []string) {
	h.Helper()
	all, err := h.s.EntrancesOfUser(h.Context(), h.p, name)
	if err != nil {
		h.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names
}

// A look after a crash decides by what the system shows whether the grant must be written.
func TestEntranceGrant_WrittenUnlessShown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	jane := acs.UserName{UserID: h.jane.ID.String()}
	ids := h.withEntrances()
	h.grant(jane, ids[0])
	for _, c := range []struct {
		name      string
		shows     []string
		writes    bool
		restricts bool
	}{
		{name: "not written", writes: true},
		{name: "answer lost", shows: []string{"e1"}},
		{name: "shown twice", shows: []string{"e1", "e1"}},
		{name: "more than granted", shows: []string{"e1", "e2"}, writes: true, restricts: true},
		{name: "another one", shows: []string{"e2"}, writes: true, restricts: true},
		{name: "taken away at the system", writes: true},
	} {
		h.now = h.now.Add(3 * time.Hour) // no dispute
		h.shows(c.shows...)
		todo := h.look(h.users)
		if (len(todo) == 1) != c.writes || c.writes && (todo[0].Ref != "u1" || todo[0].Restricts != c.restricts ||
			!slices.Equal(todo[0].Profile.Entrances, []string{"e1"})) {
			t.Errorf("%s: planned %+v", c.name, todo)
		}
		if got := h.passes(jane); !slices.Equal(got, []string{"Door"}) {
			t.Errorf("%s: passes %v", c.name, got)
		}
	}
}

// A grant ends with its entrance, but not when the entrance is missing for a moment.
func TestEntranceGrant_EndsWithEntrance(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	jane := acs.UserName{UserID: h.jane.ID.String()}
	ids := h.withEntrances()
	h.grant(jane, ids[0])
	h.grant(jane, ids[1])
	h.shows("e1", "e2")
	h.look(h.users)
	missing := func(entrances []acs.FoundEntrance) (later time.Duration) {
		t.Helper()
		todo, later, err := h.s.RecordContent(t.Context(), alone{}, h.system, h.users, h.groups, entrances)
		if err != nil || len(todo) != 0 {
			t.Fatalf("planned %+v: %v", todo, err)
		}
		return later
	}
	for name, entrances := range map[string][]acs.FoundEntrance{"all": nil, "one": h.entrances[1:]} {
		if wait := missing(entrances); wait != 15*time.Second {
			t.Errorf("%s missing: grace left %s", name, wait)
		}
		if todo := h.look(h.users); len(todo) != 0 || len(h.passes(jane)) != 2 {
			t.Errorf("%s missing for a moment: planned %+v, passes %v", name, todo, h.passes(jane))
		}
	}
	h.entrances = h.entrances[1:]
	missing(h.entrances)
	h.now = h.now.Add(time.Minute)
	h.shows("e2")
	if todo := h.look(h.users); len(todo) != 0 || !slices.Equal(h.passes(jane), []string{"Gate"}) {
		t.Errorf("deleted: planned %+v, passes %v", todo, h.passes(jane))
	}
	if err := h.s.RevokeAllEntrances(t.Context(), h.p, jane); err != nil {
		t.Fatal(err)
	}
	todo := h.look(h.users)
	if len(todo) != 1 || !todo[0].Restricts || len(todo[0].Profile.Entrances)+len(todo[0].Profile.Groups) != 0 {
		t.Errorf("revoked: planned %+v", todo)
	}
}

// An adopted user keeps the entrances that it had at the system.
func TestEntranceGrant_AdoptedUserKeepsEntrances(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ids := h.withEntrances()
	found := acs.FoundUser{
		Ref: "u2", Profile: acs.Profile{
			FullName:  "Robin Hale",
			Email:     "robin@example.com",
			Groups:    []string{"g2"},
			Entrances: []string{"e1"},
		},
	}
	users := append(h.users, found)
	h.look(users)
	i, err := h.s.CreateIdentity(t.Context(), h.p, acs.NewIdentity{Email: "robin@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	name := acs.UserName{IdentityID: i.ID.String()}
	h.grant(name, ids[1])
	h.grant(name, ids[1]) // again
	if got := h.passes(name); !slices.Equal(got, []string{"Door", "Gate"}) {
		t.Errorf("passes %v", got)
	}
	todo := h.look(users)
	if len(todo) != 1 || !slices.Equal(todo[0].Profile.Entrances, []string{"e1", "e2"}) ||
		!slices.Equal(todo[0].Profile.Groups, []string{"g2"}) || todo[0].Restricts {
		t.Errorf("planned %+v", todo)
	}
}

// Two grants at the same moment create one user.
func TestEntranceGrant_ConcurrentGrantsToPerson(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ids := h.withEntrances()
	i, err := h.s.CreateIdentity(t.Context(), h.p, acs.NewIdentity{FullName: "Jo Nyberg"})
	if err != nil {
		t.Fatal(err)
	}
	name := acs.UserName{IdentityID: i.ID.String()}
	failed := make(chan error)
	for n := range 8 {
		go func() { failed <- h.s.GrantAccess(t.Context(), h.p, name, ids[n%2]) }()
	}
	for range 8 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if got := h.passes(name); !slices.Equal(got, []string{"Door", "Gate"}) {
		t.Errorf("passes %v", got)
	}
}

func TestEntranceGrant_Maximum(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ids := h.withEntrances()
	_, err := h.db.Pool.Exec(t.Context(), `update acs_users set entrance_refs =
		array(select n::text from generate_series(1, 1000) n) where acs_user_id = $1`, h.jane.ID)
	if err != nil {
		t.Fatal(err)
	}
	err = h.s.GrantAccess(t.Context(), h.p, acs.UserName{UserID: h.jane.ID.String()}, ids[0])
	if e, ok := errors.AsType[*domain.Error](err); !ok || e.Kind != domain.Invalid || e.Field != "acs_entrance_id" {
		t.Errorf("entrance 1001: %v", err)
	}
}
