package reconcile_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// backed creates a code with a backup pool.
func (b *bed) backed() device.Code {
	b.Helper()
	c, _ := b.backedAttempt("2580")
	return c
}

func (b *bed) backedAttempt(pin string) (device.Code, device.Attempt) {
	b.Helper()
	c, a, err := b.access.Devices.CreateCode(b.Context(), b.p, device.NewCode{
		DeviceID:         b.device,
		PIN:              pin,
		NativeScheduling: true,
		EvenIfOffline:    true,
		BackupPool:       true,
		StartsAt:         time.Now().Format(time.RFC3339),
		EndsAt:           time.Now().Add(5 * time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	return c, a
}

// pool returns the planned work for pool codes.
func (b byHand) pool(known ...device.Code) (out []work) {
	b.Helper()
	for _, w := range b.look().Codes {
		if !slices.ContainsFunc(known, func(c device.Code) bool { return c.ID == w.ID }) {
			out = append(out, w)
		}
	}
	return out
}

// A holder that crashes while it fills the pool leaves rows that the next holder finds. The pool
// never exceeds its size.
func TestBackupPool_CrashWhileFilling(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	guest := b.backed()
	first := b.pool(guest)
	if len(first) != 3 || first[0].Action != lockstate.Put || first[0].PIN == "" || first[0].PIN == first[1].PIN {
		t.Fatalf("%d puts planned", len(first))
	}
	b.begin(first[0]) // a crash: the outcome is unknown
	b.begin(first[1])
	b.read(found("7", first[0].PIN))
	again := b.pool(guest)
	if len(b.unmanaged()) != 0 {
		t.Error("the code on the lock counts as unmanaged")
	}
	for _, w := range again {
		if !slices.ContainsFunc(first, func(f work) bool { return f.ID == w.ID && f.PIN == w.PIN }) {
			t.Error("another code is added to the pool")
		}
	}
	if got := b.code(guest.ID); !got.BackupAvailable {
		t.Error("the late code cannot be pulled")
	}
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	if *pulled.PIN != first[0].PIN || pulled.ID != first[0].ID {
		t.Error("the pulled code is not the one on the lock")
	}
	if n := len(b.pool(guest, pulled)); n != 3 {
		t.Errorf("%d puts planned for a full pool", n)
	}
}

// A pool code that is deleted at the lock is put back and does not count until then.
func TestBackupPool_RefillsAfterDeletionAtLock(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	guest := b.backed()
	others := []shown{}
	for i, w := range b.pool(guest) {
		b.begin(w)
		f := found(string(rune('a'+i)), w.PIN)
		b.end(w, outcome{Ref: f.Ref, Confirmed: true})
		others = append(others, f)
	}
	if len(b.pool(guest)) != 0 || !b.code(guest.ID).BackupAvailable {
		t.Fatal("the pool is not full")
	}
	b.read(others[2])
	again := b.pool(guest)
	if len(again) != 2 || again[0].PIN != others[0].PIN {
		t.Fatalf("%d puts planned", len(again))
	}
	if got := b.told("access_code.deleted_external_to_seam"); len(got) != 0 {
		t.Error("events about pool codes were sent")
	}
	b.read(found("z", "987654"))
	b.look()
	if b.code(guest.ID).BackupAvailable {
		t.Error("a code that is not on the lock can be pulled")
	}
	if _, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String()); err == nil {
		t.Error("the missing code was pulled")
	}
}

// Some locks reject a start in the past, so the pulled code gets a later one.
func TestPulledCode_LockRejectsPastStart(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "kwikset"})
	guest := b.backed()
	b.until("a backup code can be pulled", func() bool { return b.code(guest.ID).BackupAvailable })
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	b.until("the lock has its time frame", func() bool { return len(b.code(pulled.ID).Mutations) == 0 })
	if got := b.code(pulled.ID); got.Status != device.StatusSet || len(got.Errors) > 0 ||
		!got.StartsAt.Equal(*guest.StartsAt) ||
		!got.EndsAt.Equal(*guest.EndsAt) {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// filled returns a time-bound code on the lock and its full pool.
func (b byHand) filled(from, to time.Time) device.Code {
	b.Helper()
	guest, _, err := b.access.Devices.CreateCode(b.Context(), b.p, device.NewCode{
		DeviceID:         b.device,
		PIN:              "2580",
		NativeScheduling: true,
		EvenIfOffline:    true,
		BackupPool:       true,
		StartsAt:         from.Format(time.RFC3339),
		EndsAt:           to.Format(time.RFC3339),
	})
	b.must(err)
	for i, w := range b.pool() {
		b.begin(w)
		b.end(w, outcome{Ref: string(rune('a' + i)), Confirmed: true})
	}
	b.look()
	return guest
}

func warned(c device.Code, of string) bool {
	return slices.ContainsFunc(c.Warnings, func(p domain.Problem) bool { return p.Code == of })
}

// A pool code is on the lock without a time frame. Until the lock has the time frame of the
// replaced code, the pulled code opens at any time.
func TestPulledCode_IsSetOnceTimeFrameIsWritten(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	guest := b.filled(clock.now(), clock.now().Add(time.Hour))
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	if pulled.Status != device.StatusSetting || !warned(pulled, "delay_in_setting_on_device") {
		t.Errorf("status %s, warnings %v", pulled.Status, pulled.Warnings)
	}
	w := b.work(pulled)
	if w.Action != lockstate.Put || w.EndsAt == nil {
		t.Fatalf("there is %s to do", w.Action)
	}
	b.begin(w)
	b.end(w, outcome{Ref: w.Ref, Confirmed: true})
	if got := b.code(pulled.ID); got.Status != device.StatusSet || len(got.Warnings) > 0 {
		t.Errorf("with its time frame on the lock: status %s, warnings %v", got.Status, got.Warnings)
	}
}

func TestPulledCode_EndsBeforeTimeFrameIsWritten(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	guest := b.filled(clock.now(), clock.now().Add(time.Hour))
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	clock.at = clock.now().Add(time.Hour)
	b.look()
	if got := b.code(pulled.ID); got.Status != device.StatusRemoving || !warned(got, "delay_in_removing_from_device") {
		t.Errorf("status %s, warnings %v", got.Status, got.Warnings)
	}
}

func TestBackupPool_PullOutsideTimeFrame(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	start := clock.now()
	guest := b.filled(start.Add(time.Hour), start.Add(2*time.Hour))
	for at, want := range map[time.Duration]bool{59 * time.Minute: false, time.Hour: true, 2 * time.Hour: false} {
		clock.at = start.Add(at)
		if available := b.code(guest.ID).BackupAvailable; available != want {
			t.Errorf("after %s: pullable %t", at, available)
		}
		if want {
			continue
		}
		_, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
		if e, ok := errors.AsType[*domain.Error](err); !ok || e.Kind != domain.Invalid ||
			e.Type != "access_code_inactive" {
			t.Errorf("after %s: %v", at, err)
		}
	}
	clock.at = start.Add(time.Hour)
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	clock.at = start.Add(2 * time.Hour)
	if again, err := b.access.Devices.PullBackupCode(
		t.Context(),
		b.p,
		guest.ID.String(),
	); err != nil ||
		again.ID != pulled.ID {
		t.Errorf("repeating the pull failed: %v", err)
	}
}

// An unmanaged pulled code does not replace another, so another one may be pulled.
func TestPulledCode_BecomesUnmanaged(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	guest := b.filled(clock.now(), clock.now().Add(time.Hour))
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	w := b.work(pulled)
	b.begin(w)
	b.end(w, outcome{Ref: w.Ref, Confirmed: true})
	b.update(device.CodeChange{ID: pulled.ID.String(), Managed: new(bool)})
	if got := b.code(guest.ID); got.PulledBackup != uuid.Nil || warned(got, "using_backup_access_code") ||
		!got.BackupAvailable {
		t.Errorf("pulled %s, warnings %v, pullable %t", got.PulledBackup, got.Warnings, got.BackupAvailable)
	}
}

func TestUnmanagedCode_UsesNoBackup(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	guest := b.filled(clock.now(), clock.now().Add(time.Hour))
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	b.update(device.CodeChange{ID: guest.ID.String(), Managed: new(bool)})
	for _, c := range b.unmanaged() {
		if c.PulledBackup != uuid.Nil || len(c.Warnings) > 0 {
			t.Errorf("pulled %s, warnings %v", c.PulledBackup, c.Warnings)
		}
	}
	if got := b.code(pulled.ID); !got.Backup {
		t.Error("the pulled code is not a backup code")
	}
}

// A vendor may have undocumented PIN rules. If it refuses one PIN, another may work.
func TestBackupPool_TriesAnotherPIN(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	guest := b.backed()
	refused := b.pool(guest)
	for _, w := range refused {
		b.begin(w)
		b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "Not that one."}})
	}
	b.look()
	// Skips the backoff.
	_, err := b.db.Pool.Exec(t.Context(), "update access_codes set next_attempt_at = null where in_pool")
	b.must(err)
	again := b.pool(guest)
	if len(again) != 3 {
		t.Fatalf("%d codes are retried", len(again))
	}
	for i, w := range again {
		if w.PIN == refused[i].PIN || w.ID != refused[i].ID {
			t.Error("the refused PIN is retried")
		}
	}
}

