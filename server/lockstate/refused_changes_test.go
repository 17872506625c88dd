package lockstate

import (
	"testing"
	"time"
)

// A refused change leaves the code in its former state, in which it opens from its start.
func TestRefusedChange_FormerStateCounts(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	from := b.now().Add(50 * time.Hour)
	ahead, always := b.between("2580", from, from.Add(time.Hour)), b.on("4711", "k2")
	w := b.work(ahead)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	refused := Outcome{Failure: &Failure{Class: FailedInvalid, Message: "not such a PIN"}}
	for _, c := range []struct {
		code view
		pin  PIN
		want Status
	}{{ahead, "2581", StatusUnset}, {always, "4712", StatusSet}} {
		b.update(c.code, change{PIN: c.pin})
		w := b.work(c.code)
		b.begin(w)
		b.end(w, refused)
		if got := b.code(c.code.ID); got.Status != c.want || len(got.Errors) != 1 {
			t.Errorf("refused: status %s, errors %v, want %s", got.Status, got.Errors, c.want)
		}
	}
	if w := b.look(); w.Due == nil || !w.Due.Equal(from) {
		t.Errorf("due at %v, want %v", w.Due, from)
	}
	b.to(from)
	for range 2 {
		b.look()
	}
	if got := b.code(ahead.ID); got.Status != StatusSet {
		t.Errorf("after its start: status %s", got.Status)
	}
	if n := countOf(b.events(ahead.ID), "access_code.set_on_device"); n != 1 {
		t.Errorf("%d set events", n)
	}
}

// A change requested after the last read continues, even if the code was deleted at the lock
// before.
func TestDeletedAtLock_PendingChangeContinues(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "k1")
	allowed := true
	b.update(c, change{ExternalModificationAllowed: &allowed})
	b.update(c, change{PIN: "4711"})
	others := found("k9", "9999") // an empty list has a grace period
	b.read(others)
	w := b.work(c)
	if w.Action != Put || w.PIN != "4711" || !w.New {
		t.Fatalf("planned action %q", w.Action)
	}
	b.begin(w)
	b.end(w, Outcome{Ref: "k2", Confirmed: true})
	b.read(others) // a read without a new request: the code stays deleted
	if w := b.work(c); w.Action != Nothing {
		t.Errorf("planned action %q", w.Action)
	}
}

// A code moved to a later time is removed by the server, whatever is requested meanwhile and
// however that ends.
func TestRemovalOfOurs_IsNotExternal(t *testing.T) {
	t.Parallel()
	for name, removal := range map[string]func(b *bed, w *Operation){
		"answered": func(b *bed, w *Operation) {
			b.removal(w, true, nil)
		},
		"a crash": func(*bed, *Operation) {},
		"in doubt": func(b *bed, w *Operation) {
			b.removal(w, false, &Failure{Class: FailedForNow, Message: "no answer", Unsure: true})
		},
	} {
		for _, allowed := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", allowed", false: ", not allowed"}[allowed], func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "smartthings")
				c := b.between("2580", b.now(), b.now().Add(300*time.Hour))
				w := b.work(c)
				b.begin(w)
				b.end(w, Outcome{Ref: "k1", Confirmed: true})
				b.pass(time.Hour)
				b.update(c, change{
					ExternalModificationAllowed: &allowed,
					StartsAt:                    new(b.now().Add(100 * time.Hour)),
				},
				)
				w = b.work(c)
				if w.Action != Delete {
					t.Fatalf("planned action %q", w.Action)
				}
				if !b.started(w) {
					t.Fatal("the operation is not wanted")
				}
				b.update(c, change{StartsAt: new(b.now())})
				removal(b, w)
				b.read(found("k9", "9999"))
				b.pass(time.Minute)
				if w := b.work(c); w.Action != Put || !w.New {
					t.Errorf("planned action %q", w.Action)
				}
				if got := b.code(c.ID); len(got.Errors)+len(got.Warnings) > 0 {
					t.Errorf("errors %v, warnings %v", got.Errors, got.Warnings)
				}
				if n := countOf(b.events(c.ID), "access_code.deleted_external_to_seam"); n > 0 {
					t.Error("the code was announced as deleted externally")
				}
			})
		}
	}
}

// After a refused change, a code that was deleted at the lock is put back.
func TestRefusedChange_DeletedCodeIsPutBack(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "k1")
	b.update(c, change{PIN: "2581"})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "not such a PIN"}})
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != Put || !w.New {
		t.Errorf("planned action %q", w.Action)
	}
}

