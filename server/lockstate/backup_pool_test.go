package lockstate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// backed creates a code with a backup pool, whose time has come.
func (b *bed) backed() view {
	b.Helper()
	return b.stay(b.now(), b.now().Add(5*time.Hour))
}

// stay creates a code with a backup pool.
func (b *bed) stay(from, to time.Time) view {
	b.Helper()
	c, _, err := b.add(Code{
		PIN:            "2580",
		StartsAt:       &from,
		EndsAt:         &to,
		UsesBackupPool: true,
	})
	b.must(err)
	return c
}

// pool returns the planned operations of other codes.
func (b *bed) pool(known ...view) (out []*Operation) {
	b.Helper()
	for _, w := range b.look().Codes {
		if !slices.ContainsFunc(known, func(c view) bool { return c.ID == w.Code }) {
			out = append(out, w)
		}
	}
	return out
}

// pullable reports whether a backup code can be pulled for a code.
func (b *bed) pullable(c view) bool {
	b.Helper()
	return b.device.Pool.BackupAvailable(&b.codes[b.index(c.ID)], b.now())
}

// A holder that crashes while it fills the pool leaves rows that the next holder finds. The pool
// never exceeds its size.
func TestBackupPool_CrashWhileFilling(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	guest := b.backed()
	first := b.pool(guest)
	if len(first) != 3 || first[0].Action != Put || first[0].PIN == "" || first[0].PIN == first[1].PIN {
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
		if !slices.ContainsFunc(first, func(f *Operation) bool { return f.Code == w.Code && f.PIN == w.PIN }) {
			t.Error("another code is added to the pool")
		}
	}
	if !b.pullable(guest) {
		t.Error("the late code cannot be pulled")
	}
	pulled, err := b.pull(guest)
	b.must(err)
	if pulled.PIN != first[0].PIN || pulled.ID != first[0].Code {
		t.Error("the pulled code is not the one on the lock")
	}
	if n := len(b.pool(guest, pulled)); n != 3 {
		t.Errorf("%d puts planned for a full pool", n)
	}
}

