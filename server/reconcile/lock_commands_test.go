package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// door requests that the door is locked or unlocked.
func (b *bed) door(lock bool) device.Attempt {
	b.Helper()
	a, err := b.access.Devices.RunLockCommand(b.Context(), b.p, b.device, lock)
	b.must(err)
	return a
}

// knock is door for goroutines that must not end the test, such as a vendor.
func (b *bed) knock(lock bool) device.Attempt {
	a, err := b.access.Devices.RunLockCommand(b.Context(), b.p, b.device, lock)
	if err != nil && b.Context().Err() == nil {
		b.Errorf("send the lock command: %v", err)
	}
	return a
}

// opened is succeeded for goroutines that must not end the test. It waits for the attempt's
// timeout.
func (b *bed) opened(ctx context.Context, a device.Attempt) {
	a, err := b.access.Devices.AwaitAttempt(ctx, b.p, a, time.Minute)
	if ctx.Err() == nil && (err != nil || a.Status != device.Succeeded) {
		b.Errorf("%s: %s %s, %v", a.Type, a.Status, a.ErrorType, err)
	}
}

func (b *bed) locked() *bool {
	b.Helper()
	d, err := b.access.Devices.GetDevice(b.Context(), b.p, b.device, "")
	b.must(err)
	return d.Locked
}

// commands counts the commands sent to a lock. answer decides each response.
func commands(
	n *atomic.Int32,
	answer func(w http.ResponseWriter, nth int32) bool,
) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/actions") {
			return false
		}
		return answer(w, n.Add(1))
	}
}

// deaf refuses the subscription to the vendor's pushes.
func deaf(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/webhooks" {
		return false
	}
	_, _ = io.WriteString(w, `{"webhooks":[],"webhook_id":"wh","status":"active"}`)
	return true
}

func TestLockCommand_EmitsOneEvent(t *testing.T) {
	t.Parallel()
	for name, vendor := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"a vendor with pushes": nil, "a vendor without pushes": deaf,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: "august", vendor: vendor})
			for _, lock := range []bool{false, true} {
				b.succeeded(b.door(lock))
				if got := b.locked(); got == nil || *got != lock {
					t.Errorf("the device shows %v, want %v", got, lock)
				}
			}
			b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true)) // flushes pending events
			events := b.tales("lock.locked", "lock.unlocked", "action_attempt.lock_door.succeeded",
				"action_attempt.unlock_door.succeeded")
			var types []string
			for _, e := range events {
				types = append(types, e.Type)
				fields := b.fields(e)
				if strings.HasPrefix(e.Type, "lock.") &&
					(fields["method"] != "remote" || fields["action_attempt_id"] == nil) {
					t.Errorf("%s: %s", e.Type, e.Fields)
				}
			}
			want := []string{
				"action_attempt.unlock_door.succeeded",
				"lock.unlocked",
				"action_attempt.lock_door.succeeded",
				"lock.locked",
			}
			if !slices.Equal(types, want) {
				t.Errorf("events %v", types)
			}
		})
	}
}

func TestLockCommand_Order(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	attempts := []device.Attempt{b.door(false), b.door(true), b.door(false)}
	for _, a := range attempts {
		b.succeeded(a)
	}
	if got := b.locked(); got == nil || *got {
		t.Errorf("at the end the device shows %v", got)
	}
}

// A person at the door does not wait for pending codes.
func TestLockCommand_PrecedesCodes(t *testing.T) {
	t.Parallel()
	began, asked, sent := make(chan struct{}), make(chan struct{}), make(chan string, 10)
	var codes atomic.Int32
	var b *bed
	b = start(t, options{profile: "august", vendor: func(w http.ResponseWriter, r *http.Request) bool {
		what := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		if r.Method != http.MethodPost || what == "webhooks" || strings.HasPrefix(r.URL.Path, "/sandbox/") {
			return false
		}
		if what == "access_codes" && codes.Add(1) == 1 {
			close(began)
			b.gate(asked)
		}
		sent <- what
		return false
	}})
	b.stopEngine()
	for _, pin := range []string{"2580", "2581", "2582"} {
		b.create(pin)
	}
	b.startEngine()
	b.gate(began)
	a := b.door(false)
	close(asked)
	b.succeeded(a)
	b.until("the codes are on the lock",
		func() bool { return b.onLock("2580") && b.onLock("2581") && b.onLock("2582") })
	var order []string
	for len(sent) > 0 {
		order = append(order, <-sent)
	}
	if want := []string{"access_codes", "actions", "access_codes", "access_codes"}; !slices.Equal(order, want) {
		t.Errorf("sent %v", order)
	}
}