// A slow lock removes a code on our behalf, however late.
func TestRemovalOfOurs_ConfirmedLate(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c := b.between("2580", b.now(), b.now().Add(300*time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	b.update(c, change{StartsAt: new(b.now().Add(100 * time.Hour))})
	w = b.work(c)
	if !b.started(w) {
		t.Fatal("the operation is not wanted")
	}
	b.removal(w, false, nil)
	b.pass(2 * time.Minute)
	b.look()
	b.update(c, change{StartsAt: new(b.now())})
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != Put || !w.New {
		t.Errorf("planned action %q", w.Action)
	}
	if countOf(b.events(c.ID), "access_code.deleted_external_to_seam") > 0 {
		t.Error("the code was announced as deleted externally")
	}
}

// A lock with time frames stops opening at the old end if it refused an extension.
func TestRefusedExtension_NotSetAfterOldEnd(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]Status{"august": StatusUnset, "smartthings": StatusSet} {
		for when, late := range map[string]bool{"before its end": false, "after its end": true} {
			t.Run(profile+", refused "+when, func(t *testing.T) {
				t.Parallel()
				b := newBed(t, profile)
				end := b.now().Add(2 * time.Hour)
				c := b.between("2580", b.now(), end)
				w := b.work(c)
				b.begin(w)
				b.end(w, Outcome{Ref: "k1", Confirmed: true})
				b.update(c, change{EndsAt: new(end.Add(6 * time.Hour))})
				w = b.work(c)
				b.begin(w)
				if late {
					b.to(end)
				}
				b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "too long"}})
				if !late {
					if got := b.code(c.ID); got.Status != StatusSet {
						t.Errorf("before its end: status %s", got.Status)
					}
					if w := b.look(); want == StatusUnset && (w.Due == nil || !w.Due.Equal(end)) {
						t.Errorf("due at %v, want %v", w.Due, end)
					}
					b.to(end)
				}
				for range 2 {
					b.look()
				}
				if got := b.code(c.ID); got.Status != want || len(got.Errors) != 1 {
					t.Errorf("after its end: status %s, errors %v", got.Status, got.Errors)
				}
				if n := countOf(b.events(c.ID), "access_code.set_on_device"); n != 1 {
					t.Errorf("%d set events", n)
				}
			})
		}
	}
}

// If the last of several changes is refused, the state that the device confirmed last counts.
func TestRefusedChange_LastConfirmedStateCounts(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	from := b.now().Add(50 * time.Hour)
	c := b.between("2580", from, from.Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	b.update(c, change{PIN: "2581"})
	w = b.work(c)
	b.begin(w)
	b.update(c, change{PIN: "2582"})
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	b.refuse(c)
	b.to(from)
	b.look()
	told := b.tales("access_code.set_on_device", "access_code.code_changed")
	if len(told) != 2 || told[0].Type != "access_code.code_changed" {
		t.Fatalf("events %v", b.events(c.ID))
	}
	if change := told[0].Change; change.From.PIN != "2580" || change.To.PIN != "2581" || told[1].PIN != "2581" {
		t.Error("the event has another PIN than the device")
	}
}

// A code being removed is not being set, whatever else leaves the lock.
func TestRemovingCode_IsNotSetting(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k9", "9999"), found("k8", "8888"))
	c := b.between("2580", b.now(), b.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	b.update(c, change{PIN: "2581"})
	w = b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "no room"}})
	b.pass(time.Hour)
	b.look()
	b.read(found("k8", "8888"), found("k1", "2580"))
	if got := b.code(c.ID); got.Status != StatusRemoving {
		t.Errorf("status %s", got.Status)
	}
}

// A code that became unmanaged opens when its device says so.
func TestUnmanagedCode_IsSetBeforeItsStart(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	from := b.now().Add(50 * time.Hour)
	c := b.between("2580", from, from.Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	b.unmanage(c)
	if got := b.unmanaged()[0]; got.Status != StatusSet {
		t.Errorf("status %s", got.Status)
	}
	// The state of an older server.
	b.edit(func(c *Code) { c.Status = StatusUnset })
	f := found("k1", "2580")
	f.StartsAt, f.EndsAt = &from, new(from.Add(time.Hour))
	b.read(f)
	if got := b.unmanaged()[0]; got.Status != StatusSet {
		t.Errorf("read again: status %s", got.Status)
	}
}

// After the lock comes back, a code whose change was refused keeps its former state, and that one
// opens.
func TestReturnedLock_RefusedChange(t *testing.T) {
	t.Parallel()
	for name, profile := range map[string]string{"PINs are shown": "august", "PINs are hidden": "smartthings"} {
		for when, before := range map[string]bool{"before": true, "after": false} {
			if !before && profile != "august" { // its state is unknown
				continue
			}
			t.Run(name+", refused "+when, func(t *testing.T) {
				t.Parallel()
				b := newBed(t, profile)
				c := b.on("2580", "k1")
				is := map[string]Found{"august": found("k1", "2580"), "smartthings": found("k1", "")}[profile]
				b.update(c, change{PIN: "2581"})
				if before {
					b.refuse(c)
				}
				b.away()
				b.read(is)
				if !before {
					b.refuse(c)
				}
				if got := b.code(c.ID); got.Status != StatusSet || got.AppliedGen == 0 || len(got.Errors) != 1 {
					t.Errorf("back: status %s, errors %v, on the device: %v", got.Status, got.Errors, got.AppliedGen > 0)
				}
				b.pass(time.Minute)
				b.read(found("k9", "9999"))
				if w := b.work(c); w.Action != Put || !w.New {
					t.Errorf("deleted at the lock: planned action %q", w.Action)
				}
			})
		}
	}
}

func TestReturnedLock_RefusedChangeMissingCodeIsPut(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	b.update(c, change{PIN: "2581"})
	b.refuse(c)
	b.away()
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != Put || !w.New {
		t.Errorf("planned action %q", w.Action)
	}
}

func TestReturnedLock_AllowedDisabledCode(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	b.update(c, change{ExternalModificationAllowed: new(true)})
	b.pass(time.Minute)
	off := found("k1", "2580")
	off.Disabled = true
	b.read(off)
	b.away()
	b.read(off)
	if w, got := b.work(c), b.code(c.ID); w.Action != Nothing || got.Status != StatusSet ||
		len(got.Warnings) != 1 {
		t.Errorf("planned action %q, status %s, warnings %v", w.Action, got.Status, got.Warnings)
	}
	b.update(c, change{PIN: "2581"})
	b.away()
	b.read(off)
	if w := b.work(c); w.Action != Put || w.PIN != "2581" {
		t.Errorf("changed: planned action %q", w.Action)
	}
}
