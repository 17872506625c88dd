package acs_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// robin is somebody who was made at the system, without an identifier of ours, and was taken over and deleted since.
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

// deletes checks that somebody is to be taken from the system, and nobody else.
func (h *house) deletes(ref, after string) {
	h.Helper()
	if todo := h.look(append(h.users, acs.FoundUser{Ref: ref, Profile: acs.Profile{FullName: "Robin Hale", Email: "robin@example.com"}})); len(
		todo,
	) != 1 ||
		!todo[0].Delete ||
		todo[0].Ref != ref {
		h.Errorf("after %s there is to do: %+v", after, todo)
	}
}

// Whoever was taken over and deleted is known without an identifier of ours, too, when one list did not show it.
func TestDeletionOfOneWhoWasTakenOverOutlivesAPartialList(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	robin := h.robin()
	h.look(h.users)
	h.deletes("u2", "a list without him")

	h.now = h.now.Add(time.Minute)
	robin.FullName = "Sam Okafor"
	if todo := h.look(append(h.users, robin)); len(todo) != 0 {
		t.Errorf("of another who has got his reference there is to do: %+v", todo)
	}
}

// Whoever somebody has put there again later is somebody else's user.
func TestOneWhoIsPutThereAgainLaterIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	robin := h.robin()
	h.look(h.users)
	h.now = h.now.Add(2 * time.Hour)
	if todo := h.look(append(h.users, robin)); len(todo) != 0 {
		t.Errorf("there is to do: %+v", todo)
	}
}

// The same when the system was gone meanwhile, for however long.
func TestDeletionOfOneWhoWasTakenOverOutlivesASystemThatIsGone(t *testing.T) {
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
