package zwavejs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func spec(key, pin string) adapter.CodeSpec {
	return adapter.CodeSpec{Key: key, Name: "Guest", PIN: pin}
}

// failsAs requires that err has the class and does not contain a PIN.
func failsAs(t *testing.T, err error, class adapter.Class) *adapter.Error {
	t.Helper()
	if err == nil || adapter.ClassOf(err) != class {
		t.Fatalf("got %v, want %s", err, class)
	}
	if strings.Contains(err.Error(), "864209") {
		t.Fatal("the error contains the PIN")
	}
	return adapter.AsError(err)
}

// lock_code_manager #848, a loop on a duplicate PIN: the lock reports it after the response, and some locks do not
// name the code.
func TestLateDuplicate(t *testing.T) {
	t.Parallel()
	for named, want := range map[string]adapter.CodeRef{
		`,"parameters":{"userId":3}`: "3", `,"parameters":{}`: "2",
		``: "2", `,"parameters":null`: "2",
	} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			const get = "get" // of the command class, not of HTTP
			var set atomic.Bool
			s := play(t, map[int]string{2: shows(1, "864209")}, func(s *script, c command) string {
				switch {
				case c.Method == "set":
					set.Store(true)
					return noContent
				case c.Method == get && set.Load(): // after all responses
					time.AfterFunc(50*time.Millisecond, func() { s.tell(fmt.Sprintf(duplicate, named)) })
				}
				return ""
			})
			if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
				t.Fatal(err)
			}
			_, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
			if e := failsAs(t, err, adapter.Duplicate); e.Conflict != want {
				t.Fatalf("the conflict is with %q, want %q", e.Conflict, want)
			}
		})
	}
}

// A notification that is older than the write says nothing about it.
func TestOldDuplicateIsIgnored(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{}, func(_ *script, c command) string {
		if c.Method == "set" {
			return noContent // the slot remains empty
		}
		return ""
	})
	s.tell(fmt.Sprintf(duplicate, ""))
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil { // the notification has arrived by now
		t.Fatal(err)
	}
	_, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
	failsAs(t, err, adapter.Unconfirmed)
}

// lock_code_manager #776 and keymaster #515, #589: thousands of frames because asterisks differ from the PIN that was
// set. #498: asterisks adopted as a PIN.
func TestMaskedPINsAreNotRewritten(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{1: shows(1, "*****")}, func(s *script, c command) string {
		if c.Method == "set" {
			s.put(c.slot(), shows(1, "****"))
			return noContent
		}
		return ""
	})
	result, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
	if err != nil || result.Ref != "2" {
		t.Fatalf("PutCode: %+v, %v", result, err)
	}
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
		t.Fatal(err)
	}
	s.count(reads)
	for range 50 {
		codes, err := s.adapter.Codes(t.Context(), s.device, true)
		if err != nil || len(codes.Codes) != 2 || codes.Codes[0].PIN != "" || codes.Codes[1].PIN != "" {
			t.Fatalf("Codes: %+v, %v", codes, err)
		}
		if again, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209")); err != nil || again.Ref != "2" {
			t.Fatalf("PutCode again: %+v, %v", again, err)
		}
	}
	if n := s.count(writes); n != 0 {
		t.Fatalf("the same code was written %d more times", n)
	}
	if d, err := s.adapter.Device(t.Context(), s.device); err != nil || d.Capabilities.PINVisible ||
		d.Capabilities.Convert != capability.ConvertNever {
		t.Fatalf("a lock with hidden PINs: %+v, %v", d.Capabilities, err)
	}
}

// keymaster #515: a BE469 returns "0000" for an empty slot.
func TestEmptySlotWithDigits(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{1: shows(0, "0000")}, nil)
	codes, err := s.adapter.Codes(t.Context(), s.device, true)
	if err != nil || len(codes.Codes) != 0 {
		t.Fatalf("Codes: %+v, %v", codes, err)
	}
}

