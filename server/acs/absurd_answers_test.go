package acs_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// An absurd value in any place of one vendor answer can be stored and deletes no user. The next
// correct answer restores the state.
func TestAbsurdAnswers_LoseNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	truth := fmt.Sprintf(`{"users":[{"user_id":"u1","external_id":%q,"full_name":"Jane Doe","group_ids":["g1"]},
		{"user_id":"u2","full_name":"Robin Hale","email":"robin@example.com","phone":"+1555","starts_at":"2026-01-01T00:00:00Z","ends_at":"2027-01-01T00:00:00Z","suspended":true,"group_ids":["g1"],"entrance_ids":["e1"]}],
		"groups":[{"group_id":"g1","name":"Everyone","entrance_ids":["e1"]}],"entrances":[{"entrance_id":"e1","name":"Door"}]}`, h.jane.ID)
	said := truth
	vendor := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, said) }),
	)
	t.Cleanup(vendor.Close)
	cloud := accesscloud.New(accesscloud.Config{BaseURL: vendor.URL})
	t.Cleanup(func() { cloud.Close() })
	record := func(twist string) (todo []acs.Write, read bool) {
		t.Helper()
		content, err := cloud.ReadSystem(t.Context(), "a")
		if err != nil {
			return nil, false
		}
		todo, _, err = h.s.RecordContent(
			t.Context(),
			alone{},
			h.system,
			foundUsers(content),
			foundGroups(content),
			foundEntrances(content),
		)
		if err != nil {
			t.Fatalf("%s: %v", twist, err)
		}
		return todo, true
	}
	n := 0
	for twist, twisted := range adaptertest.Twists(t, truth) {
		said = twisted
		todo, read := record(twist)
		for _, w := range todo {
			if w.Delete {
				t.Errorf("%s: planned deletion %+v", twist, w)
			}
		}
		if !read {
			continue
		}
		n++
		said = truth
		record("the truth after " + twist)
		var groups []string
		if err := h.db.Pool.QueryRow(t.Context(), "select group_refs from acs_users where acs_user_id = $1 and deleting_at is null", h.jane.ID).
			Scan(&groups); err != nil ||
			len(groups) != 1 {
			t.Errorf("after %s: groups %v: %v", twist, groups, err)
		}
	}
	if n < 50 {
		t.Errorf("only %d absurd answers were read", n)
	}
}

func foundUsers(c adapter.SystemContent) (all []acs.FoundUser) {
	for _, u := range c.Users {
		all = append(all, acs.FoundUser{Ref: string(u.Ref), Key: u.Key, Profile: acs.Profile{
			FullName:  u.FullName,
			Email:     u.Email,
			Phone:     u.Phone,
			StartsAt:  u.StartsAt,
			EndsAt:    u.EndsAt,
			Suspended: u.Suspended,
			Groups:    u.Groups,
			Entrances: u.Entrances,
		}})
	}
	return all
}

func foundGroups(c adapter.SystemContent) (all []acs.FoundGroup) {
	for _, g := range c.Groups {
		all = append(all, acs.FoundGroup{Ref: g.Ref, Name: g.Name, Entrances: g.Entrances})
	}
	return all
}

func foundEntrances(c adapter.SystemContent) (all []acs.FoundEntrance) {
	for _, e := range c.Entrances {
		all = append(all, acs.FoundEntrance{Ref: e.Ref, Name: e.Name})
	}
	return all
}