// A pool code that is deleted at the lock is put back and does not count until then.
func TestBackupPool_RefillsAfterDeletionAtLock(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	guest := b.backed()
	others := []Found{}
	for i, w := range b.pool(guest) {
		b.begin(w)
		f := found(string(rune('a'+i)), w.PIN)
		b.end(w, Outcome{Ref: f.Ref, Confirmed: true})
		others = append(others, f)
	}
	if len(b.pool(guest)) != 0 || !b.pullable(guest) {
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
	if b.pullable(guest) {
		t.Error("a code that is not on the lock can be pulled")
	}
	if _, err := b.pull(guest); err == nil {
		t.Error("the missing code was pulled")
	}
}

// filled returns a time-bound code on the lock and its full pool.
func (b *bed) filled(from, to time.Time) view {
	b.Helper()
	guest := b.stay(from, to)
	for i, w := range b.pool() {
		b.begin(w)
		b.end(w, Outcome{Ref: string(rune('a' + i)), Confirmed: true})
	}
	b.look()
	return guest
}

// A pool code is on the lock without a time frame. Until the lock has the time frame of the
// replaced code, the pulled code opens at any time.
func TestPulledCode_IsSetOnceTimeFrameIsWritten(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	woken := b.wakes
	pulled, err := b.pull(guest)
	b.must(err)
	if pulled.Status != StatusSetting || b.wakes != woken+1 {
		t.Errorf("status %s, woken %d times", pulled.Status, b.wakes-woken)
	}
	w := b.work(pulled)
	if w.Action != Put || w.EndsAt == nil {
		t.Fatalf("there is %s to do", w.Action)
	}
	b.begin(w)
	b.end(w, Outcome{Ref: w.Ref, Confirmed: true})
	if got := b.code(pulled.ID); got.Status != StatusSet || len(got.Warnings) > 0 {
		t.Errorf("with its time frame on the lock: status %s, warnings %v", got.Status, got.Warnings)
	}
}

func TestPulledCode_EndsBeforeTimeFrameIsWritten(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	pulled, err := b.pull(guest)
	b.must(err)
	b.to(b.now().Add(time.Hour))
	b.look()
	if got := b.code(pulled.ID); got.Status != StatusRemoving {
		t.Errorf("status %s, warnings %v", got.Status, got.Warnings)
	}
}

func TestBackupPool_PullOutsideTimeFrame(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	start := b.now()
	guest := b.filled(start.Add(time.Hour), start.Add(2*time.Hour))
	for at, want := range map[time.Duration]bool{59 * time.Minute: false, time.Hour: true, 2 * time.Hour: false} {
		b.clock = start.Add(at)
		if available := b.pullable(guest); available != want {
			t.Errorf("after %s: pullable %t", at, available)
		}
		if want {
			continue
		}
		_, err := b.pull(guest)
		if e, ok := errors.AsType[*domain.Error](err); !ok || e.Kind != domain.Invalid ||
			e.Type != "access_code_inactive" {
			t.Errorf("after %s: %v", at, err)
		}
	}
	b.clock = start.Add(time.Hour)
	pulled, err := b.pull(guest)
	b.must(err)
	b.to(start.Add(2 * time.Hour))
	if again, err := b.pull(guest); err != nil ||
		again.ID != pulled.ID {
		t.Errorf("repeating the pull failed: %v", err)
	}
}

// An unmanaged pulled code does not replace another, so another one may be pulled.
func TestPulledCode_BecomesUnmanaged(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	pulled, err := b.pull(guest)
	b.must(err)
	w := b.work(pulled)
	b.begin(w)
	b.end(w, Outcome{Ref: w.Ref, Confirmed: true})
	b.unmanage(pulled)
	if got := b.code(guest.ID); got.PulledBackup != uuid.Nil ||
		!b.pullable(guest) {
		t.Errorf("pulled %s, warnings %v, pullable %t", got.PulledBackup, got.Warnings, b.pullable(guest))
	}
}

func TestUnmanagedCode_UsesNoBackup(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	pulled, err := b.pull(guest)
	b.must(err)
	b.unmanage(guest)
	for _, c := range b.unmanaged() {
		if c.PulledBackup != uuid.Nil || len(c.Warnings) > 0 {
			t.Errorf("pulled %s, warnings %v", c.PulledBackup, c.Warnings)
		}
	}
	if got := b.code(pulled.ID); !got.IsBackup {
		t.Error("the pulled code is not a backup code")
	}
}

// A vendor may have undocumented PIN rules. If it refuses one PIN, another may work.
func TestBackupPool_TriesAnotherPIN(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	guest := b.backed()
	refused := b.pool(guest)
	for _, w := range refused {
		b.begin(w)
		b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "Not that one."}})
	}
	b.look()
	// Skips the backoff.
	b.edit(func(c *Code) { c.NextAttemptAt = nil })
	again := b.pool(guest)
	if len(again) != 3 {
		t.Fatalf("%d codes are retried", len(again))
	}
	for i, w := range again {
		if w.PIN == refused[i].PIN || w.Code != refused[i].Code {
			t.Error("the refused PIN is retried")
		}
	}
}

// The pool reports its state even if no PIN is free.
func TestBackupPool_NoFreePIN(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	guest := b.backed()
	w := b.pool(guest)[0]
	b.begin(w)
	b.end(w, Outcome{Ref: "a", Confirmed: true})
	b.look()
	if !b.pullable(guest) {
		t.Fatal("nothing can be pulled")
	}
	b.outOfPINs = true
	b.codes = slices.DeleteFunc(b.codes, func(c Code) bool { return c.InPool })
	b.look()
	if b.pullable(guest) {
		t.Error("a missing backup code is reported as available")
	}
}

// A code and the backup pulled for it are two codes on their lock. An extended stay needs slots for
// both.
func TestPulledCode_ExtensionNeedsTwoSlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tomorrow []PIN // PINs of the codes at that time
		room     bool
	}{
		"with room for both": {[]PIN{"4711"}, true},
		"with room for one":  {[]PIN{"4711", "4712"}, false},
		"on an empty lock":   {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "smartthings")
			b.device.Capabilities.MaxCodes = 3
			ends := b.now().Add(5 * time.Hour)
			guest := b.filled(b.now(), ends)
			pulled, err := b.pull(guest)
			b.must(err)
			for _, pin := range c.tomorrow {
				b.between(pin, b.now().Add(24*time.Hour), b.now().Add(48*time.Hour))
			}
			later := b.now().Add(30 * time.Hour)
			_, err = b.tryUpdate(guest, change{EndsAt: &later})
			want := ends
			if c.room {
				b.must(err)
				want = later
			} else if e, _ := errors.AsType[*domain.Error](err); e == nil || e.Type != "no_space_for_access_code_on_device" ||
				!strings.Contains(e.Message, b.now().Add(23*time.Hour).UTC().Format(time.RFC3339)) {
				t.Errorf("got %v", err)
			}
			for what, one := range map[string]view{"the code": guest, "the one that was pulled": pulled} {
				if got := b.code(one.ID); got.EndsAt == nil || !got.EndsAt.Equal(want) {
					t.Errorf("%s ends at %v, want %v", what, got.EndsAt, want)
				}
			}
		})
	}
}