// lock_code_manager #1397: an occupied slot that shows nothing was overwritten repeatedly. A slot that the lock does
// not answer is not free either.
func TestUnreadableSlotIsNotFree(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{
		1: shows(1, ""),
		2: `{"response":{"userIdStatus":1,"userCode":{"type":"Buffer","data":[1,2,3,4]}}}`,
	}, nil)
	result, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
	if err != nil || result.Ref != "3" {
		t.Fatalf("PutCode: %+v, %v", result, err)
	}
	s.put(4, noContent)
	s.count(writes)
	_, err = s.adapter.PutCode(t.Context(), s.device, spec("other", "975310"))
	failsAs(t, err, adapter.Transient)
	if n := s.count(writes); n != 0 {
		t.Fatalf("%d writes without a read", n)
	}
	if _, err = s.adapter.Codes(t.Context(), s.device, true); adapter.ClassOf(err) != adapter.Transient {
		t.Fatalf("a list with an unanswered slot: %v", err)
	}
}

// Some locks report more slots than they have, and report the missing ones when read.
func TestMissingSlot(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{
		1: `{"response":{"userIdStatus":254}}`, 3: `{"response":{"userIdStatus":254}}`,
		4: `{"response":{"userIdStatus":254}}`,
	}, nil)
	for range 2 { // before and after a read
		result, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
		if err != nil || result.Ref != "2" {
			t.Fatalf("PutCode: %+v, %v", result, err)
		}
		codes, err := s.adapter.Codes(t.Context(), s.device, true)
		if err != nil || len(codes.Codes) != 1 || codes.Codes[0].Ref != "2" {
			t.Fatalf("Codes: %+v, %v", codes, err)
		}
	}
	_, err := s.adapter.PutCode(t.Context(), s.device, spec("other", "975310"))
	failsAs(t, err, adapter.Full)
}

// lock_code_manager #1398: a slot beyond the capacity counted as an unreachable lock. #1257: an unknown error counted
// as permanent.
func TestErrorClasses(t *testing.T) {
	t.Parallel()
	for code, test := range map[int]struct {
		name  string
		class adapter.Class
	}{
		204:  {"Controller_CallbackNOK", adapter.Offline},
		200:  {"Controller_Timeout", adapter.Transient},
		202:  {"Controller_NodeTimeout", adapter.Transient},
		210:  {"Controller_InterviewRestarted", adapter.Transient},
		213:  {"Controller_NodeRemoved", adapter.NotFound},
		302:  {"CC_NotSupported", adapter.NotSupported},
		303:  {"CC_NotImplemented", adapter.NotSupported},
		304:  {"CC_NoAPI", adapter.NotSupported},
		322:  {"Argument_Invalid", adapter.Invalid},
		9999: {"Something_New", adapter.Transient},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := play(t, map[int]string{}, func(_ *script, c command) string {
				if c.Method == "set" {
					return fmt.Sprintf(lockedOut, code, test.name)
				}
				return ""
			})
			_, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
			failsAs(t, err, test.class)
		})
	}
}

// lock_code_manager PR #250, and rental-control #245, where a source that was briefly empty deleted codes: unread
// slots are stale.
func TestNoWriteBeforeARead(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{}, nil)
	codes, err := s.adapter.Codes(t.Context(), s.device, false)
	if err != nil || !codes.Stale {
		t.Fatalf("before the first read: %+v, %v", codes, err)
	}
	if codes, err = s.adapter.Codes(t.Context(), s.device, true); err != nil || codes.Stale {
		t.Fatalf("after it: %+v, %v", codes, err)
	}
	if codes, err = s.adapter.Codes(t.Context(), s.device, false); err != nil || codes.Stale {
		t.Fatalf("without events since: %+v, %v", codes, err)
	}
}

// keymaster #525, codes that vanish after they were set, and #520, codes that stay "adding".
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	arrived := false
	s := play(t, map[int]string{}, func(s *script, c command) string {
		if c.Method == "set" && !arrived {
			arrived = true
			s.put(c.slot(), shows(1, "864209"))
			return fmt.Sprintf(lockedOut, 204, "Controller_CallbackNOK")
		}
		return ""
	})
	_, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
	failsAs(t, err, adapter.Offline)
	codes, err := s.adapter.Codes(t.Context(), s.device, true)
	if err != nil || len(codes.Codes) != 1 || codes.Codes[0].Key != "k" {
		t.Fatalf("the write that arrived is known: %+v, %v", codes, err)
	}
	s.count(writes)
	result, err := s.adapter.PutCode(t.Context(), s.device, spec("k", "864209"))
	if err != nil || string(result.Ref) != "1" || s.count(writes) != 0 {
		t.Fatalf("it was put twice: %+v, %v", result, err)
	}
}

