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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// door asks for the door to be locked or unlocked.
func (b *bed) door(lock bool) access.Attempt {
	b.Helper()
	a, err := b.access.MoveBolt(b.Context(), b.p, b.device, lock)
	b.must(err)
	return a
}

// knock is door where a test cannot be ended, as in a vendor.
func (b *bed) knock(lock bool) access.Attempt {
	a, err := b.access.MoveBolt(b.Context(), b.p, b.device, lock)
	if err != nil && b.Context().Err() == nil {
		b.Errorf("move the bolt: %v", err)
	}
	return a
}

// opened is succeeded where a test cannot be ended, and as long as somebody waits for that.
func (b *bed) opened(ctx context.Context, a access.Attempt) {
	a, err := b.access.AwaitAttempt(ctx, b.p, a, time.Minute)
	if ctx.Err() == nil && (err != nil || a.Status != access.Succeeded) {
		b.Errorf("%s: %s %s, %v", a.Type, a.Status, a.ErrorType, err)
	}
}

func (b *bed) locked() *bool {
	b.Helper()
	d, err := b.access.GetDevice(b.Context(), b.p, b.device, "")
	b.must(err)
	return d.Locked
}

// commands counts what is sent to a lock, and lets answer decide about each.
func commands(n *atomic.Int32, answer func(w http.ResponseWriter, nth int32) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/actions") {
			return false
		}
		return answer(w, n.Add(1))
	}
}

// deaf takes the vendor's pushes away: nothing is subscribed to.
func deaf(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/webhooks" {
		return false
	}
	_, _ = io.WriteString(w, `{"webhooks":[],"webhook_id":"wh","status":"active"}`)
	return true
}

func TestDoorIsUnlockedAndLockedAndTellsOfItOnce(t *testing.T) {
	t.Parallel()
	for name, vendor := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"a vendor that tells": nil, "a vendor that tells nothing": deaf,
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
			b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true)) // whatever is still to be told is told before
			events := b.tales("lock.locked", "lock.unlocked", "action_attempt.lock_door.succeeded", "action_attempt.unlock_door.succeeded")
			var types []string
			for _, e := range events {
				types = append(types, e.Type)
				fields := b.fields(e)
				if strings.HasPrefix(e.Type, "lock.") && (fields["method"] != "remote" || fields["action_attempt_id"] == nil) {
					t.Errorf("%s: %s", e.Type, e.Fields)
				}
			}
			want := []string{"action_attempt.unlock_door.succeeded", "lock.unlocked", "action_attempt.lock_door.succeeded", "lock.locked"}
			if !slices.Equal(types, want) {
				t.Errorf("events %v", types)
			}
		})
	}
}

func TestCommandsAreDoneInTheirOrder(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	attempts := []access.Attempt{b.door(false), b.door(true), b.door(false)}
	for _, a := range attempts {
		b.succeeded(a)
	}
	if got := b.locked(); got == nil || *got {
		t.Errorf("at the end the device shows %v", got)
	}
}

// Whoever stands before the door does not wait until all codes are on it.
func TestCommandGoesAheadOfCodes(t *testing.T) {
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
	b.until("the codes are on the lock", func() bool { return b.onLock("2580") && b.onLock("2581") && b.onLock("2582") })
	var order []string
	for len(sent) > 0 {
		order = append(order, <-sent)
	}
	if want := []string{"access_codes", "actions", "access_codes", "access_codes"}; !slices.Equal(order, want) {
		t.Errorf("sent %v", order)
	}
}

// As many commands wait for a lock as it can do before they are given up; the others are refused and do nothing.
func TestOnlySoManyCommandsWaitForOneLock(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "yale"})
	for range 19 {
		b.door(false)
	}
	delay := 5.0
	_, err := b.access.ConfigureAutoLock(t.Context(), b.p, b.device, true, &delay) // waits like the others
	b.must(err)
	refused := func() (lock, auto bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(testenv.WaitTimeout))
		defer cancel()
		tooMany := func(_ access.Attempt, err error) bool {
			var e *access.Error
			if errors.As(err, &e) && e.Kind == access.TooMany && e.Type == "too_many_requests" {
				return true
			}
			b.must(err)
			return false
		}
		return tooMany(b.access.MoveBolt(ctx, b.p, b.device, true)), tooMany(b.access.ConfigureAutoLock(ctx, b.p, b.device, true, &delay))
	}
	b.must(b.db.InTx(t.Context(), func(tx store.Tx) error { // whoever is refused waits for nobody, and has nobody wait
		if _, err := tx.LockWorkspaceDevice(t.Context(), dbsqlc.LockWorkspaceDeviceParams{WorkspaceID: b.p.WorkspaceID, DeviceID: b.id()}); err != nil {
			return err
		}
		if lock, auto := refused(); !lock || !auto {
			t.Errorf("with 20 that wait: refused %v, %v", lock, auto)
		}
		return nil
	}))
	other, err := b.access.CreateWorkspace(t.Context(), "other", "c", true)
	b.must(err)
	var e *access.Error
	if _, err := b.access.MoveBolt(t.Context(), access.Principal{WorkspaceID: other.ID}, b.device, true); !errors.As(err, &e) || e.Kind != access.NotFound {
		t.Errorf("another workspace is told that the lock is busy: %v", err)
	}
	b.create("2580") // codes have their own turns
	b.must(b.access.RecordBoltMoved(t.Context(), holder{}, b.id(), *b.look().Bolt))
	if lock, auto := refused(); lock || !auto {
		t.Errorf("after one has ended: refused %v, %v", lock, auto)
	}
}

