package acs_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// create creates a user that the system does not have yet.
func (h *house) create(name string) acs.User {
	h.Helper()
	u, err := h.s.CreateUser(h.Context(), h.p, acs.NewUser{SystemID: h.system.String(), FullName: name})
	if err != nil {
		h.Fatal(err)
	}
	return u
}

func (h *house) delete(u acs.User) {
	h.Helper()
	if err := h.s.DeleteUser(h.Context(), h.p, acs.UserName{UserID: u.ID.String()}); err != nil {
		h.Fatal(err)
	}
}

// written is a write that the system accepted.
func (h *house) written(w acs.Write, ref string) (look bool) {
	h.Helper()
	still, err := h.s.RecordWriteStarted(h.Context(), alone{}, h.system, w)
	if err == nil && still {
		look, err = h.s.RecordWritten(h.Context(), alone{}, h.system, w, ref)
	}
	if err != nil || !still {
		h.Fatal(still, err)
	}
	return look
}

// A vendor may reuse the reference of a deleted user. The new user must not be deleted.
func TestReusedReference_OfDeletedUser(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.delete(h.jane)
	joe := h.create("Joe")
	for _, w := range h.look(h.users) {
		ref := w.Ref
		if !w.Delete {
			ref = "u1"
		}
		if !h.written(w, ref) {
			t.Errorf("no look after %+v", w)
		}
	}
	h.users = []acs.FoundUser{{Ref: "u1", Key: joe.ID.String(), Profile: acs.Profile{FullName: "Joe"}}}
	for range 2 {
		h.now = h.now.Add(time.Minute)
		if todo := h.look(h.users); len(todo) != 0 {
			t.Fatalf("planned %+v", todo)
		}
	}
	left, _, err := h.s.ListUsers(t.Context(), h.p, acs.UserFilter{}, domain.Page{Limit: 10})
	if err != nil || len(left) != 1 || left[0].ID != joe.ID || len(left[0].Errors) != 0 || len(left[0].Pending) != 0 {
		t.Errorf("remaining users %+v: %v", left, err)
	}
}

// A user refused because the vendor takes it for another is tried again once the other is gone, for
// any reason.
func TestTakenForAnother_RetriedOnceOtherIsGone(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(h *house){
		"deleted here":          func(h *house) { h.delete(h.jane) },
		"deleted at the system": func(h *house) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			other := acs.FoundUser{
				Ref:     "u2",
				Profile: acs.Profile{FullName: "Robin Hale"},
			} // keeps the system from being empty
			h.users = append(h.users, other)
			h.create("Joe")
			todo := h.look(h.users)
			h.written(todo[0], "u1")
			if todo := h.look(h.users); len(todo) != 0 {
				t.Fatalf("refused: planned %+v", todo)
			}
			h.users = h.users[1:]
			leave(h)
			todo = h.look(h.users)
			if len(todo) != 1 || todo[0].Profile.FullName != "Joe" {
				t.Errorf("once the other user is gone: planned %+v", todo)
			}
		})
	}
}

// A user taken for one that is being deleted is not refused permanently.
func TestTakenForAnother_OtherIsBeingDeleted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.delete(h.jane)
	joe := h.create("Joe")
	for _, w := range h.look(h.users) {
		if !w.Delete {
			h.written(w, "u1")
		}
	}
	h.now = h.now.Add(5 * time.Minute)
	todo := h.look(h.users)
	if len(todo) != 2 || todo[1].UserID != joe.ID || todo[1].Ref != "" {
		t.Errorf("planned %+v", todo)
	}
}

// Our identifier on two users does not affect the one that is known by its reference.
func TestDuplicateKey_KnownReferenceCounts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	joe := h.create("Joe")
	h.users = append(h.users, acs.FoundUser{Ref: "u2", Key: joe.ID.String(), Profile: acs.Profile{FullName: "Joe"}})
	h.look(h.users)
	h.users[0].Key = joe.ID.String()
	h.settled("an identifier that stands twice")
}
