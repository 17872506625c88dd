package reconcile_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func (b *bed) faults(f map[string]any) { b.Helper(); b.control(http.MethodPut, "faults", f) }

// set creates the code 2580 and waits until it is on the lock.
func (b *bed) set() device.Code {
	b.Helper()
	c, a := b.create("2580")
	b.succeeded(a)
	return b.code(c.ID)
}

func (b *bed) onlyOnce(pin string) {
	b.Helper()
	n := 0
	for _, c := range b.memory() {
		if c.Code == pin {
			n++
		}
	}
	if n != 1 {
		b.Errorf("the lock has the code %d times", n)
	}
}

// After each fault, the code is on the lock once, and unmanaged codes are unchanged.
func TestCodeIsSet_InSpiteOf(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]map[string]any{
		"a lost push":         {"lost_webhook": 1.0},
		"late pushes":         {"late_webhook_ms": 300},
		"duplicate pushes":    {"duplicate_webhook": 1.0},
		"a lagging list":      {"eventual_consistency_window_ms": 400},
		"occasional failures": {"failure_rate": map[string]float64{"transient": 0.2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(
				t,
				options{
					profile: "august",
					access:  access.Options{ConfirmTimeout: 2 * time.Second, ReadLag: time.Second},
				},
			)
			others := len(b.memory())
			b.faults(fault)
			c := b.set()
			b.onlyOnce("2580")
			a, err := b.access.Devices.DeleteCode(t.Context(), b.p, c.ID.String(), "")
			b.must(err)
			b.succeeded(a)
			if b.onLock("2580") || len(b.memory()) != others {
				t.Errorf("on the lock: %v", b.memory())
			}
		})
	}
}

func TestWrite_AcceptedAndDroppedIsRepeated(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{ConfirmTimeout: 300 * time.Millisecond}})
	b.faults(map[string]any{"drop_next": 1})
	b.set()
	b.onlyOnce("2580")
}

func TestOfflineDevice_CodeWaits(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{OfflineDebounce: time.Millisecond}})
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	b.until("the disconnect is announced", func() bool { return len(b.told("device.disconnected")) == 1 })
	c, a := b.create("2580")
	b.until("the code says why it waits", func() bool {
		return slices.ContainsFunc(b.code(c.ID).Errors,
			func(p domain.Problem) bool { return p.Code == "device_offline" })
	})
	if got := b.attempt(a); got.Status != device.Pending {
		t.Fatalf("attempt status %s", got.Status)
	}
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	b.succeeded(a)
	b.onlyOnce("2580")
	got := b.told("device.connected", "device.disconnected")
	if !slices.Equal(got, []string{"device.connected", "device.disconnected", "device.connected"}) {
		t.Errorf("events %v, want one per transition", got)
	}
}

func TestAttempt_ExpiresWhileCodeRemains(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{AttemptTimeout: 300 * time.Millisecond}})
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	_, a := b.create("2580")
	if a = b.ended(a); a.Status != device.Failed || a.ErrorType != "action_attempt_expired" {
		t.Fatalf("ended as %s %s", a.Status, a.ErrorType)
	}
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	b.until("the code is set when the device is back", func() bool { return b.onLock("2580") })
}

// A device gets its minimum gap between writes, even if each write belongs to another look.
func TestWriteGap_IsKept(t *testing.T) {
	t.Parallel()
	written := make(chan time.Time, 10)
	b := start(t, options{profile: "smartthings", speed: 1, vendor: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/access_codes") {
			written <- time.Now()
		}
		return false
	}})
	b.faults(map[string]any{"latency_ms": map[string]int{"min": 0, "max": 0}, "eventual_consistency_window_ms": 0})
	_, _ = b.create("2580")
	last := <-written
	for _, pin := range []string{"2581", "2582", "2583"} {
		_, _ = b.create(pin)
		next := <-written
		if pause := next.Sub(last); pause < 200*time.Millisecond {
			t.Errorf("%s was written %s after the previous one", pin, pause)
		}
		last = next
	}
}