// A lock queues as many commands as it can run before they expire. Others are refused and have no
// effect.
func TestLockCommand_QueueIsBounded(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "yale"})
	for range 19 {
		b.door(false)
	}
	delay := 5.0
	_, err := b.access.Devices.ConfigureAutoLock(t.Context(), b.p, b.device, true, &delay) // queues like the others
	b.must(err)
	refused := func() (lock, auto bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(testenv.WaitTimeout))
		defer cancel()
		tooMany := func(_ device.Attempt, err error) bool {
			var e *domain.Error
			if errors.As(err, &e) && e.Kind == domain.TooMany && e.Type == "too_many_requests" {
				return true
			}
			b.must(err)
			return false
		}
		return tooMany(
				b.access.Devices.RunLockCommand(ctx, b.p, b.device, true),
			), tooMany(
				b.access.Devices.ConfigureAutoLock(ctx, b.p, b.device, true, &delay),
			)
	}
	// A refused request neither waits nor makes others wait.
	b.must(b.db.InTx(t.Context(), func(tx store.Tx) error {
		if _, err := tx.LockWorkspaceDevice(
			t.Context(),
			dbsqlc.LockWorkspaceDeviceParams{WorkspaceID: b.p.WorkspaceID, DeviceID: b.id()},
		); err != nil {
			return err
		}
		if lock, auto := refused(); !lock || !auto {
			t.Errorf("with 20 that wait: refused %v, %v", lock, auto)
		}
		return nil
	}))
	other, err := b.access.Accounts.CreateWorkspace(t.Context(), "other", "c", true)
	b.must(err)
	var e *domain.Error
	_, err = b.access.Devices.RunLockCommand(t.Context(), domain.Principal{WorkspaceID: other.ID}, b.device, true)
	if !errors.As(err, &e) || e.Kind != domain.NotFound {
		t.Errorf("another workspace learns that the lock is busy: %v", err)
	}
	b.create("2580") // codes have a separate queue
	b.must(b.access.Devices.RecordLockCommandDone(t.Context(), holder{}, b.id(), *b.look().Command))
	if lock, auto := refused(); lock || !auto {
		t.Errorf("after one has ended: refused %v, %v", lock, auto)
	}
}

// Endless lock commands prevent codes neither from being set nor from being removed.
func TestLockCommand_EndlessCommandsDelayNoCodes(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	var ceased atomic.Bool
	var b *bed
	asked := make(chan device.Attempt, 1000)
	door := func(lock bool) { asked <- b.knock(lock) }
	b = start(t, options{profile: "august", vendor: func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/actions"):
			if n := sent.Add(1); !ceased.Load() {
				door(n%2 == 0)
			}
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/access_codes") && sent.Load() > 0 && len(asked) > 1:
			b.opened(r.Context(), <-asked) // fast enough that the next command already waits
		}
		return false
	}})
	door(false)
	within := func(what string, a device.Attempt) {
		t.Helper()
		before := sent.Load()
		b.until(what, func() bool { return b.attempt(a).Status != device.Pending || sent.Load() > before+30 })
		if got := b.attempt(a); got.Status != device.Succeeded {
			t.Errorf("%s: %s, while %d commands are sent", what, got.Status, sent.Load()-before)
		}
	}
	for range 3 {
		code, made := b.create("2580")
		within("a code is set", made)
		removed, err := b.access.Devices.DeleteCode(t.Context(), b.p, code.ID.String(), "")
		b.must(err)
		within("it is removed", removed)
	}
	ceased.Store(true)
	b.stopEngine()
}

func TestLockCommand_InterruptedByCrashIsNotRepeated(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	crash := make(chan struct{})
	b := start(t, options{profile: "august", vendor: commands(&sent, func(w http.ResponseWriter, nth int32) bool {
		close(crash)
		return false // it arrives, but the confirmation is lost
	})})
	a := b.door(false)
	<-crash
	b.stopEngine()
	b.startEngine()
	b.succeeded(a)
	if sent.Load() != 1 {
		t.Errorf("%d commands", sent.Load())
	}
}

func TestLockCommand_TransientRefusalIsRetried(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	b := start(t, options{profile: "august", vendor: commands(&sent, func(w http.ResponseWriter, nth int32) bool {
		if nth > 1 {
			return false
		}
		w.WriteHeader(http.StatusLocked)
		_, _ = io.WriteString(w, `{"error_code":"DEVICE_BUSY","message":"busy"}`)
		return true
	})})
	b.succeeded(b.door(false))
	if sent.Load() != 2 {
		t.Errorf("%d commands", sent.Load())
	}
}

