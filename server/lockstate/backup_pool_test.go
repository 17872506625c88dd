package lockstate

import (
	"errors"
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
	pulled, err := b.pull(guest)
	b.must(err)
	if pulled.Status != StatusSetting {
		t.Errorf("status %s", pulled.Status)
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
