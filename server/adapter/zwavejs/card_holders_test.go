package zwavejs_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// tellOfCard sends the events of a new user with a card.
func tellOfCard(s *script, user int) {
	s.tell(fmt.Sprintf(userEvent, "user added", fmt.Sprintf(`{"userId":%d,"active":true,"userType":0}`, user)))
	s.tell(fmt.Sprintf(userEvent, "credential added",
		fmt.Sprintf(`{"userId":%d,"credentialType":3,"credentialSlot":1}`, user)))
}

// A user without a PIN who was enrolled after the read gets no PIN, and is neither renamed nor deleted, even if no
// event was sent.
func TestCardHolderIsUnchanged(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHousehold()
			s := play(t, nil, h.answer)
			if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
				t.Fatal(err)
			}
			h.enroll(2, "Cleaner")
			if told {
				tellOfCard(s, 2)
			}
			var places []adapter.CodeRef
			put := spec("k", "864209")
			put.OnPlace = func(_ context.Context,
				code adapter.CodeRef,
			) error {
				places = append(places, code)
				return nil
			}
			result, err := s.adapter.PutCode(t.Context(), s.device, put)
			if err != nil || result.Ref != "3" || places[len(places)-1] != "3" {
				t.Fatalf("PutCode: %+v, %v, placed at %v", result, err, places)
			}
			if told && len(places) != 1 {
				t.Fatalf("the event is ignored: it was tried at %v", places)
			}
			h.lives(t, map[int]string{1: "Resident", 2: "Cleaner", 3: "Guest"},
				map[credential]int{{pinKind, 1}: 1, {cardKind, 1}: 2, {pinKind, 3}: 3})
			for _, code := range []adapter.CodeRef{"2", "3"} {
				if _, err := s.adapter.DeleteCode(t.Context(), s.device, code); err != nil {
					t.Fatal(err)
				}
			}
			h.lives(t, map[int]string{1: "Resident", 2: "Cleaner"},
				map[credential]int{{pinKind, 1}: 1, {cardKind, 1}: 2})
		})
	}
}

// A user who got a card in addition to the PIN after the read keeps it.
func TestCardSurvivesDeletedPIN(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHousehold()
			s := play(t, nil, h.answer)
			if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
				t.Fatal(err)
			}
			result, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
			if err != nil || result.Ref != "2" {
				t.Fatalf("PutCode: %+v, %v", result, err)
			}
			h.enroll(2, "Guest")
			if told {
				tellOfCard(s, 2)
			}
			if _, err := s.adapter.DeleteCode(t.Context(), s.device, "2"); err != nil {
				t.Fatal(err)
			}
			h.lives(t, map[int]string{1: "Resident", 2: "Guest"}, map[credential]int{{pinKind, 1}: 1, {cardKind, 1}: 2})
			if result, err := s.adapter.PutCode(t.Context(), s.device, spec("other", "864201")); err != nil ||
				result.Ref != "3" {
				t.Fatalf("PutCode of another: %+v, %v", result, err)
			}
		})
	}
}

// A user who was created for a rejected PIN is deleted, unless the user got a card meanwhile.
func TestRefusedPINDeletesOnlyItsUser(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, meanwhile int // enrolled with a card without an event; 0: none
		users             map[int]string
	}{
		"no other user":                  {0, 0, map[int]string{1: "Resident"}},
		"a card holder of its number":    {2, 0, map[int]string{1: "Resident", 2: "Cleaner"}},
		"its user was just given a card": {0, 2, map[int]string{1: "Resident", 2: "Cleaner"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHousehold()
			h.first = func(_ *script, command string) string {
				if command == "set_credential" && test.meanwhile != 0 {
					h.enroll(test.meanwhile, "Cleaner")
				}
				return ""
			}
			s := play(t, nil, h.answer)
			if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
				t.Fatal(err)
			}
			held := map[credential]int{{pinKind, 1}: 1}
			if test.before != 0 {
				h.enroll(test.before, "Cleaner")
			}
			if user := test.before + test.meanwhile; user != 0 {
				held[credential{cardKind, 1}] = user
			}
			_, err := s.adapter.PutCode(t.Context(), s.device, spec("k", residentPIN))
			if e := failsAs(t, err, adapter.Duplicate); e.Conflict != "1" {
				t.Fatalf("the conflict is with %q", e.Conflict)
			}
			h.lives(t, test.users, held)
		})
	}
}

// A user whose PIN did not arrive is reused, and no second user is created.
func TestUserOfFailedPutIsReused(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]bool{"at once": false, "after a read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHousehold()
			failed := false
			h.first = func(s *script, command string) string {
				if command != "set_credential" || failed {
					return ""
				}
				failed = true
				s.tell(fmt.Sprintf(userEvent, "user added", `{"userId":2,"active":true,"userType":0}`))
				return fmt.Sprintf(lockedOut, 204, "Controller_CallbackNOK")
			}
			s := play(t, nil, h.answer)
			_, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
			failsAs(t, err, adapter.Offline)
			if read {
				if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
					t.Fatal(err)
				}
			}
			if result, err := s.adapter.PutCode(t.Context(), s.device, spec("other", "864201")); err != nil ||
				result.Ref != "2" {
				t.Fatalf("PutCode: %+v, %v", result, err)
			}
			h.lives(t, map[int]string{1: "Resident", 2: "Guest"}, map[credential]int{{pinKind, 1}: 1, {pinKind, 2}: 2})
		})
	}
}

// A user is deleted with the PIN, for which the gateway sends no separate event; all users may be deleted at the same
// time.
func TestDeletedUsersAreDetected(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]string{
		"the user":  fmt.Sprintf(userEvent, "user deleted", `{"userId":1}`),
		"all users": fmt.Sprintf(userEvent, "user deleted", `{"userId":0}`),
		"the user's PINs": fmt.Sprintf(userEvent, "credential deleted",
			`{"userId":1,"credentialType":1,"credentialSlot":0}`),
		"all credentials": fmt.Sprintf(userEvent, "credential deleted",
			`{"userId":0,"credentialType":0,"credentialSlot":0}`),
		"the PIN in a slot": fmt.Sprintf(userEvent, "credential deleted",
			`{"userId":1,"credentialType":1,"credentialSlot":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHousehold()
			s := play(t, nil, h.answer)
			codes, err := s.adapter.Codes(t.Context(), s.device, true)
			if err != nil || !maps.Equal(names(codes), map[adapter.CodeRef]string{"1": "Resident"}) {
				t.Fatalf("Codes: %v, %v", names(codes), err)
			}
			h.mu.Lock()
			clear(h.users)
			clear(h.held)
			h.mu.Unlock()
			s.tell(event)
			if codes, err = s.adapter.Codes(t.Context(), s.device, true); err != nil || len(codes.Codes) != 0 {
				t.Fatalf("Codes: %v, %v", names(codes), err)
			}
			if result, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209")); err != nil ||
				result.Ref != "1" {
				t.Fatalf("PutCode: %+v, %v", result, err)
			}
		})
	}
}