func TestLockCommand_FailureReasons(t *testing.T) {
	t.Parallel()
	refuse := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return commands(new(atomic.Int32), func(w http.ResponseWriter, _ int32) bool {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		})
	}
	for name, c := range map[string]struct {
		vendor func(http.ResponseWriter, *http.Request) bool
		before func(*bed)
		want   string
	}{
		"offline":             {before: func(b *bed) { b.must(b.rec.SetOnline(b.Context(), b.p, b.device, false)) }, want: "device_offline"},
		"offline, not known":  {vendor: refuse(409, `{"error_code":"DEVICE_OFFLINE","message":"offline"}`), want: "device_offline"},
		"jammed":              {before: func(b *bed) { b.control(http.MethodPost, "jam", map[string]any{"jammed": true}) }, want: "lock_jammed"},
		"not supported":       {vendor: refuse(400, `{"error_code":"NOT_SUPPORTED","message":"no motor"}`), want: "device_type_not_supported"},
		"refused":             {vendor: refuse(400, `{"error_code":"INVALID_REQUEST","message":"no"}`), want: "device_refused"},
		"credentials revoked": {vendor: refuse(401, `{"error_code":"UNAUTHORIZED","message":"no"}`), want: "account_disconnected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: "august", vendor: c.vendor})
			if c.before != nil {
				c.before(b)
			}
			a := b.ended(b.door(false))
			if a.Status != device.Failed || a.ErrorType != c.want || a.Message == "" {
				t.Errorf("%s: %s %q", a.Status, a.ErrorType, a.Message)
			}
			if got := b.told("action_attempt.unlock_door.failed"); len(got) != 1 {
				t.Errorf("events %v", got)
			}
			if got := b.told("lock.unlocked"); len(got) != 0 {
				t.Errorf("events %v without a lock operation", got)
			}
		})
	}
}

func TestLockOperation_DuplicateEvent(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	told := func(o device.Operation) {
		t.Helper()
		o.Kind = device.BoltMoved
		_, err := b.access.Devices.RecordOperation(t.Context(), b.account, b.lock, o)
		b.must(err)
	}
	told(device.Operation{ID: "e1", Method: "manual"})
	told(device.Operation{ID: "e1", Method: "manual"})
	told(device.Operation{ID: "e2", Method: "manual"})
	told(device.Operation{Locked: true, Method: "manual"})
	told(device.Operation{Locked: true, Method: "manual"})
	told(device.Operation{Locked: true, Method: "automatic"})
	want := []string{"lock.unlocked", "lock.unlocked", "lock.locked", "lock.locked"}
	if got := b.told("lock.locked", "lock.unlocked"); !slices.Equal(got, want) {
		t.Errorf("events %v", got)
	}
}

// A lock operation that the vendor did not report still causes one event.
func TestLockOperation_UnreportedByVendor(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", vendor: deaf, access: access.Options{OperationLag: 50 * time.Millisecond}})
	b.control(http.MethodPost, "keypad/enter", map[string]any{"code": b.memory()[0].Code})
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("the operation is announced", func() bool { return len(b.told("lock.unlocked")) > 0 })
	for range 3 {
		b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	}
	events := b.tales("lock.locked", "lock.unlocked")
	if len(events) != 1 || b.fields(events[0])["method"] != "unknown" {
		t.Errorf("events %+v", events)
	}
}