func TestDuplicatePIN_IsRefused(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	u := b.unmanaged()[0]
	c := b.set()
	for name, pin := range map[string]string{"of an unmanaged code": *u.PIN, "of a managed code": "2580"} {
		_, _, err := b.access.Devices.CreateCode(t.Context(), b.p,
			device.NewCode{DeviceID: b.device, PIN: pin, EvenIfOffline: true})
		if e, _ := errors.AsType[*domain.Error](err); e == nil || e.Kind != domain.Conflict ||
			e.Type != "duplicate_access_code" {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := b.access.Devices.DeleteCode(t.Context(), b.p, c.ID.String(), "")
	b.must(err)
	_, again := b.create("2580") // while the first one is being removed
	b.succeeded(a)
	b.succeeded(again)
	b.onlyOnce("2580")
}

// The PIN is entered at the keypad after the server accepted the code and before it sent it.
func TestDuplicatePIN_AtKeypad(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	b.control(http.MethodPost, "keypad/codes", map[string]string{"name": "Guest", "code": "2580"})
	c, a := b.create("2580")
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	if a = b.ended(a); a.Status != device.Failed || a.ErrorType != "duplicate_code_on_device" {
		t.Fatalf("attempt %s %s", a.Status, a.ErrorType)
	}
	got := b.code(c.ID)
	if got.Status != device.StatusUnset || len(got.Errors) != 1 || got.Errors[0].Other == [16]byte{} {
		t.Fatalf("%s with %v", got.Status, got.Errors)
	}
	a, err := b.access.Devices.DeleteUnmanagedCode(t.Context(), b.p, got.Errors[0].Other.String())
	b.must(err)
	b.succeeded(a)
	b.until("the code is set", func() bool { return b.code(c.ID).Status == device.StatusSet })
	b.onlyOnce("2580")
}

func TestFullLock_FailsImmediately(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "smartthings"})
	room := 27 - len(b.memory())
	for i := range room {
		_, a := b.create(fmt.Sprintf("%04d", 2000+i*7))
		b.succeeded(a)
	}
	_, _, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{DeviceID: b.device, EvenIfOffline: true})
	if e, _ := errors.AsType[*domain.Error](err); e == nil || e.Type != "no_space_for_access_code_on_device" {
		t.Fatalf("%v", err)
	}
}

// Scheduled codes take no slot early. If the lock is full at their time, they wait for a slot.
func TestScheduledCode_TakesNoSlotEarly(t *testing.T) {
	t.Parallel()
	clock := &testClock{at: time.Now().Truncate(time.Second)}
	b := start(t, options{profile: "smartthings", access: access.Options{Now: clock.now}})
	const holds = 27
	at := func(hours int) string {
		return clock.now().Add(time.Duration(hours) * time.Hour).Format(time.RFC3339)
	}
	between := func(from, until string) (device.Code, error) {
		c, _, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
			DeviceID:      b.device,
			StartsAt:      from,
			EndsAt:        until,
			EvenIfOffline: true,
		})
		return c, err
	}
	refused := func(what string, err error) {
		t.Helper()
		if e, _ := errors.AsType[*domain.Error](err); e == nil || e.Type != "no_space_for_access_code_on_device" {
			t.Errorf("%s: %v", what, err)
		}
	}
	first, err := between(at(100), at(120))
	b.must(err)
	last := device.Code{}
	for i := range holds + 3 {
		last, err = between(at(1000+20*i), at(1010+20*i))
		b.must(err)
	}
	_, a := b.create("2580")
	b.succeeded(a)
	for range holds - len(b.memory()) - 1 {
		_, err := between(at(100), at(120))
		b.must(err)
	}
	_, err = between(at(115), at(200))
	refused("one stay more than there are places", err)
	_, err = b.access.Devices.UpdateCode(t.Context(), b.p, device.CodeChange{
		ID:            last.ID.String(),
		StartsAt:      at(110),
		EndsAt:        at(200),
		EvenIfOffline: true,
	})
	refused("a stay that is moved there", err)

	for i := range holds - len(b.memory()) {
		b.control(http.MethodPost, "keypad/codes",
			map[string]string{"name": "by hand", "code": fmt.Sprintf("%04d", 2000+i*7)})
	}
	b.until("the entered codes are read", func() bool { return len(b.unmanaged()) == holds-1 })
	clock.to(clock.now().Add(99*time.Hour + time.Minute))
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.must(b.access.Accounts.Resync(t.Context(), b.account))
	b.until("the lock is full", func() bool {
		got := b.code(first.ID)
		return len(got.Errors) == 1 && got.Errors[0].Code == "no_space_for_access_code_on_device"
	})
	_, err = b.access.Devices.DeleteUnmanagedCode(t.Context(), b.p, b.unmanaged()[0].ID.String())
	b.must(err)
	b.until("a slot is free", func() bool { return b.onLock(*b.code(first.ID).PIN) })
}

