package acs_test

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// Who is to be kept out is not kept in by the imports of others: deletions come first, then suspensions, other changes, and new users.
func TestWhoIsToBeKeptOutComesFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.create("New")
	kim, joe := h.create("Kim"), h.create("Joe")
	for _, u := range []acs.User{kim, joe} {
		h.users = append(h.users, acs.FoundUser{Ref: u.FullName, Key: u.ID.String(), Profile: acs.Profile{FullName: u.FullName}})
	}
	h.look(h.users)
	err := h.s.UpdateUser(t.Context(), h.p, acs.UserName{UserID: h.jane.ID.String()}, acs.UserChange{FullName: "Jane Roe"})
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
		t.Errorf("in the order of %q, want %q", order, want)
	}
}