func TestEvents_StorePINsEncrypted(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "yale"})
	c, a := b.create("74628351")
	b.succeeded(a)
	a, err := b.access.Devices.UpdateCode(t.Context(), b.p,
		device.CodeChange{ID: c.ID.String(), PIN: "74628352", EvenIfOffline: true})
	b.must(err)
	b.succeeded(a)
	b.control(http.MethodPost, "keypad/enter", map[string]any{"code": "74628352"})
	b.until("the use is announced", func() bool { return len(b.told("lock.unlocked")) == 1 })
	var rows []byte
	b.must(b.db.Pool.QueryRow(t.Context(), `select jsonb_agg(to_jsonb(e))::text from events e`).Scan(&rows))
	if bytes.Contains(rows, []byte("7462835")) {
		t.Error("a PIN is in the table of events")
	}
	changed := b.tales("access_code.code_changed")
	if len(changed) != 1 {
		t.Fatalf("%d changes of the PIN", len(changed))
	}
	from, _ := b.fields(changed[0])["from"].(map[string]any)
	to, _ := b.fields(changed[0])["to"].(map[string]any)
	if from["code"] != "74628351" || to["code"] != "74628352" {
		t.Error("the change does not contain both PINs")
	}
	if used := b.tales("lock.unlocked")[0]; b.fields(used)["code"] != "74628352" ||
		b.fields(used)["access_code_id"] != c.ID.String() ||
		b.fields(used)["method"] != "keycode" ||
		b.fields(used)["access_code_is_managed"] != true {
		t.Errorf("the use lacks fields; it has %d", len(b.fields(used)))
	}
}

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
func (l *lost) isGivenUp(b *bed, a device.Attempt) {
	b.Helper()
	b.until("the lock is polled", func() bool { return l.looks.Load() >= 3 })
	if got := b.attempt(a); got.Status != device.Pending {
		b.Errorf("%s before its time: %s", got.Status, got.ErrorType)
	}
	_, err := b.db.Pool.Exec(b.Context(),
		"update action_attempts set deadline_at = now() - interval '1 s' where action_attempt_id = $1", a.ID)
	b.must(err)
	if a = b.ended(a); a.Status != device.Failed || a.ErrorType != "action_attempt_expired" || l.sent.Load() != 1 {
		b.Errorf("%s %s after %d commands", a.Status, a.ErrorType, l.sent.Load())
	}
}

func TestLostResponse_CommandIsNotRepeated(t *testing.T) {
	t.Parallel()
	var l lost
	b := start(
		t,
		options{profile: "august", access: access.Options{LockCommandTimeout: time.Hour}, vendor: l.at("/actions")},
	)
	l.isGivenUp(b, b.door(false))
}

// ends lists the event types that report the end of an attempt.
func (b *bed) ends(a device.Attempt) (types []string) {
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
			b := start(
				t,
				options{
					profile: "august",
					access:  access.Options{LockCommandTimeout: time.Hour},
					vendor:  l.at("/actions"),
				},
			)
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
	b := start(t, options{profile: "august", access: access.Options{LockCommandTimeout: time.Millisecond}})
	for action, event := range map[string]string{
		domain.SimulateKeypadCodeEntry: "action_attempt.simulate_keypad_code_entry.failed",
		domain.SimulateManualLock:      "action_attempt.simulate_manual_lock_via_keypad.failed",
	} {
		begun, err := b.access.Devices.BeginSimulation(t.Context(), uuid.MustParse(b.device), action)
		b.must(err)
		a := b.ended(begun)
		_, err = b.access.Devices.EndSimulation(t.Context(), uuid.MustParse(b.device), begun, "")
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
	b := start(
		t,
		options{profile: "yale", access: access.Options{LockCommandTimeout: time.Hour}, vendor: l.at("/auto_lock")},
	)
	l.isGivenUp(b, b.autoLock(5))
}

func TestAwaitAttempt(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{AttemptPollInterval: time.Hour}}) // no polling
	_, a := b.create("2580")
	got, err := b.access.Devices.AwaitAttempt(t.Context(), b.p, a, 50*time.Second)
	b.must(err)
	if got.Status != device.Succeeded {
		t.Errorf("attempt status %s", got.Status)
	}
	if got, err = b.access.Devices.AwaitAttempt(
		t.Context(),
		b.p,
		a,
		time.Hour,
	); err != nil ||
		got.Status != device.Succeeded {
		t.Errorf("finished attempt: %s, %v", got.Status, err)
	}

	// Another instance notices by polling.
	other := access.New(b.db, b.keys, b.waker, access.Options{AttemptPollInterval: 10 * time.Millisecond})
	_, a = b.create("2581")
	if got, err = other.Devices.AwaitAttempt(t.Context(), b.p, a, 50*time.Second); err != nil ||
		got.Status != device.Succeeded {
		t.Errorf("in another instance: %s, %v", got.Status, err)
	}

	// The caller may cancel, and no wait is endless.
	b.control("POST", "offline", nil)
	b.until("the device is offline", func() bool {
		d, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
		b.must(err)
		return !d.Online
	})
	_, a = b.create("2582")
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := b.access.Devices.AwaitAttempt(ctx, b.p, a, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled wait: %v", err)
	}
	if got, err = b.access.Devices.AwaitAttempt(t.Context(), b.p, a, time.Millisecond); err != nil ||
		got.Status != device.Pending {
		t.Errorf("after the timeout: %s, %v", got.Status, err)
	}
	stranger := domain.Principal{WorkspaceID: b.account}
	if _, err := b.access.Devices.AwaitAttempt(t.Context(), stranger, a, time.Hour); err == nil {
		t.Error("another workspace can wait for the attempt")
	}
}
