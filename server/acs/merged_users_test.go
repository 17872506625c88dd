package acs_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// Some vendors identify people by address and return the same reference for two users with one
// address.

// robin keeps the system from being empty.
var robin = acs.FoundUser{Ref: "u9", Profile: acs.Profile{FullName: "Robin Hale"}}

// A stray that turns out to be the user that was just written is not deleted.
func TestStray_IsUserJustWritten(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.create("Joe")
	todo := h.look(append(h.users, h.stray()))
	if len(todo) != 2 || todo[0].Stray || !todo[1].Stray {
		t.Fatalf("planned %+v", todo)
	}
	h.written(todo[0], todo[1].Ref)
	if still, err := h.s.RecordWriteStarted(t.Context(), alone{}, h.system, todo[1]); err != nil || still {
		t.Errorf("deletion wanted: %v, %v", still, err)
	}
}

// A user refused because the system takes it for another does not replace the other.
func TestTakenForAnother_KeepsOtherUser(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	joe := h.create("Joe")
	h.written(h.look(append(h.users, robin))[0], "u1")
	overwritten := acs.FoundUser{Ref: "u1", Key: joe.ID.String(), Profile: acs.Profile{FullName: "Joe"}}
	for range 2 {
		for _, w := range h.look([]acs.FoundUser{overwritten, robin}) {
			if w.UserID != h.jane.ID || w.Delete || w.Ref != "u1" {
				t.Errorf("planned %+v", w)
			}
		}
	}
	jane, err := h.s.GetUser(t.Context(), h.p, acs.UserName{UserID: h.jane.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range jane.Errors {
		if e.Code == "deleted_externally" {
			t.Errorf("errors %v", jane.Errors)
		}
	}
}

// An existing user whose change made it look like another is refused once, not at each look.
func TestTakenForAnother_ChangeIsRefusedOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	joe := h.create("Joe")
	h.written(h.look(append(h.users, robin))[0], "u2")
	h.users = append(h.users, robin,
		acs.FoundUser{Ref: "u2", Key: joe.ID.String(), Profile: acs.Profile{FullName: "Joe"}})
	h.look(h.users)
	if err := h.s.UpdateUser(
		t.Context(),
		h.p,
		acs.UserName{UserID: joe.ID.String()},
		acs.UserChange{FullName: "Joseph"},
	); err != nil {
		t.Fatal(err)
	}
	h.written(h.look(h.users)[0], "u1")
	for range 2 {
		h.now = h.now.Add(time.Hour)
		if todo := h.look(h.users); len(todo) != 0 {
			t.Fatalf("planned %+v", todo)
		}
	}
}

// A user that an older server marked as deleted externally stays deleted, whatever a newer server
// had stored before.
func TestDeletedExternally_StaysDeletedAfterBlock(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	joe := h.create("Joe")
	h.written(h.look(append(h.users, robin))[0], "u1")
	_, err := h.db.Pool.Exec(t.Context(),
		"update acs_users set error_code = 'deleted_externally', error_message = '' where acs_user_id = $1", joe.ID)
	if err != nil {
		t.Fatal(err)
	}
	h.delete(h.jane)
	for _, w := range h.look([]acs.FoundUser{robin}) {
		if w.UserID == joe.ID {
			t.Errorf("planned %+v", w)
		}
	}
}

// Repeatedly failing deletions come after the other writes.
func TestWriteOrder_FailingDeletionsComeLast(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.delete(h.jane)
	for range 5 {
		todo := h.look(h.users)
		if len(todo) != 1 || !todo[0].Delete {
			t.Fatalf("planned %+v", todo)
		}
		if _, err := h.s.RecordFailure(
			t.Context(),
			alone{},
			h.system,
			todo[0],
			acs.Failure{Message: "no answer"},
		); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(time.Hour)
	}
	joe := h.create("Joe")
	todo := h.look(append(h.users, h.stray()))
	if len(todo) != 3 || todo[0].UserID != joe.ID || !todo[1].Deferred() || todo[1].Stray || !todo[2].Stray {
		t.Errorf("planned %+v", todo)
	}
}