func TestDrift_IsRepaired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    func(b *bed, id string)
		event string
	}{
		"changed at the keypad": {func(b *bed, id string) {
			b.control(http.MethodPatch, "keypad/codes/"+id, map[string]string{"code": "9988"})
		}, "access_code.modified_external_to_seam"},
		"deleted at the keypad": {func(b *bed, id string) { b.control(http.MethodDelete, "keypad/codes/"+id, nil) }, "access_code.deleted_external_to_seam"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: "august", access: access.Options{ReadLag: 50 * time.Millisecond}})
			code := b.set()
			for _, on := range b.memory() {
				if on.Code == "2580" {
					c.do(b, on.ID)
				}
			}
			b.until("the code is repaired", func() bool {
				return slices.Contains(b.events(code.ID), c.event) && b.onLock("2580") &&
					b.code(code.ID).Status == device.StatusSet
			})
			b.onlyOnce("2580")
			if b.onLock("9988") {
				t.Error("the drifted PIN still opens")
			}
			if got := b.code(code.ID); len(got.Errors) > 0 {
				t.Errorf("errors %v", got.Errors)
			}
		})
	}
}

func TestAllowedModification(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	c, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID:                    b.device,
		PIN:                         "2580",
		EvenIfOffline:               true,
		ExternalModificationAllowed: true,
	})
	b.must(err)
	b.succeeded(a)
	for _, on := range b.memory() {
		if on.Code == "2580" {
			b.control(http.MethodPatch, "keypad/codes/"+on.ID, map[string]string{"code": "9988"})
		}
	}
	b.until("the change is adopted", func() bool { return *b.code(c.ID).PIN == "9988" })
	if w := b.code(c.ID).Warnings; len(w) != 1 || w[0].Code != "external_modification_in_effect" {
		t.Errorf("warnings %v", w)
	}
}

func TestUnmanagedCodes_AppearAndDisappear(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.control(http.MethodPost, "keypad/codes", map[string]string{"name": "Plumber", "code": "8080"})
	var found device.Code
	b.until("the code appears", func() bool {
		for _, u := range b.unmanaged() {
			if u.PIN != nil && *u.PIN == "8080" {
				found = u
			}
		}
		return found.Name != nil && *found.Name == "Plumber"
	})
	b.must(b.access.Accounts.Hint(t.Context(), b.account, "")) // a new read keeps its identifier
	c := b.set()
	b.until("the identifier is stable", func() bool {
		return slices.ContainsFunc(b.unmanaged(), func(u device.Code) bool { return u.ID == found.ID })
	})
	for _, on := range b.memory() {
		if on.Code == "8080" {
			b.control(http.MethodDelete, "keypad/codes/"+on.ID, nil)
		}
	}
	b.until("the code disappears", func() bool {
		return !slices.ContainsFunc(b.unmanaged(), func(u device.Code) bool { return u.ID == found.ID })
	})
	got := b.events(found.ID)
	if !slices.Equal(got, []string{"access_code.unmanaged.created", "access_code.unmanaged.removed"}) {
		t.Errorf("events %v", got)
	}
	b.code(c.ID)
}

func TestRemovedDevice_ComesBack(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	c := b.set()
	b.must(b.rec.RemoveDevice(t.Context(), b.p, b.device))
	b.until("the code shows that its device was removed", func() bool {
		got := b.code(c.ID)
		return got.Status == device.StatusUnknown &&
			slices.ContainsFunc(got.Errors, func(p domain.Problem) bool { return p.Code == "device_removed" })
	})
	a, err := b.access.Devices.DeleteCode(t.Context(), b.p, c.ID.String(), "")
	b.must(err)
	if a.Status != device.Succeeded {
		t.Errorf("deleting a code of a removed device: %s", a.Status)
	}
}

// If a server dies between a write and its record, the next one finds and claims the code.
func TestTakeover_ByNextServer(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{ConfirmTimeout: 5 * time.Second}})
	stop := b.stopEngine
	var codes []device.Code
	for i := range 8 {
		c, _ := b.create(fmt.Sprintf("25%02d", 10+i))
		codes = append(codes, c)
	}
	stop()
	b.startEngine()
	for _, c := range codes {
		b.until("every code is set", func() bool { return b.code(c.ID).Status == device.StatusSet })
		b.onlyOnce(*c.PIN)
	}
	for _, u := range b.unmanaged() {
		if slices.ContainsFunc(codes, func(c device.Code) bool { return u.PIN != nil && *u.PIN == *c.PIN }) {
			t.Errorf("a managed code counts as unmanaged")
		}
	}
}

