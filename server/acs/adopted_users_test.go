package acs_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// robin is a user created at the system without our identifier, who was adopted and then deleted.
func (h *house) robin() acs.FoundUser {
	h.Helper()
	robin := acs.FoundUser{Ref: "u2", Profile: acs.Profile{FullName: "Robin Hale", Email: "robin@example.com"}}
	h.look(append(h.users, robin))
	i, err := h.s.CreateIdentity(h.Context(), h.p,
		acs.NewIdentity{Email: "robin@example.com", SystemIDs: []string{h.system.String()}})
	if err != nil || len(i.UserIDs) != 1 {
		h.Fatal(i, err)
	}
	h.delete(acs.User{ID: i.UserIDs[0]})
	return robin
}

// deletes asserts that the only planned write deletes the user.
func (h *house) deletes(ref, after string) {
	h.Helper()
	profile := acs.Profile{FullName: "Robin Hale", Email: "robin@example.com"}
	todo := h.look(append(h.users, acs.FoundUser{Ref: ref, Profile: profile}))
	if len(todo) != 1 || !todo[0].Delete || todo[0].Ref != ref {
		h.Errorf("after %s: planned %+v", after, todo)
	}
}

// A deleted adopted user is recognized without our identifier, even after a list that omitted it.
func TestAdoptedUser_DeletionSurvivesPartialList(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	robin := h.robin()
	h.look(h.users)
	h.deletes("u2", "a list without him")

	h.now = h.now.Add(time.Minute)
	robin.FullName = "Sam Okafor"
	if todo := h.look(append(h.users, robin)); len(todo) != 0 {
		t.Errorf("another user with the reference: planned %+v", todo)
	}
}

// A user that was created again later is unmanaged.
func TestAdoptedUser_RecreatedLaterIsUnmanaged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	robin := h.robin()
	h.look(h.users)
	h.now = h.now.Add(2 * time.Hour)
	if todo := h.look(append(h.users, robin)); len(todo) != 0 {
		t.Errorf("planned %+v", todo)
	}
}

// The same if the system was removed meanwhile, for any time.
func TestAdoptedUser_DeletionSurvivesRemovedSystem(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.robin()
	account := h.account()
	list := func(systems ...acs.FoundSystem) {
		t.Helper()
		if err := h.s.RecordSystems(t.Context(), alone{}, account, systems); err != nil {
			t.Fatal(err)
		}
	}
	list()
	h.now = h.now.Add(time.Minute)
	if _, again, err := h.s.RecordAbsent(t.Context(), alone{}, h.system); err != nil || again != 0 {
		t.Fatal(again, err)
	}
	h.now = h.now.Add(24 * time.Hour)
	list(acs.FoundSystem{Ref: "a", Name: "A", Online: true})
	h.users = nil
	h.deletes("u2", "the system was gone")
}