// Whoever has the door locked and unlocked without an end does not keep codes from being set, nor from being removed.
func TestCommandsWithoutAnEndHoldUpNoCodes(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	var ceased atomic.Bool
	var b *bed
	asked := make(chan access.Attempt, 1000)
	door := func(lock bool) { asked <- b.knock(lock) }
	b = start(t, options{profile: "august", vendor: func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/actions"):
			if n := sent.Add(1); !ceased.Load() {
				door(n%2 == 0)
			}
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/access_codes") && sent.Load() > 0 && len(asked) > 1:
			b.opened(r.Context(), <-asked) // the bolt is quick: whoever is next at the door waits already
		}
		return false
	}})
	door(false)
	within := func(what string, a access.Attempt) {
		t.Helper()
		before := sent.Load()
		b.until(what, func() bool { return b.attempt(a).Status != access.Pending || sent.Load() > before+30 })
		if got := b.attempt(a); got.Status != access.Succeeded {
			t.Errorf("%s: %s, while %d commands are sent", what, got.Status, sent.Load()-before)
		}
	}
	for range 3 {
		code, made := b.create("2580")
		within("a code is set", made)
		removed, err := b.access.DeleteCode(t.Context(), b.p, code.ID.String(), "")
		b.must(err)
		within("it is removed", removed)
	}
	ceased.Store(true)
	b.stopEngine()
}

func TestCommandThatWasUnderWayInACrashIsNotSentAgain(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	crash := make(chan struct{})
	b := start(t, options{profile: "august", vendor: commands(&sent, func(w http.ResponseWriter, nth int32) bool {
		close(crash)
		return false // it gets through; nobody is there to hear that
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

func TestCommandThatIsRefusedForNowIsSentAgain(t *testing.T) {
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

func TestCommandsThatComeToNothingSayWhy(t *testing.T) {
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
			if a.Status != access.Failed || a.ErrorType != c.want || a.Message == "" {
				t.Errorf("%s: %s %q", a.Status, a.ErrorType, a.Message)
			}
			if got := b.told("action_attempt.unlock_door.failed"); len(got) != 1 {
				t.Errorf("events %v", got)
			}
			if got := b.told("lock.unlocked"); len(got) != 0 {
				t.Errorf("events %v of a bolt that did not move", got)
			}
		})
	}
}

func TestOperationThatIsToldTwiceIsTold(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	told := func(o access.Operation) {
		t.Helper()
		o.Kind = access.BoltMoved
		_, err := b.access.RecordOperation(t.Context(), b.account, b.lock, o)
		b.must(err)
	}
	told(access.Operation{ID: "e1", Method: "manual"})
	told(access.Operation{ID: "e1", Method: "manual"})
	told(access.Operation{ID: "e2", Method: "manual"})
	told(access.Operation{Locked: true, Method: "manual"})
	told(access.Operation{Locked: true, Method: "manual"})
	told(access.Operation{Locked: true, Method: "automatic"})
	want := []string{"lock.unlocked", "lock.unlocked", "lock.locked", "lock.locked"}
	if got := b.told("lock.locked", "lock.unlocked"); !slices.Equal(got, want) {
		t.Errorf("events %v", got)
	}
}

// A bolt that somebody has moved without its vendor telling is told of all the same, once.
func TestBoltThatNobodyToldOfIsToldOf(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", vendor: deaf, access: access.Options{OperationLag: 50 * time.Millisecond}})
	b.control(http.MethodPost, "keypad/enter", map[string]any{"code": b.memory()[0].Code})
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("that is told", func() bool { return len(b.told("lock.unlocked")) > 0 })
	for range 3 {
		b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	}
	events := b.tales("lock.locked", "lock.unlocked")
	if len(events) != 1 || b.fields(events[0])["method"] != "unknown" {
		t.Errorf("events %+v", events)
	}
}

func TestEventsHoldNoPINAtRest(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "yale"})
	c, a := b.create("74628351")
	b.succeeded(a)
	a, err := b.access.UpdateCode(t.Context(), b.p, access.CodeChange{ID: c.ID.String(), PIN: "74628352", EvenIfOffline: true})
	b.must(err)
	b.succeeded(a)
	b.control(http.MethodPost, "keypad/enter", map[string]any{"code": "74628352"})
	b.until("the use is told", func() bool { return len(b.told("lock.unlocked")) == 1 })
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
		t.Error("the change does not carry both PINs")
	}
	if used := b.tales("lock.unlocked")[0]; b.fields(used)["code"] != "74628352" || b.fields(used)["access_code_id"] != c.ID.String() ||
		b.fields(used)["method"] != "keycode" || b.fields(used)["access_code_is_managed"] != true {
		t.Errorf("the use lacks something; it has %d fields", len(b.fields(used)))
	}
}
