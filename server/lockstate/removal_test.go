package lockstate

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The deletion of a code was reported as successful. If the vendor delivers the code afterwards,
// the server removes it.
func TestTombstone_LateCreateIsRemoved(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"its answer was lost": false, "then it was refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, _ := b.create("2580")
			b.begin(b.work(c)) // the answer is lost
			if refused {
				w := b.work(c)
				b.begin(w)
				b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "full"}})
			}
			a := b.deleteCode(c)
			for n := 0; len(b.managed()) > 0; n++ {
				b.read(found("k9", "9999"))
				if b.pass(10 * time.Second); n > 60 {
					t.Fatal("the code still exists")
				}
			}
			if got := b.attempt(a).Status; got != Succeeded {
				t.Fatalf("attempt status %s", got)
			}
			b.pass(48 * time.Hour)
			late, stranger := found("k1", "2580"), found("k2", "1470")
			late.Key, stranger.Key = c.ID, uuid.New()
			guessed := found("k3", "") // in the slot of the code
			guessed.Key, guessed.KeyGuessed = c.ID, true
			b.read(found("k9", "9999"), guessed)
			if w := b.look(); len(w.Codes) > 0 {
				t.Fatalf("with an unmanaged code: planned actions %v", w.Codes)
			}
			b.read(found("k9", "9999"), late, stranger)
			w := b.look()
			if len(w.Codes) != 1 || w.Codes[0].Action != Delete || w.Codes[0].Ref != "k1" {
				t.Fatalf("planned actions %v", w.Codes)
			}
			b.taken(w.Codes[0])
			b.read(found("k9", "9999"), stranger)
			if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
				t.Errorf("afterwards: planned actions %v, %d unmanaged codes", w.Codes, len(b.unmanaged()))
			}
		})
	}
}

// deletedInDoubt returns the code that a vendor may still deliver for a code deleted while its
// create was uncertain.
func deletedInDoubt(b *bed) Found {
	b.Helper()
	c, _ := b.create("2580")
	b.begin(b.work(c))
	b.deleteCode(c)
	for len(b.managed()) > 0 {
		b.read(found("k9", "9999"))
		b.pass(10 * time.Second)
	}
	late := found("k1", "2580")
	late.Key = c.ID
	return late
}

// If the vendor cannot delete codes, the late code becomes unmanaged.
func TestTombstone_LateCreateCannotBeRemoved(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	late := deletedInDoubt(b)
	b.read(found("k9", "9999"), late)
	for _, w := range b.look().Codes {
		b.removal(w, false,
			&Failure{Class: FailedUnsupported, Message: "no"})
	}
	b.read(found("k9", "9999"), late)
	if w := b.look(); len(w.Codes) > 0 || len(b.unmanaged()) != 2 {
		t.Errorf("planned actions %v, %d unmanaged codes", w.Codes, len(b.unmanaged()))
	}
}

func TestReturnedDevice_KeepsConvertedCodes(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k1", "2580"))
	u := b.unmanaged()[0]
	b.convert(u, nil)
	b.read(found("k1", "2580"))
	b.away()
	b.read(found("k1", "2580"))
	if got := b.code(u.ID); got.Status != StatusSet || len(b.unmanaged()) > 0 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
}

// A planned write does not go to the device that now has the reference.
func TestRemovedDevice_PlannedWriteIsDropped(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.device.Removed, b.device.Online = true, false
	still := b.started(w)
	if w := b.look(); still || len(w.Codes) > 0 {
		t.Errorf("the write continues: %v, %v", still, w.Codes)
	}
}

// The same for a device that became unmanaged.
func TestUnmanagedDevice_PlannedWriteIsDropped(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.device.Managed = false
	still := b.started(w)
	if w := b.look(); still || len(w.Codes) > 0 {
		t.Errorf("the write continues: %v, %v", still, w.Codes)
	}
}

// A code on a removed device still opens there. Deleting its record must not announce a removal.
func TestRemovedDevice_DeletedCodeIsNotAnnouncedAsRemoved(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]func(b *bed, c view, leave func()){
		"deleted once": func(b *bed, c view, leave func()) {
			leave()
			b.deleteCode(c)
		},
		"deleted before, and again": func(b *bed, c view, leave func()) {
			b.deleteCode(c)
			leave()
			b.deleteCode(c)
		},
		"deleted before the first look": func(b *bed, c view, leave func()) {
			b.device.Removed, b.device.Online = true, false
			b.deleteCode(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "smartthings")
			c := b.on("2580", "k1")
			deleted(b, c, func() {
				b.leave(false)
			})
			if got := b.told("access_code.removed_from_device", "access_code.deleted"); !slices.Equal(got,
				[]string{"access_code.deleted"}) {
				t.Errorf("events %v", got)
			}
		})
	}
}

