package reconcile_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// lost is a vendor that loses commands. It counts them and the looks at the lock since then.
type lost struct{ sent, looks atomic.Int32 }

// at loses requests whose path ends with the given suffixes.
func (l *lost) at(path string) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, path):
			l.sent.Add(1)
			panic(http.ErrAbortHandler)
		case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/locks/") && strings.Count(r.URL.Path, "/") == 2 && l.sent.Load() > 0:
			l.looks.Add(1)
		}
		return false
	}
}

// isGivenUp waits for some unsuccessful looks and then lets the attempt expire.
func (l *lost) isGivenUp(b *bed, a access.Attempt) {
	b.Helper()
	b.until("the lock is polled", func() bool { return l.looks.Load() >= 3 })
	if got := b.attempt(a); got.Status != access.Pending {
		b.Errorf("%s before its time: %s", got.Status, got.ErrorType)
	}
	_, err := b.db.Pool.Exec(b.Context(),
		"update action_attempts set deadline_at = now() - interval '1 s' where action_attempt_id = $1", a.ID)
	b.must(err)
	if a = b.ended(a); a.Status != access.Failed || a.ErrorType != "action_attempt_expired" || l.sent.Load() != 1 {
		b.Errorf("%s %s after %d commands", a.Status, a.ErrorType, l.sent.Load())
	}
}

func TestLostResponse_CommandIsNotRepeated(t *testing.T) {
	t.Parallel()
	var l lost
	b := start(t, options{profile: "august", access: access.Options{BoltPatience: time.Hour}, vendor: l.at("/actions")})
	l.isGivenUp(b, b.door(false))
}

// ends lists the event types that report the end of an attempt.
func (b *bed) ends(a access.Attempt) (types []string) {
	b.Helper()
	for _, e := range b.tales() {
		if strings.HasPrefix(e.Type, "action_attempt.") && b.fields(e)["action_attempt_id"] == a.ID.String() {
			types = append(types, e.Type)
		}
	}
	return types
}

// The expiry of an attempt emits an event, like any other failure.
func TestLostResponse_ExpiryAfterCrashIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	for event, lock := range map[string]bool{"action_attempt.lock_door.failed": true, "action_attempt.unlock_door.failed": false} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			var l lost
			b := start(t,
				options{profile: "august", access: access.Options{BoltPatience: time.Hour}, vendor: l.at("/actions")})
			if lock && !b.opens(b.memory()[0].Code) {
				t.Fatal("the door cannot be opened by hand")
			}
			a := b.door(lock)
			b.until("the command is sent", func() bool { return l.sent.Load() == 1 })
			b.stopEngine()
			b.startEngine()
			l.isGivenUp(b, a)
			b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true)) // causes one more look
			if got := b.ends(a); !slices.Equal(got, []string{event}) {
				t.Errorf("attempt events %q", got)
			}
		})
	}
}

// The server that started the attempt may be slow rather than dead. A late result is ignored.
func TestInterruptedSimulation_ExpiryIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{BoltPatience: time.Millisecond}})
	for action, event := range map[string]string{access.SimulateKeypadCodeEntry: "action_attempt.simulate_keypad_code_entry.failed",
		access.SimulateManualLock: "action_attempt.simulate_manual_lock_via_keypad.failed"} {
		begun, err := b.access.BeginSimulation(t.Context(), uuid.MustParse(b.device), action)
		b.must(err)
		a := b.ended(begun)
		_, err = b.access.EndSimulation(t.Context(), uuid.MustParse(b.device), begun, "")
		b.must(err)
		if got := b.ends(a); a.ErrorType != "action_attempt_expired" || b.attempt(a) != a ||
			!slices.Equal(got, []string{event}) {
			t.Errorf("%s: %s, then %s; events %q", action, a.ErrorType, b.attempt(a).Status, got)
		}
	}
}

func TestLostResponse_AutoLockIsSentOnce(t *testing.T) {
	t.Parallel()
	var l lost
	b := start(t, options{profile: "yale", access: access.Options{BoltPatience: time.Hour}, vendor: l.at("/auto_lock")})
	l.isGivenUp(b, b.autoLock(5))
}