// A device keeps one place free for a code that a client asks for.
func TestBackupPool_Size(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		max, others, want int
	}{
		"unknown number of places":           {0, 5, 3},
		"many places":                        {250, 5, 3},
		"two places besides that of a code":  {3, 0, 1},
		"one place besides that of a code":   {2, 0, 0},
		"places are left after later codes":  {10, 7, 1},
		"the last place is for another code": {10, 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.MaxCodes = c.max
			guest := b.backed()
			others := []view{guest}
			for i := range c.others {
				other, _ := b.create(PIN(fmt.Sprint(2000 + i)))
				others = append(others, other)
			}
			// A code of a later time takes no place.
			others = append(others, b.between("4711", b.now().Add(100*time.Hour), b.now().Add(101*time.Hour)))
			if got := len(b.pool(others...)); got != c.want {
				t.Errorf("%d codes in the pool, want %d", got, c.want)
			}
		})
	}
}

// A pool that was never asked for, or whose codes do not use it any more, has no codes.
func TestBackupPool_OnlyForCodesThatUseIt(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.on("4711", "k1")
	if n := len(b.pool()); n > 0 {
		t.Errorf("%d operations without a pool", n)
	}
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	b.deleteCode(guest)
	for _, w := range b.look().Codes {
		if w.Action != Delete {
			t.Errorf("planned action %q after the last code of the pool", w.Action)
		}
	}
}

func TestBackupPool_ShortageIsAnnounced(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	guest := b.backed()
	shown := func(when, problem, warning string) {
		t.Helper()
		codes := []string{"", ""}
		for i, problems := range [][]domain.Problem{b.device.Pool.Errors(), b.device.Pool.Warnings()} {
			for _, p := range problems {
				codes[i] = p.Code
			}
		}
		if codes[0] != problem || codes[1] != warning {
			t.Errorf("%s: error %q, warning %q; want %q, %q", when, codes[0], codes[1], problem, warning)
		}
	}
	pool := b.pool(guest)
	shown("at first", "", "")
	if due := b.look().Deadline; due == nil || due.After(b.now().Add(b.timeouts.DelayAfter)) {
		t.Errorf("next look at %v", due)
	}
	b.pass(b.timeouts.DelayAfter)
	b.look()
	shown("late", "empty_backup_access_code_pool", "")
	for i, w := range pool {
		b.begin(w)
		b.end(w, Outcome{Ref: fmt.Sprint("k", i), Confirmed: true})
		b.look()
		if i < len(pool)-1 {
			shown("partly filled", "", "partial_backup_access_code_pool")
		}
	}
	shown("full", "", "")
	b.read(found("k1", pool[1].PIN), found("k2", pool[2].PIN))
	b.look()
	shown("just short again", "", "")
}

// Pool codes are not shown, so none may stay on a device that the server does not manage.
func TestBackupPool_LeavesUnmanagedDevice(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	ours, foreign := found("g", "2580"), found("k9", "9999")
	for _, c := range b.codes {
		if c.ID == guest.ID {
			ours.Ref = c.Ref
		}
	}
	b.step(func(l *Lock) {
		l.EndAll("device_unmanaged", "The device became unmanaged.")
		l.DropPool()
	})
	b.device.Managed, b.device.ReadNeeded = false, true
	p := b.look()
	if len(p.Codes) != 3 || !p.ReadNeeded {
		t.Fatalf("%d operations, read %t", len(p.Codes), p.ReadNeeded)
	}
	for _, w := range p.Codes {
		if w.Action != Delete {
			t.Errorf("planned action %q", w.Action)
		}
		b.taken(w)
	}
	if due := b.look().Due; due == nil {
		t.Error("the removal is not awaited")
	}
	b.read(ours, foreign, found(p.Codes[0].Ref, p.Codes[0].PIN))
	if n := len(b.codesWith(func(c Code) bool { return c.InPool })); n != 1 {
		t.Errorf("%d codes in the pool, while the device shows one", n)
	}
	b.read(ours, foreign)
	if len(b.codes) != 1 || b.codes[0].ID != guest.ID {
		t.Errorf("%d codes are stored", len(b.codes))
	}
	b.device.ReadNeeded = true
	if p := b.look(); !p.ReadNeeded || len(p.Codes) > 0 || p.Due != nil {
		t.Errorf("afterwards: %+v", p)
	}
	b.read(ours, foreign) // only the presence counts
	if len(b.codes) != 1 {
		t.Errorf("%d codes are stored", len(b.codes))
	}
}

