package zwavejs_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// newFamily has three users with one PIN each, in slots that differ from their numbers.
func newFamily() *household {
	return &household{
		users: map[int]string{1: "Ann", 2: "Ben", 3: "Cem"},
		held: map[credential]holding{
			{pinKind, 1}: {3, "135790"}, {pinKind, 2}: {1, "135791"},
			{pinKind, 3}: {2, "135792"},
		},
	}
}

var family = map[adapter.CodeRef]string{"1": "Cem", "2": "Ann", "3": "Ben"}

// If a response of the lock is lost, the gateway ends its list there without an error. A list that is incomplete
// after all attempts is rejected, including the first one.
func TestIncompleteListIsRejected(t *testing.T) {
	t.Parallel()
	for _, question := range []string{
		"user 1", "user 2", "user 3", "credential 1/1", "credential 1/2",
		"credential 1/3",
	} {
		for name, times := range map[string]int{"once": 1, "again and again": 1000} {
			t.Run(question+" "+name, func(t *testing.T) {
				t.Parallel()
				h, left := newFamily(), times
				h.lost = func(q string) bool {
					if q != question || left == 0 {
						return false
					}
					left--
					return true
				}
				s := play(t, nil, h.answer)
				codes, err := s.adapter.Codes(t.Context(), s.device, true)
				if times == 1 {
					if err != nil || codes.Stale || !maps.Equal(names(codes), family) {
						t.Fatalf("Codes: %v, %v", names(codes), err)
					}
					return
				}
				failsAs(t, err, adapter.Transient)
				if codes, err := s.adapter.Codes(t.Context(), s.device, false); err != nil || !codes.Stale {
					t.Fatalf("an incomplete list is accepted: %v, %v", names(codes), err)
				}
				if left < 990 {
					t.Fatalf("a lock that does not answer was read %d times", times-left)
				}
			})
		}
	}
}

// An unanswered slot is not free, even if the lock answers the next request.
func TestUnansweredSlotIsNotFree(t *testing.T) {
	t.Parallel()
	h, lost := newHousehold(), false
	h.lost = func(string) bool {
		was := lost
		lost = true
		return !was
	}
	s := play(t, nil, h.answer)
	result, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
	if err != nil || result.Ref != "2" {
		t.Fatalf("PutCode: %+v, %v", result, err)
	}
	h.lives(t, map[int]string{1: "Resident", 2: "Guest"}, map[credential]int{{pinKind, 1}: 1, {pinKind, 2}: 2})
}

// The lock names the next user, who may be deleted before the gateway reads it, which ends the gateway's list as
// well.
func TestListIsReadAgainAfterDeletion(t *testing.T) {
	t.Parallel()
	h, cut := newFamily(), false
	h.first = func(s *script, command string) string {
		if command != "get_all_credentials" || cut {
			return ""
		}
		cut = true
		h.mu.Lock()
		delete(h.users, 1)
		delete(h.held, credential{pinKind, 2})
		list := `{"credentials":[` + h.shown(credential{pinKind, 1}) + `]}`
		h.mu.Unlock()
		s.tell(fmt.Sprintf(userEvent, "user deleted", `{"userId":1}`))
		return list
	}
	s := play(t, nil, h.answer)
	if codes, err := s.adapter.Codes(t.Context(), s.device, true); err != nil || !codes.Stale {
		t.Fatalf("Codes: %v, %v, stale: %v", names(codes), err, codes.Stale)
	}
	codes, err := s.adapter.Codes(t.Context(), s.device, true)
	if err != nil || codes.Stale || !maps.Equal(names(codes), map[adapter.CodeRef]string{"1": "Cem", "3": "Ben"}) {
		t.Fatalf("Codes: %v, %v, stale: %v", names(codes), err, codes.Stale)
	}
}
