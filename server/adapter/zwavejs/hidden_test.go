package zwavejs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const clears = "endpoint.invoke_cc_api clear"

// TestRefusedChangeOfAHiddenCodeIsNotTakenForMade: a slot that goes on showing the stars of the old PIN says nothing about the new one.
func TestRefusedChangeOfAHiddenCodeIsNotTakenForMade(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(s *script, c command) string
		class  adapter.Class // of the change; empty: it is made
		writes int
	}{
		"it is taken": {func(s *script, c command) string {
			if c.Method == "set" {
				s.put(c.slot(), shows(1, "****"))
				return noContent
			}
			return ""
		}, "", 1},
		"another slot has the PIN": {func(s *script, c command) string {
			if c.Method == "set" {
				s.tell(fmt.Sprintf(duplicate, `,"parameters":{"userId":2}`))
				return noContent
			}
			return ""
		}, adapter.Duplicate, 1},
		"the slot is not cleared": {func(_ *script, c command) string {
			if c.Method == "clear" {
				return noContent
			}
			return ""
		}, adapter.Unconfirmed, 0},
		"somebody puts another one there meanwhile": {func(s *script, c command) string {
			if c.Method == "set" {
				s.put(c.slot(), shows(1, "****"))
				s.tell(fmt.Sprintf(duplicate, ""))
				return noContent
			}
			return ""
		}, adapter.Duplicate, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, map[int]string{1: shows(1, "****"), 2: shows(1, "****")}, test.answer)
			if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
				t.Fatal(err)
			}
			s.count(writes)
			change := spec("k", "864209")
			change.Ref = "1"
			result, err := s.adapter.PutCode(t.Context(), s.device, change)
			if test.class != "" {
				failsAs(t, err, test.class)
			} else if err != nil || result.Ref != "1" || result.State != adapter.Confirmed {
				t.Fatalf("PutCode: %+v, %v", result, err)
			}
			s.mu.Lock()
			asked := slices.Clone(s.asked)
			s.mu.Unlock()
			if first := slices.Index(asked, clears); first < 0 || slices.Index(asked, writes) >= 0 && slices.Index(asked, writes) < first {
				t.Errorf("the slot is not cleared first: %v", asked)
			}
			if n := s.count(writes); n != test.writes {
				t.Errorf("%d PINs were written, want %d", n, test.writes)
			}
		})
	}
}

// TestChangeThatHasClearedItsSlotInVainIsTold: the lock has the code no longer, and is to be read.
func TestChangeThatHasClearedItsSlotInVainIsTold(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{1: shows(1, "****")}, func(s *script, c command) string {
		if c.Method == "set" {
			s.tell(fmt.Sprintf(duplicate, ""))
			return noContent
		}
		return ""
	})
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
		t.Fatal(err)
	}
	for drained := false; !drained; {
		select {
		case <-s.adapter.Events():
		default:
			drained = true
		}
	}
	change := spec("k", "864209")
	change.Ref = "1"
	_, err := s.adapter.PutCode(t.Context(), s.device, change)
	failsAs(t, err, adapter.Duplicate)
	for told := false; !told; {
		select {
		case e := <-s.adapter.Events():
			told = e.Kind == adapter.CodesChanged && e.Device == s.device && e.Code == "1"
		case <-t.Context().Done():
			t.Fatal("it is not told")
		}
	}
	if codes, err := s.adapter.Codes(t.Context(), s.device, true); err != nil || len(codes.Codes) != 0 {
		t.Fatalf("Codes: %+v, %v", codes, err)
	}
}

// TestPlaceThatIsEmptiedFirstIsToldBefore: whoever is told knows after a crash who has emptied it. Where PINs are shown nothing is emptied.
func TestPlaceThatIsEmptiedFirstIsToldBefore(t *testing.T) {
	t.Parallel()
	for shown, told := range map[string]bool{"****": true, "135790": false} {
		for _, noted := range []error{nil, errors.New("it cannot be noted")} {
			s := play(t, map[int]string{1: shows(1, shown)}, func(s *script, c command) string {
				if c.Method == "set" && told {
					s.put(c.slot(), shows(1, "****"))
					return noContent
				}
				return ""
			})
			if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
				t.Fatal(err)
			}
			var places []adapter.CodeRef
			change := spec("k", "864209")
			change.Ref = "1"
			change.Place = func(_ context.Context, ref adapter.CodeRef) error {
				if s.count(clears) > 0 {
					t.Error("it is emptied before")
				}
				places = append(places, ref)
				return noted
			}
			_, err := s.adapter.PutCode(t.Context(), s.device, change)
			if told != slices.Contains(places, "1") || len(places) > 1 || (err != nil) != (told && noted != nil) {
				t.Errorf("of %q the places %v are told: %v", shown, places, err)
			}
			if n := s.count(clears); (n > 0) != (told && noted == nil) {
				t.Errorf("of %q it is emptied %d times", shown, n)
			}
		}
	}
}