// A sleeping node answers when it wakes up, possibly after hours.
func TestSleepingNodeKeepsTheCommand(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := play(t, map[int]string{}, func(_ *script, c command) string {
		if c.Method == "set" {
			<-release
		}
		return ""
	})
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	set := make(chan error, 1)
	go func() {
		_, err := s.adapter.PutCode(ctx, s.device, spec("k", "864209"))
		set <- err
	}()
	until(t, "the command is sent", func() bool { return s.count(writes) == 1 })
	cancel()
	err := <-set
	failsAs(t, err, adapter.Unconfirmed)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v does not wrap the context's error", err)
	}
}

// A node identifier is reused after its node was excluded, even if the event was missed.
func TestReusedNodeIsAnotherDevice(t *testing.T) {
	t.Parallel()
	for name, heard := range map[string]bool{"heard": true, "not heard": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, map[int]string{1: shows(1, "864209")}, nil)
			if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
				t.Fatal(err)
			}
			gone := func() bool {
				_, err := s.adapter.Device(t.Context(), s.device)
				return err != nil && adapter.ClassOf(err) == adapter.NotFound
			}
			if heard {
				s.tell(
					`{"type":"event","event":{"source":"controller","event":"node removed","node":` + s.node() + `,"reason":0}}`,
				)
				until(t, "the lock is gone", gone)
			}
			s.mu.Lock()
			s.product = 0x0601
			s.mu.Unlock()
			s.tell(`{"type":"event","event":{"source":"node","event":"ready","nodeId":2,"nodeState":` + s.node() + `}}`)
			until(t, "another lock is there instead", func() bool {
				devices, err := s.adapter.Devices(t.Context())
				return err == nil && len(devices) == 1 && devices[0].Ref != s.device && gone()
			})
		})
	}
}

// A write of another client is announced before the lock has it.
func TestWritesOfOtherClientsAreReadBack(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{1: shows(1, "864209")}, nil)
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
		t.Fatal(err)
	}
	const told = `{"type":"event","event":{"source":"node","event":"value updated","nodeId":2,"args":{"commandClass":99,"endpoint":0,"property":"userCode","propertyKey":1,"newValue":%q,"prevValue":""}}}`
	s.count(reads)
	s.tell(fmt.Sprintf(told, "864209")) // a known code is no reason for a read
	s.tell(fmt.Sprintf(told, "975310"))
	var codes adapter.Codes
	until(t, "it is read back", func() bool {
		var err error
		codes, err = s.adapter.Codes(t.Context(), s.device, true)
		return err == nil && s.count(reads) == 1
	})
	if len(codes.Codes) != 1 || codes.Codes[0].PIN != "864209" {
		t.Fatalf("the announced code is not the lock's: %+v", codes)
	}
}

// until waits for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	testenv.Until(t, what, holds)
}

// A hidden PIN cannot be compared, but its change is reported.
func TestHiddenCodeChangedAtTheKeypad(t *testing.T) {
	t.Parallel()
	s := play(t, map[int]string{1: shows(1, "****"), 2: shows(1, "****")}, nil)
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
		t.Fatal(err)
	}
	s.tell(
		`{"type":"event","event":{"source":"node","event":"notification","nodeId":2,"ccId":113,"args":{"type":6,"event":14,"parameters":{"userId":2}}}}`,
	)
	var codes adapter.Codes
	until(t, "the change shows", func() bool {
		var err error
		codes, err = s.adapter.Codes(t.Context(), s.device, true)
		return err == nil && len(codes.Codes) == 2 && !codes.Codes[1].ChangedAt.IsZero()
	})
	if !codes.Codes[0].ChangedAt.IsZero() {
		t.Fatal("the other code was not changed")
	}
	put := spec("k", "864209")
	put.Ref = "2"
	if _, err := s.adapter.PutCode(t.Context(), s.device, put); err != nil {
		t.Fatal(err)
	}
	if codes, err := s.adapter.Codes(t.Context(), s.device, true); err != nil || !codes.Codes[1].ChangedAt.IsZero() {
		t.Fatalf("it was restored: %+v, %v", codes, err)
	}
}
