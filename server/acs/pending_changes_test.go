package acs_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// A change that is taken back while it is being written is pending until the system has the last state, because the
// write in flight still arrives.
func TestPendingChanges_RevertedDuringWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change, revert func(*house, acs.UserName) error
	}{
		"group": {
			func(h *house, u acs.UserName) error { return h.moves(u, "", "g2") },
			func(h *house, u acs.UserName) error { return h.moves(u, "g2", "g1") },
		},
		"suspension": {
			func(h *house, u acs.UserName) error { return h.s.SetSuspended(h.Context(), h.p, u, true) },
			func(h *house, u acs.UserName) error { return h.s.SetSuspended(h.Context(), h.p, u, false) },
		},
		"name": {
			func(h *house, u acs.UserName) error {
				return h.s.UpdateUser(h.Context(), h.p, u, acs.UserChange{FullName: "Jane Roe"})
			},
			func(h *house, u acs.UserName) error {
				return h.s.UpdateUser(h.Context(), h.p, u, acs.UserChange{FullName: "Jane Doe"})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			jane := acs.UserName{UserID: h.jane.ID.String()}
			h.settled("creation")
			h.isPending(false, "settled")
			h.must(c.change(h, jane))
			todo := h.look(h.users)
			if len(todo) != 1 {
				t.Fatalf("planned %+v", todo)
			}
			if still, err := h.s.RecordWriteStarted(t.Context(), alone{}, h.system, todo[0]); err != nil || !still {
				t.Fatalf("write wanted %t: %v", still, err)
			}
			h.must(c.revert(h, jane))
			h.isPending(true, "the write of the change is under way")
			_, err := h.s.RecordWritten(t.Context(), alone{}, h.system, todo[0], "u1")
			h.must(err)
			h.isPending(true, "the system has the change")
			h.settled("the repair")
			h.isPending(false, "the repair")
		})
	}
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// isPending asserts whether Jane has pending changes.
func (h *house) isPending(want bool, when string) {
	h.Helper()
	u, err := h.s.GetUser(h.Context(), h.p, acs.UserName{UserID: h.jane.ID.String()})
	h.must(err)
	if (len(u.Pending) > 0) != want {
		h.Errorf("%s: pending %+v", when, u.Pending)
	}
}