// A code of a removed device ends at its time. If the device can return with it, the code is removed then.
func TestRemovedDevice_EndOfCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on, permanently bool
		left            int
		status          Status
	}{
		"on the device":                   {true, false, 1, StatusRemoving},
		"not on the device":               {false, false, 0, ""},
		"on the device, which is no more": {true, true, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			end := b.now().Add(time.Hour)
			code := b.between("2580", b.now(), end)
			if c.on {
				b.set(code, "k1")
			}
			ongoing := b.on("4711", "k2")
			b.leave(c.permanently)
			if got := b.code(code.ID); got.Status != StatusUnknown {
				t.Errorf("status %s", got.Status)
			}
			if due := b.look().Due; due == nil || !due.Equal(end) {
				t.Errorf("due at %v, want %v", due, end)
			}
			b.to(end)
			p := b.look()
			if p.Due != nil || len(p.Operations) > 0 {
				t.Errorf("afterwards: due at %v, operations %v", p.Due, p.Operations)
			}
			if b.exists(code.ID) != (c.left == 1) {
				t.Fatalf("the code exists: %t", b.exists(code.ID))
			}
			if c.left == 1 && b.code(code.ID).Status != c.status {
				t.Errorf("status %s", b.code(code.ID).Status)
			}
			if got := b.code(ongoing.ID); got.Status != StatusUnknown {
				t.Errorf("the other code: status %s", got.Status)
			}
		})
	}
}

// Unmanaged codes leave with their device, and what waited for it has failed. A deletion has succeeded if the device
// cannot return.
func TestRemovedDevice_Attempts(t *testing.T) {
	t.Parallel()
	for name, permanently := range map[string]bool{"may return": false, "cannot return": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c := b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "1470"))
			conversion := b.convert(b.unmanaged()[0], nil)
			_, creation := b.create("4711")
			deletion := b.deleteCode(c)
			b.leave(permanently)
			if len(b.unmanaged()) > 0 {
				t.Error("the unmanaged code still exists")
			}
			if got := b.attempt(creation); got.Status != Failed || got.ErrorType != "device_removed" {
				t.Errorf("creation %s %s", got.Status, got.ErrorType)
			}
			if got := b.attempt(conversion); got.Status != Failed {
				t.Errorf("conversion %s %s", got.Status, got.ErrorType)
			}
			if got := b.attempt(deletion); (got.Status == Succeeded) != permanently || b.exists(c.ID) == permanently {
				t.Errorf("deletion %s, the code exists: %t", got.Status, b.exists(c.ID))
			}
			if n := countOf(b.events(c.ID), "access_code.removed_from_device"); n > 0 {
				t.Error("the code that still opens counts as removed")
			}
		})
	}
}

// Forget keeps the codes of the pool, which are recognized wherever they show.
func TestForget(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	b.filled(b.now(), b.now().Add(time.Hour))
	b.step(func(l *Lock) { l.Forget() })
	if len(b.codes) != 3 || len(b.codesWith(func(c Code) bool { return c.InPool })) != 3 {
		t.Errorf("%d codes are left", len(b.codes))
	}
	if got := b.told("access_code.removed_from_device", "access_code.deleted"); len(got) != 1 {
		t.Errorf("events %v", got)
	}
}

// The codes that a pending removal left behind on its device are removed when it returns.
func TestReturnedDevice_ContinuesRemoval(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c := b.on("2580", "k1")
	a := b.deleteCode(c)
	b.away()
	if got := b.attempt(a); got.Status != Failed || got.ErrorType != "device_removed" {
		t.Errorf("removal %s (%s)", got.Status, got.ErrorType)
	}
	b.read(found("k1", "2580"))
	w := b.work(c)
	if w.Action != Delete || w.Ref != "k1" || len(b.unmanaged()) > 0 {
		t.Fatalf("planned action %q of %q, %d unmanaged codes", w.Action, w.Ref, len(b.unmanaged()))
	}
	b.removal(w, true, nil)
	b.read()
	if len(b.managed()) != 0 {
		t.Error("the code still exists")
	}
}

// A read in progress when its device was removed does not count.
func TestRemovedDevice_ReadIsIgnored(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.device.Removed = true
	b.observed(0, []Found{found("late", "975310")})
	if len(b.codes) > 0 {
		t.Errorf("%d codes", len(b.codes))
	}
}

// The status of a code on a returned device is unknown until the first look.
func TestReturnedDevice_Status(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, refused := b.on("2580", "k1"), b.on("4711", "k2")
	later := b.between("3690", b.now().Add(100*time.Hour), b.now().Add(101*time.Hour))
	b.update(refused, change{PIN: "1470"})
	b.refuse(refused)
	b.away()
	for _, one := range []view{c, refused, later} {
		if got := b.code(one.ID).Status; got != StatusUnknown {
			t.Errorf("away: status %s", got)
		}
	}
	b.look()
	for i, want := range []Status{StatusSetting, StatusUnset, StatusUnset} {
		if got := b.code([]view{c, refused, later}[i].ID).Status; got != want {
			t.Errorf("back: status %s, want %s", got, want)
		}
	}
	b.read(found("k1", "2580"), found("k2", "4711"))
	for i, want := range []Status{StatusSet, StatusSet, StatusUnset} {
		if got := b.code([]view{c, refused, later}[i].ID).Status; got != want {
			t.Errorf("read: status %s, want %s", got, want)
		}
	}
}