// An empty list has a grace period on such a device, too.
func TestBackupPool_UnmanagedDeviceShowsNothing(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	b.filled(b.now(), b.now().Add(time.Hour))
	b.device.Managed, b.device.ReadNeeded = false, true
	b.read()
	if n := len(b.codesWith(func(c Code) bool { return c.InPool })); n != 3 {
		t.Errorf("%d codes in the pool", n)
	}
	if b.device.EmptySince == nil || b.device.RereadAt == nil {
		t.Error("no second read is planned")
	}
}

func TestBackupPool_VendorChoosesPINs(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "salto_ks")
	guest, _, err := b.add(Code{StartsAt: new(b.now()), EndsAt: new(b.now().Add(time.Hour)), UsesBackupPool: true})
	b.must(err)
	pool := b.pool(guest)
	if len(pool) != 3 || pool[0].PIN != "" {
		t.Fatalf("%d puts planned", len(pool))
	}
	b.begin(pool[0])
	b.end(pool[0], Outcome{Ref: "k1", PIN: "111111", Confirmed: true})
	b.begin(pool[1])
	b.end(pool[1], Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no"}})
	b.look()
	if pulled, err := b.pull(guest); err != nil || pulled.PIN != "111111" {
		t.Errorf("pulled a code with a PIN: %t, %v", pulled.PIN != "", err)
	}
	if w := b.work(viewOf(*b.load().Code(pool[1].Code))); w.Action != Nothing {
		t.Errorf("a refused code is retried: %q", w.Action)
	}
}

// A pool code whose PIN a client wants leaves for it.
func TestBackupPool_MakesRoomForPIN(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	pool := b.codesWith(func(c Code) bool { return c.InPool })
	ours, _ := b.create(pool[0].PIN)
	if w := b.work(pool[0]); w.Action != Delete {
		t.Errorf("planned action %q for the pool code", w.Action)
	}
	if w := b.work(ours); w.Action != Nothing {
		t.Errorf("planned action %q before the PIN is free", w.Action)
	}
	if n := len(b.pool(guest, ours, pool[0])); n != 1 {
		t.Errorf("%d operations for a code in its place", n)
	}
}