// The pool reports its state even if no PIN is free.
func TestBackupPool_NoFreePIN(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	guest := b.backed()
	w := b.pool(guest)[0]
	b.begin(w)
	b.end(w, outcome{Ref: "a", Confirmed: true})
	b.look()
	if !b.code(guest.ID).BackupAvailable {
		t.Fatal("nothing can be pulled")
	}
	_, err := b.db.Pool.Exec(t.Context(),
		`update devices set capabilities = capabilities || '{"code_lengths": [13]}'`) // no PIN has this length
	b.must(err)
	_, err = b.db.Pool.Exec(t.Context(), "delete from access_codes where in_pool")
	b.must(err)
	b.look()
	if b.code(guest.ID).BackupAvailable {
		t.Error("a missing backup code is reported as available")
	}
}

// inPool counts the pool codes on the lock.
func (b *bed) inPool() (n int) {
	b.Helper()
	for _, c := range b.memory() {
		if c.Name == "Backup code" {
			n++
		}
	}
	return n
}

// Pool codes leave an unmanaged lock.
func TestBackupPool_LeavesUnmanagedLock(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "yale"})
	others := len(b.memory())
	_, a := b.create("1379")
	b.succeeded(a)
	_, a = b.backedAttempt("2580")
	b.succeeded(a)
	b.until("the pool is full", func() bool { return b.inPool() == 3 })
	b.must(b.access.Devices.UpdateDevice(t.Context(), b.p, b.device, device.Change{Managed: new(bool)}))
	b.until("the pool is gone", func() bool { return b.inPool() == 0 })
	if n := len(b.memory()); n != others+2 {
		t.Errorf("%d codes on the lock, want %d unmanaged and two of ours", n, others)
	}
	managed := true
	b.must(b.access.Devices.UpdateUnmanagedDevice(t.Context(), b.p, b.device, device.Change{Managed: &managed}))
	b.until("the pool is full again", func() bool { return b.inPool() == 3 })
}