func TestTimeBoundCodes(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"august", "smartthings", "kwikset"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			var c clock
			b := start(t, options{profile: profile, access: access.Options{Now: c.now}})
			far := time.Now().Add(100 * time.Hour).UTC().Format(time.RFC3339)
			further := time.Now().Add(101 * time.Hour).UTC().Format(time.RFC3339)
			code, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
				DeviceID:         b.device,
				PIN:              "2580",
				StartsAt:         far,
				EndsAt:           further,
				NativeScheduling: true,
				EvenIfOffline:    true,
			})
			b.must(err)
			b.succeeded(a) // nothing to wait for
			if got := b.code(code.ID); got.Status != device.StatusUnset || b.onLock("2580") {
				t.Fatalf("long before its start: status %s", got.Status)
			}
			begun := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
			soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
			a, err = b.access.Devices.UpdateCode(t.Context(), b.p, device.CodeChange{
				ID:            code.ID.String(),
				StartsAt:      begun,
				EndsAt:        soon,
				EvenIfOffline: true,
			})
			b.must(err)
			b.succeeded(a)
			if got := b.code(code.ID); got.Status != device.StatusSet || !b.onLock("2580") {
				t.Fatalf("after its start: status %s", got.Status)
			}
			c.ahead.Store(int64(2 * time.Hour))
			b.must(b.access.Accounts.Hint(t.Context(), b.account, b.lock))
			b.until("the code has expired and is gone", func() bool {
				_, err := b.access.Devices.GetCode(t.Context(), b.p, true, code.ID.String(), "", "")
				return err != nil && !b.onLock("2580")
			})
		})
	}
}

// The log shows the vendor's reason why a code is not on its lock, without anything that may be a
// PIN.
func TestLog_ReasonForUnreachableDevice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	var down atomic.Bool
	b := start(t, options{profile: "august", log: log, vendor: func(w http.ResponseWriter, r *http.Request) bool {
		if !down.Load() || !strings.Contains(r.URL.Path, "access_codes") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error_code": "UPGRADING", "message": "The hub of 2580 is being upgraded"}`)
		return true
	}})
	down.Store(true)
	b.create("2580")
	line := regexp.MustCompile(
		`(?m)^.*level=WARN msg="the device could not be reached" device_id=` + b.device + ` device=\S.* account=\S.* vendor=sandbox class=transient ` +
			`message="The hub of .* is being upgraded" pause=\S+ omitted=0 lasting=0s$`,
	)
	b.until("the log says why", func() bool {
		said, err := os.ReadFile(path)
		b.must(err)
		return line.Match(said)
	})
	if said, err := os.ReadFile(path); err != nil || strings.Contains(string(said), "of 2580") {
		t.Errorf("the log tells the PIN: %s %v", said, err)
	}
	down.Store(false)
}

// The log warns once of credentials that the vendor keeps refusing, says which account it is, and reports the end.
func TestLog_RefusedAccountOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	var refused atomic.Bool
	var lists atomic.Int32
	b := start(t, options{profile: "august", log: log, vendor: func(w http.ResponseWriter, r *http.Request) bool {
		if !refused.Load() {
			return false
		}
		lists.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error_code": "UNAUTHORIZED", "message": "The token was revoked"}`)
		return true
	}})
	said := func(pattern string) int {
		text, err := os.ReadFile(path)
		b.must(err)
		return len(regexp.MustCompile(pattern).FindAll(text, -1))
	}
	refused.Store(true)
	for range 5 { // each wake-up lists the devices again
		before := lists.Load()
		b.until("the account is listed", func() bool {
			b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
			return lists.Load() > before
		})
	}
	const warning = `(?m)^.*level=WARN msg="the vendor refuses the account's credentials" connected_account_id=\S+ ` +
		`account=locks vendor=sandbox message="The token was revoked.*" omitted=0 lasting=0s$`
	b.until("the log warns", func() bool { return said(warning) > 0 })
	refused.Store(false)
	b.until("the log reports the end", func() bool {
		b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
		return said(`level=INFO msg="the account works again".* account=locks vendor=sandbox lasted=`) == 1
	})
	if n := said(`level=WARN`); n != 1 {
		text, _ := os.ReadFile(path)
		t.Errorf("%d warnings:\n%s", n, text)
	}
}