func TestPullBackup_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code func(b *bed) view
		kind domain.Kind
		want string
	}{
		"being deleted": {func(b *bed) view {
			c := b.filled(b.now(), b.now().Add(time.Hour))
			b.deleteCode(c)
			return c
		}, domain.Conflict, "access_code_being_deleted"},
		"ongoing": {func(b *bed) view { return b.on("4711", "k1") }, domain.Invalid, "access_code_not_time_bound"},
		"without a pool": {func(b *bed) view {
			return b.onBetween("4711", b.now(), b.now().Add(time.Hour))
		}, domain.NotFound, "backup_access_code_not_found"},
		"the pool is empty": {func(b *bed) view { return b.backed() }, domain.NotFound, "backup_access_code_not_found"},
		"the device is gone": {func(b *bed) view {
			c := b.filled(b.now(), b.now().Add(time.Hour))
			b.device.Removed = true
			return c
		}, domain.NotFound, "backup_access_code_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			_, err := b.pull(c.code(b))
			if e, ok := domain.AsError(err); !ok || e.Kind != c.kind || e.Type != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A removal revokes the code and the one that was pulled for it.
func TestPulledCode_LeavesWithItsCode(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	pulled, err := b.pull(guest)
	b.must(err)
	b.deleteCode(guest)
	for _, c := range []view{guest, pulled} {
		if w := b.work(c); w.Action != Delete {
			t.Errorf("planned action %q", w.Action)
		}
	}
}

// After a pulled code was deleted, its code can get another one.
func TestPulledCode_Deleted(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	pulled, err := b.pull(guest)
	b.must(err)
	b.deleteCode(pulled)
	if again, err := b.pull(guest); err != nil || again.ID == pulled.ID {
		t.Errorf("pulled the same code: %t, %v", again.ID == pulled.ID, err)
	}
	second := b.code(guest.ID).PulledBackup
	b.deleteCode(viewOf(*b.load().Code(second)))
	for n := range 2 {
		var rest []Found
		for _, c := range b.codes {
			if c.RemovingSince == nil && c.Ref != "" {
				rest = append(rest, found(c.Ref, c.PIN))
			}
		}
		if n == 0 {
			for _, w := range b.look().Codes {
				if w.Action == Delete {
					b.taken(w)
				}
			}
		}
		b.read(rest...)
	}
	if got := b.code(guest.ID); got.PulledBackup != uuid.Nil {
		t.Errorf("the code refers to the deleted code %s", got.PulledBackup)
	}
}

// A deleted device comes back as a new one, with the codes of its pool.
func TestBackupPool_LeavesReturnedDevice(t *testing.T) {
	t.Parallel()
	was := Code{ID: uuid.New(), Name: new(poolName), VendorName: new("Backup"), PIN: "777777", Ref: "k1", InPool: true}
	for name, c := range map[string]struct {
		found Found
		ours  bool
	}{
		"by its identifier":                  {Found{Ref: "k5", Key: was.ID, PIN: "777777", Confirmed: true}, true},
		"by its reference, name, and PIN":    {Found{Ref: "k1", Name: "Backup", PIN: "777777", Confirmed: true}, true},
		"another reference":                  {Found{Ref: "k2", Name: "Backup", PIN: "777777", Confirmed: true}, false},
		"another name":                       {Found{Ref: "k1", Name: "Guest", PIN: "777777", Confirmed: true}, false},
		"another PIN":                        {Found{Ref: "k1", Name: "Backup", PIN: "777778", Confirmed: true}, false},
		"a hidden PIN of the same name":      {Found{Ref: "k1", Name: "Backup", Confirmed: true}, false},
		"a hidden PIN of a known identifier": {Found{Ref: "k1", Key: was.ID, Confirmed: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.abandoned = []Code{was}
			b.read(c.found, found("k9", "9999"))
			if got := len(b.unmanaged()); (got == 1) != c.ours {
				t.Errorf("%d unmanaged codes", got)
			}
			if left := len(b.abandoned); (left == 0) != c.ours {
				t.Errorf("%d codes of the deleted device", left)
			}
			p := b.look()
			if deletes := len(p.Codes) == 1 && p.Codes[0].Action == Delete &&
				p.Codes[0].Ref == c.found.Ref; deletes != c.ours {
				t.Errorf("operations %v", p.Operations)
			}
			if got := b.told("access_code.unmanaged.created"); (len(got) == 1) != c.ours {
				t.Errorf("events %v", got)
			}
		})
	}
}

// A pool that is switched off, or of a device that stores no codes, is empty.
func TestBackupPool_Off(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]func(d *Device){
		"switched off":     func(d *Device) { d.Pool.Enabled = false },
		"no codes at all":  func(d *Device) { d.Capabilities.OnlineCodes = false },
		"unmanaged device": func(d *Device) { d.Managed = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			guest := b.backed()
			off(&b.device)
			if n := len(b.pool(guest)); n > 0 {
				t.Errorf("%d puts planned", n)
			}
		})
	}
}

// A refused pool code gets another PIN only where that can help.
func TestBackupPool_KeepsRefusedPIN(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class FailureClass
		then  func(b *bed)
		fresh bool
	}{
		"duplicate":          {FailedDuplicate, func(*bed) {}, true},
		"rejected":           {FailedInvalid, func(*bed) {}, true},
		"full":               {FailedFull, func(*bed) {}, false},
		"for now":            {FailedForNow, func(*bed) {}, false},
		"no PIN is free":     {FailedInvalid, func(b *bed) { b.outOfPINs = true }, false},
		"vendor chooses PIN": {FailedInvalid, func(b *bed) { b.device.Capabilities.ProviderPIN = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.PINVisible = false // a duplicate is believed
			w := b.pool(b.backed())[0]
			b.begin(w)
			c.then(b)
			b.end(w, Outcome{Failure: &Failure{Class: c.class, Message: "no"}})
			b.look()
			got := b.code(w.Code)
			if (got.PIN != w.PIN) != c.fresh || (got.DesiredGen > 1) != c.fresh {
				t.Errorf("another PIN: %t, generation %d", got.PIN != w.PIN, got.DesiredGen)
			}
			if c.fresh && (got.Status != StatusSetting || len(got.Errors) > 0 || got.NextAttemptAt == nil) {
				t.Errorf("status %s, errors %v, next attempt at %v", got.Status, got.Errors, got.NextAttemptAt)
			}
		})
	}
}