// A deleted device, or one of a disconnected account, comes back as another device. Its pool codes
// are recognized and removed.
func TestBackupPool_LeavesDeviceThatCameBack(t *testing.T) {
	t.Parallel()
	for how, giveUp := range map[string]func(b *bed){
		"deleted": func(b *bed) { b.must(b.access.Devices.DeleteDevice(b.Context(), b.p, b.device)) },
		"its account was disconnected": func(b *bed) {
			b.must(b.access.Accounts.DisconnectAccount(b.Context(), b.account))
			_, err := b.access.Accounts.ConnectAccount(b.Context(), account.NewAccount{
				WorkspaceID: b.p.WorkspaceID,
				Adapter:     account.SandboxAdapter,
				DisplayName: "again",
				Config:      json.RawMessage(`{}`),
			})
			b.must(err)
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: "yale"})
			others := len(b.memory())
			guest, a := b.backedAttempt("2580")
			b.succeeded(a)
			b.until("the pool is full", func() bool { return b.inPool() == 3 })
			b.until("the pool is available", func() bool { return b.code(guest.ID).BackupAvailable })
			old := b.device
			giveUp(b)
			b.until("the device is back", func() bool {
				ds, _, err := b.access.Devices.ListDevices(
					t.Context(),
					b.p,
					device.Filter{},
					domain.Page{Limit: 10},
				)
				b.must(err)
				if len(ds) == 1 {
					b.device = ds[0].ID.String()
				}
				return len(ds) == 1 && b.device != old
			})
			b.until("the pool is gone", func() bool { return b.inPool() == 0 })
			b.until("its codes are read", func() bool { return len(b.unmanaged()) == others+1 })
			// First listing and second listing, which includes the guest's code.
			if n := len(b.told("access_code.unmanaged.created")); n != others+others+1 {
				t.Errorf("%d events about unmanaged codes", n)
			}
		})
	}
}

