package lockstate

import (
	"slices"
	"testing"
)

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

// If PINs are hidden, a slot belongs to the code that was written there last.
func TestHiddenPIN_SlotBelongsToLastWriter(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	first, _ := b.create("2580")
	second, _ := b.create("2581")
	for _, c := range []view{first, second} {
		w := b.work(c)
		if !b.started(w) {
			t.Fatal("the operation is not wanted")
		}
		b.place(w, "3")
		if c.ID == first.ID { // the lock does not accept it
			b.end(w,
				Outcome{Failure: &Failure{Class: FailedForNow, Message: "no"}})
		}
	}
	b.observed(0, []Found{{Ref: "3", Confirmed: true}})
	if a, z := b.code(first.ID), b.code(second.ID); a.Status == StatusSet || z.Status != StatusSet {
		t.Errorf("first attempt %s, second %s", a.Status, z.Status)
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
