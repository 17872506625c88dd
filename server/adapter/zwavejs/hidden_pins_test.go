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

// A slot that still shows the asterisks of the old PIN says nothing about the new one.
func TestRefusedChangeOfHiddenCode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(s *script, c command) string
		class  adapter.Class // of the change; empty: success
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
		"another code is added there meanwhile": {func(s *script, c command) string {
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
			if first := slices.Index(asked, clears); first < 0 || slices.Index(asked, writes) >= 0 &&
				slices.Index(asked, writes) < first {
				t.Errorf("the slot is not cleared first: %v", asked)
			}
			if n := s.count(writes); n != test.writes {
				t.Errorf("%d PINs were written, want %d", n, test.writes)
			}
		})
	}
}

// The lock has lost the code, and must be read.
func TestClearedSlotOfFailedChangeIsReported(t *testing.T) {
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
			t.Fatal("it is not reported")
		}
	}
	if codes, err := s.adapter.Codes(t.Context(), s.device, true); err != nil || len(codes.Codes) != 0 {
		t.Fatalf("Codes: %+v, %v", codes, err)
	}
}

// The caller knows after a crash which write cleared the slot. If PINs are visible, the slot is not cleared.
func TestPlaceIsAnnouncedBeforeClearing(t *testing.T) {
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
			change.OnPlace = func(_ context.Context, ref adapter.CodeRef) error {
				if s.count(clears) > 0 {
					t.Error("it is cleared first")
				}
				places = append(places, ref)
				return noted
			}
			_, err := s.adapter.PutCode(t.Context(), s.device, change)
			if told != slices.Contains(places, "1") || len(places) > 1 || (err != nil) != (told && noted != nil) {
				t.Errorf("%q: announced places %v: %v", shown, places, err)
			}
			if n := s.count(clears); (n > 0) != (told && noted == nil) {
				t.Errorf("%q: cleared %d times", shown, n)
			}
		}
	}
}
