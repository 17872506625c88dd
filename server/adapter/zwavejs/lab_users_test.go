package zwavejs_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	lab "github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
)

// give enrolls a card for a user at the lock. If the lock reports it, give returns after the event.
func (h *house) give(t *testing.T, user int, name string, told bool) {
	t.Helper()
	if !told {
		h.CardSilently(t, user, name)
		return
	}
	h.Card(t, user, name)
	h.ByHand(t, true) // reported after the card
	for deadline := time.After(within); ; {
		select {
		case e := <-h.adapter.Events():
			if e.Kind == adapter.LockOperated && e.Device == h.device {
				return
			}
		case <-deadline:
			t.Fatalf("after %s, the change by hand is not reported", within)
		}
	}
}

// lives requires that the lock has exactly these users, with these PINs and cards by slot.
func (h *house) lives(t *testing.T, users, pins map[int]string, cards map[int]int) {
	t.Helper()
	state := h.State(t)
	has := map[int]string{}
	for slot, code := range state.Codes {
		has[slot] = code.PIN
	}
	if !maps.Equal(state.Users, users) || !maps.Equal(has, pins) || !maps.Equal(state.Cards, cards) {
		t.Fatalf("the lock has the users %v with PINs in %v and cards %v", state.Users, state.InUse(), state.Cards)
	}
}

// resident returns a lock with one user with a PIN, and an adapter that has read it.
func resident(t *testing.T) *house {
	t.Helper()
	h := sharedHouse(t, lab.Users)
	h.ProgramSilently(t, 1, residentPIN)
	codes, err := h.adapter.Codes(t.Context(), h.device, true)
	if err != nil || len(codes.Codes) != 1 {
		t.Fatalf("%d codes, %v", len(codes.Codes), err)
	}
	return h
}

// Like TestCardHolderIsUnchanged, also with a PIN that the lock rejects.
func TestRealCardHolderIsUnchanged(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := resident(t)
			h.give(t, 2, "Cleaner", told)
			_, err := h.adapter.PutCode(t.Context(), h.device, spec("refused", residentPIN))
			if e := failsAs(t, err, adapter.Duplicate); e.Conflict != "1" {
				t.Fatalf("the conflict is with %q", e.Conflict)
			}
			others, cards := map[int]string{1: "", 2: "Cleaner"}, map[int]int{2: 2}
			h.lives(t, others, map[int]string{1: residentPIN}, cards)

			result, err := h.adapter.PutCode(t.Context(), h.device, spec("k", "864209"))
			if err != nil || result.Ref != "3" {
				t.Fatalf("PutCode: %+v, %v", result, err)
			}
			h.lives(t, map[int]string{1: "", 2: "Cleaner", 3: "Guest"}, map[int]string{1: residentPIN, 3: "864209"},
				cards)
			for _, code := range []adapter.CodeRef{"2", "3"} {
				if _, err := h.adapter.DeleteCode(t.Context(), h.device, code); err != nil {
					t.Fatal(err)
				}
			}
			h.lives(t, others, map[int]string{1: residentPIN}, cards)
		})
	}
}

// A new code does not use the number of a reported user. The lock rejects the number of an unreported one.
func TestRealReportedCardHolderIsKnown(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := resident(t)
			h.give(t, 2, "Cleaner", told)
			var places []adapter.CodeRef
			put := spec("k", "864209")
			put.OnPlace = func(_ context.Context,
				code adapter.CodeRef,
			) error {
				places = append(places, code)
				return nil
			}
			if _, err := h.adapter.PutCode(t.Context(), h.device, put); err != nil {
				t.Fatal(err)
			}
			want := []adapter.CodeRef{"2", "3"}
			if told {
				want = want[1:]
			}
			if !slices.Equal(places, want) {
				t.Fatalf("it was tried at %v, not at %v", places, want)
			}
		})
	}
}

// Like TestCardSurvivesDeletedPIN.
func TestRealCardSurvivesDeletedPIN(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := resident(t)
			result, err := h.adapter.PutCode(t.Context(), h.device, spec("k", "864209"))
			if err != nil || result.Ref != "2" {
				t.Fatalf("PutCode: %+v, %v", result, err)
			}
			h.give(t, 2, "", told)
			if _, err := h.adapter.DeleteCode(t.Context(), h.device, "2"); err != nil {
				t.Fatal(err)
			}
			h.lives(t, map[int]string{1: "", 2: "Guest"}, map[int]string{1: residentPIN}, map[int]int{2: 2})
		})
	}
}

// If any response of the lock is lost, the gateway ends its list there. The list is read again, and rejected if that
// fails as well. The gateway waits 5 s for each response.
func TestRealIncompleteListIsRejected(t *testing.T) {
	t.Parallel()
	g := lab.Start(t, lab.Users) // other tests would wait as well
	h := newHouse(t, g.Lease(t, lab.Users), g.URL)
	pins := map[adapter.CodeRef]string{"1": "135790", "2": "135791", "3": "135792"}
	people := map[adapter.CodeRef]string{"1": "Ann", "2": "Ben", "3": "Cem"}
	for _, code := range slices.Sorted(maps.Keys(people)) {
		put := spec("k"+string(code), pins[code])
		put.Name = people[code]
		if result, err := h.adapter.PutCode(t.Context(), h.device, put); err != nil || result.Ref != code {
			t.Fatalf("PutCode: %+v, %v", result, err)
		}
	}
	// shows returns what a new adapter reads from the lock, and the number of requests.
	shows := func(f lab.Faults) (codes adapter.Codes, asked int, err error) {
		_ = h.adapter.Close()
		h.open(t)
		h.Fault(t, f)
		before := h.State(t).Frames
		codes, err = h.adapter.Codes(t.Context(), h.device, true)
		return codes, h.State(t).Frames - before, err
	}
	codes, all, err := shows(lab.Faults{})
	if err != nil || !maps.Equal(names(codes), people) {
		t.Fatalf("Codes: %v, %v", names(codes), err)
	}
	for after := range 2 * len(people) { // users, and their PINs
		codes, asked, err := shows(lab.Faults{Mute: 1, After: after})
		if err != nil || codes.Stale || !maps.Equal(names(codes), people) {
			t.Errorf("response %d was lost: %v, %v", after, names(codes), err)
		}
		if asked <= all {
			t.Errorf("response %d was lost, with %d requests, all are %d", after, asked, all)
		}
	}
	_, _, err = shows(lab.Faults{Mute: 1000, After: 2})
	failsAs(t, err, adapter.Transient)
	if codes, err := h.adapter.Codes(t.Context(), h.device, false); err != nil || !codes.Stale {
		t.Errorf("an incomplete list is accepted: %v, %v", names(codes), err)
	}
}

// Like TestUnansweredSlotIsNotFree.
func TestRealUnansweredSlotIsNotFree(t *testing.T) {
	t.Parallel()
	g := lab.Start(t, lab.Users)
	h := newHouse(t, g.Lease(t, lab.Users), g.URL)
	h.ProgramSilently(t, 1, residentPIN)
	h.Fault(t, lab.Faults{Mute: 1})
	result, err := h.adapter.PutCode(t.Context(), h.device, spec("k", "864209"))
	if err != nil || result.Ref != "2" {
		t.Fatalf("PutCode: %+v, %v", result, err)
	}
	h.lives(t, map[int]string{1: "", 2: "Guest"}, map[int]string{1: residentPIN, 2: "864209"}, map[int]int{})
}
