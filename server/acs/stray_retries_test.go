package acs_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// stray is an unwanted duplicate of Jane.
func (h *house) stray() acs.FoundUser {
	twin := h.users[0]
	twin.Ref = "late"
	return twin
}

// If a vendor accepts the deletion of a stray but keeps showing it, or fails to delete it, the
// retries back off. The system is not read again immediately for that.
func TestStray_DeletionBacksOff(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(h *house, w acs.Write) error{
		"taken": func(h *house, w acs.Write) error {
			look, err := h.s.RecordWritten(h.Context(), alone{}, h.system, w, "")
			if look {
				h.Error("the system is read again immediately")
			}
			return err
		},
		"refused": func(h *house, w acs.Write) error {
			_, err := h.s.RecordFailure(h.Context(), alone{}, h.system, w, acs.Failure{Message: "no"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			users := append(h.users, h.stray())
			var last time.Duration
			for range 12 {
				todo := h.look(users)
				if len(todo) != 1 || !todo[0].Stray || todo[0].Ref != "late" {
					t.Fatalf("planned %+v", todo)
				}
				if err := tell(h, todo[0]); err != nil {
					t.Fatal(err)
				}
				todo, wait, err := h.s.RecordContent(t.Context(), alone{}, h.system, users, h.groups, nil)
				if err != nil || len(todo) != 0 || wait < min(2*last, 5*time.Minute) || wait < time.Second ||
					wait > 5*time.Minute {
					t.Fatalf("after a pause of %s: planned %+v, next in %s: %v", last, todo, wait, err)
				}
				last, h.now = wait, h.now.Add(wait)
			}
		})
	}
}

// Strays come after known users.
func TestWriteOrder_StraysComeLast(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := h.s.SetSuspended(t.Context(), h.p, acs.UserName{UserID: h.jane.ID.String()}, true); err != nil {
		t.Fatal(err)
	}
	todo := h.look(append(h.users, h.stray()))
	if len(todo) != 2 || todo[0].Stray || !todo[1].Stray {
		t.Errorf("planned %+v", todo)
	}
}