// A code and the backup pulled for it are two codes on their lock. An extended stay needs slots for
// both.
func TestPulledCode_ExtensionNeedsTwoSlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tomorrow []string // PINs of the codes at that time
		room     bool
	}{
		"with room for both": {[]string{"4711"}, true},
		"with room for one":  {[]string{"4711", "4712"}, false},
		"on an empty lock":   {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "smartthings")
			_, err := b.db.Pool.Exec(t.Context(),
				`update devices set capabilities = capabilities || '{"max_codes": 3}'`)
			b.must(err)
			ends := clock.now().Add(5 * time.Hour)
			guest := b.filled(clock.now(), ends)
			pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
			b.must(err)
			for _, pin := range c.tomorrow {
				b.between(pin, clock.now().Add(24*time.Hour), clock.now().Add(48*time.Hour))
			}
			later := clock.now().Add(30 * time.Hour)
			_, err = b.access.Devices.UpdateCode(t.Context(), b.p,
				device.CodeChange{ID: guest.ID.String(), EndsAt: later.Format(time.RFC3339), EvenIfOffline: true})
			want := ends
			if c.room {
				b.must(err)
				want = later
			} else if e, _ := errors.AsType[*domain.Error](err); e == nil || e.Type != "no_space_for_access_code_on_device" ||
				!strings.Contains(e.Message, clock.now().Add(23*time.Hour).UTC().Format(time.RFC3339)) {
				t.Errorf("got %v", err)
			}
			for what, one := range map[string]device.Code{"the code": guest, "the one that was pulled": pulled} {
				if got := b.code(one.ID); got.EndsAt == nil || !got.EndsAt.Equal(want) {
					t.Errorf("%s ends at %v, want %v", what, got.EndsAt, want)
				}
			}
		})
	}
}

// A pass plans a new pool code and starts to set it in one transaction. After a crash, the code must be recognized.
func TestBackupPool_NewCodeIsStartedAtOnce(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	guest := b.backed()
	_, started := b.advance(device.Report{}, func(w device.Work) device.Next {
		for _, op := range w.Operations {
			if op.Code != guest.ID {
				return device.Next{Start: &op}
			}
		}
		return device.Next{}
	})
	if started == nil {
		t.Fatal("no pool code is started")
	}
	for _, w := range b.pool(guest) {
		if w.ID == started.Code && !w.WriteUncertain {
			t.Error("the start of the write was not recorded")
		}
	}
}
