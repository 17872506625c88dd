package lockstate

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// If changes at the lock are allowed, the time frame on the lock decides whether the code opens.
func TestAllowedChange_TimeFrameDecidesStatus(t *testing.T) {
	t.Parallel()
	type frame struct{ from, to int } // hours from now; zero: none
	for name, c := range map[string]struct {
		was, is frame
		before  Status
		after   Status
		told    int // number of set events after the change
	}{
		"made permanent before its start": {frame{50, 60}, frame{}, StatusUnset, StatusSet, 1},
		"begun before its start":          {frame{50, 60}, frame{-1, 60}, StatusUnset, StatusSet, 1},
		"with another start ahead":        {frame{50, 60}, frame{55, 60}, StatusUnset, StatusUnset, 0},
		"put off once it opens":           {frame{-1, 60}, frame{50, 60}, StatusSet, StatusUnset, 0},
		"made longer while it opens":      {frame{-1, 60}, frame{-1, 90}, StatusSet, StatusSet, 0},
		"given to an ongoing code":        {frame{}, frame{50, 60}, StatusSet, StatusUnset, 0},
	} {
		for _, disabled := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and disabled until later"}[disabled], func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "august")
				show := func(fr frame) Found {
					f := found("k1", "2580")
					if fr != (frame{}) {
						f.StartsAt = new(b.now().Add(time.Duration(fr.from) * time.Hour))
						f.EndsAt = new(b.now().Add(time.Duration(fr.to) * time.Hour))
					}
					return f
				}
				was, is := show(c.was), show(c.is)
				var code view
				if was.StartsAt == nil {
					code = b.on("2580", "k1")
				} else {
					code = b.between("2580", *was.StartsAt, *was.EndsAt)
					b.set(code, "k1")
				}
				b.update(code, change{ExternalModificationAllowed: new(true)})
				if got := b.code(code.ID); got.Status != c.before {
					t.Fatalf("before the change: status %s", got.Status)
				}
				before := countOf(b.events(code.ID), "access_code.set_on_device")
				b.pass(time.Minute) // past the read lag
				if disabled {
					off := is
					off.Disabled = true
					b.read(off)
					if got := b.code(code.ID); got.Status != c.before {
						t.Errorf("disabled: status %s", got.Status)
					}
				}
				for range 2 {
					b.read(is)
				}
				if got := b.code(code.ID); got.Status != c.after || got.AppliedGen == 0 {
					t.Errorf("after the change: status %s, want %s", got.Status, c.after)
				}
				if n := countOf(b.events(code.ID), "access_code.set_on_device") - before; n != c.told {
					t.Errorf("%d set events, want %d", n, c.told)
				}
				if is.StartsAt == nil || !is.StartsAt.After(b.now()) {
					return
				}
				if w := b.look(); w.Due == nil || w.Due.After(*is.StartsAt) {
					t.Errorf("due at %v, want %v", w.Due, is.StartsAt)
				}
				b.to(*is.StartsAt)
				b.look()
				if got := b.code(code.ID); got.Status != StatusSet {
					t.Errorf("after its start: status %s", got.Status)
				}
			})
		}
	}
}

// allowing returns a code whose modification at its lock is allowed.
func allowing(t *testing.T) (*bed, view) {
	t.Helper()
	b := newFreshBed(t, "august")
	c := b.on("2580", "k1")
	b.update(c, change{ExternalModificationAllowed: new(true)})
	return b, c
}

// A change at the lock is undone once such modifications are forbidden.
func TestForbidModification_UndoesChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found Found
		ref   string // where the code is put
	}{
		"deleted":  {found("k0", "1111"), ""},
		"disabled": {disabled("2580"), "k1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, code := allowing(t)
			b.read(c.found)
			if w := b.work(code); w.Action != Nothing || len(b.code(code.ID).Warnings) != 1 {
				t.Fatalf("while allowed: planned action %q", w.Action)
			}
			a := b.update(code, change{ExternalModificationAllowed: new(false)})
			if got := b.code(code.ID); a.Status != Pending || len(got.Warnings)+len(got.Errors) > 0 {
				t.Errorf("attempt %s, warnings %v", a.Status, got.Warnings)
			}
			if !b.look().ReadNeeded {
				t.Error("no read is planned")
			}
			b.read(c.found)
			w := b.work(code)
			if w.Action != Put || w.Ref != c.ref {
				t.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.begin(w)
			b.end(w, Outcome{Ref: "k1", Confirmed: true})
			b.read(found("k1", "2580"))
			if got := b.code(code.ID); got.Status != StatusSet || len(got.Warnings)+len(got.Errors) > 0 ||
				b.attempt(a).Status != Succeeded {
				t.Errorf("status %s, errors %v, warnings %v, attempt %s", got.Status, got.Errors, got.Warnings,
					b.attempt(a).Status)
			}
		})
	}
}

// A visible PIN that was changed at the lock becomes the desired one. A hidden one is unknown.
func TestForbidModification_KeepsVisiblePIN(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found func(b *bed) Found
		want  Action
	}{
		"shown":  {func(*bed) Found { return found("k1", "9999") }, Nothing},
		"hidden": {func(b *bed) Found { return changedAt("k1", b.now()) }, Put},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, code := allowing(t)
			b.pass(time.Hour)
			is := c.found(b)
			b.read(is)
			if got := b.code(code.ID); len(got.Warnings) != 1 {
				t.Fatalf("warnings %v", got.Warnings)
			}
			a := b.update(code, change{ExternalModificationAllowed: new(false)})
			if got := b.code(code.ID); a.Status != Succeeded || len(got.Warnings) > 0 {
				t.Errorf("attempt %s, warnings %v", a.Status, got.Warnings)
			}
			if !b.look().ReadNeeded {
				t.Error("no read is planned")
			}
			b.read(is)
			if w := b.work(code); w.Action != c.want {
				t.Errorf("planned action %q", w.Action)
			}
		})
	}
}

// A code that disappeared as allowed and then came back is managed like any other.
func TestAllowedModification_ReturnedCodeIsManaged(t *testing.T) {
	t.Parallel()
	b, code := allowing(t)
	b.read(found("k0", "1111"))
	back := found("k1", "2580")
	back.Key = code.ID
	b.read(back)
	b.update(code, change{ExternalModificationAllowed: new(false)})
	if got := b.code(code.ID); got.Status != StatusSet || len(got.Warnings) > 0 {
		t.Fatalf("back: status %s, warnings %v", got.Status, got.Warnings)
	}
	b.read(found("k0", "1111"))
	if w := b.work(code); w.Action != Put {
		t.Errorf("deleted again: status %s, errors %v, planned action %q", b.code(code.ID).Status,
			b.code(code.ID).Errors, w.Action)
	}
}

// The error says whether a code was changed or deleted at the device.
func TestExternalModification_NamesChange(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		b := newBed(t, "august")
		name := "conflicting_external_modification"
		if allowed {
			name = "external_modification_in_effect"
		}
		c := b.on("2580", "k1")
		b.update(c, change{ExternalModificationAllowed: &allowed})
		told := func(change string, found ...Found) {
			t.Helper()
			b.pass(time.Minute) // longer than the list may lag
			b.read(found...)
			b.pass(time.Minute) // and longer than the grace period of an empty list
			b.read(found...)
			got := b.code(c.ID)
			if all := append(got.Errors, got.Warnings...); len(all) != 1 || all[0].Code != name ||
				got.ExternalChange != change {
				t.Errorf("allowed %t: %v, want %s of %s", allowed, all, name, change)
			}
		}
		told("modified", found("k1", "1470"))
		if w := b.work(c); w.Action == Put {
			b.begin(w)
			b.end(w, Outcome{Ref: "k1", Confirmed: true})
		}
		told("removed")
	}
}

// disabled returns a code that its device stores but that does not open.
func disabled(pin PIN) Found {
	f := found("k1", pin)
	f.Disabled = true
	return f
}

func TestDisabledCode_IsRepaired(t *testing.T) {
	t.Parallel()
	for name, pin := range map[string]PIN{"shown": "2580", "hidden": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			c := b.on("2580", "k1")
			b.read(disabled(pin))
			if got := b.code(c.ID); !got.hasError("conflicting_external_modification") {
				t.Errorf("errors %v", got.Errors)
			}
			w := b.work(c)
			if w.Action != Put || w.Ref != "k1" {
				t.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.begin(w)
			b.read(disabled(pin)) // before the write arrives
			if w := b.work(c); w.Action != Put {
				t.Fatalf("a disabled code counts as written: planned action %q", w.Action)
			}
			b.end(w, Outcome{Ref: "k1", Confirmed: true})
			b.read(found("k1", pin))
			if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
				t.Errorf("enabled again: status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}

func TestDisabledCode_AllowedModification(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "k1")
	allowed := true
	b.update(c, change{ExternalModificationAllowed: &allowed})
	for range 3 {
		b.read(disabled("2580"))
		got := b.code(c.ID)
		if len(got.Errors) > 0 || len(got.Warnings) != 1 || got.Warnings[0].Code != "external_modification_in_effect" {
			t.Fatalf("errors %v, warnings %v", got.Errors, got.Warnings)
		}
		if w := b.work(c); w.Action != Nothing {
			t.Fatalf("planned action %q", w.Action)
		}
	}
	told := 0
	for _, e := range b.events(c.ID) {
		if e == "access_code.modified_external_to_seam" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d events", told)
	}
	b.read(found("k1", "2580"))
	if got := b.code(c.ID); len(got.Warnings) > 0 {
		t.Errorf("enabled again: warnings %v", got.Warnings)
	}
}

func TestDisabledCode_Unmanaged(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	b.read(disabled("2580"), found("k2", "4711"))
	for range 2 {
		for _, u := range b.unmanaged() {
			if inactive := len(u.Errors) == 1 &&
				u.Errors[0].Code == "access_code_inactive"; inactive != (u.PIN == "2580") {
				t.Errorf("errors %v", u.Errors)
			}
		}
		b.read(found("k2", "4711"), disabled("2580"))
	}
	b.read(found("k1", "2580"), found("k2", "4711"))
	for _, u := range b.unmanaged() {
		if len(u.Errors) > 0 {
			t.Errorf("enabled: errors %v", u.Errors)
		}
	}
}

func TestDisabledCode_EnabledByConversion(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{"put right": false, "left": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			b.read(disabled("2580"))
			c := b.unmanaged()[0]
			b.convert(c, &allowed)
			b.read(disabled("2580"))
			if got := b.code(c.ID); len(got.Errors) > 0 || len(got.Warnings) > 0 != allowed {
				t.Errorf("errors %v, warnings %v", got.Errors, got.Warnings)
			}
			if w := b.work(c); (w.Action == Put && w.Ref == "k1") == allowed {
				t.Errorf("planned action %q of %q", w.Action, w.Ref)
			}
		})
	}
}

func TestAllowedModification_SwappedPINs(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	one, two := b.on("2580", "r1"), b.on("2581", "r2")
	for _, c := range []view{one, two} {
		b.allow(c)
	}
	b.read(found("r1", "2581"), found("r2", "2580"))
	if a, z := b.code(one.ID).PIN, b.code(two.ID).PIN; a != "2581" || z != "2580" {
		t.Errorf("status %s and %s", a, z)
	}
}

// A pending code wants a PIN that another managed code received at the keypad.
func TestAllowedModification_ToPINOfPendingCode(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	one := b.on("2580", "r1")
	b.allow(one)
	two, _ := b.create("9988")
	b.read(found("r1", "9988"))
	if pin := b.code(one.ID).PIN; pin != "9988" {
		t.Errorf("the change was reverted: %s", pin)
	}
	w := b.work(two)
	b.begin(w)
	b.end(w,
		Outcome{Failure: &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: "r1"}})
	if got := b.code(two.ID); got.Status != StatusUnset || got.Errors[0].Other != one.ID {
		t.Errorf("the other code: status %s, errors %v", got.Status, got.Errors)
	}
}

func TestAllowedModification_TimeFrameIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "r1")
	b.allow(c)
	from, to := b.now().Add(-time.Hour).Truncate(time.Second), b.now().Add(time.Hour).Truncate(time.Second)
	f := found("r1", "2580")
	f.StartsAt, f.EndsAt = &from, &to
	b.read(f)
	b.read(f)
	n := 0
	for _, e := range b.events(c.ID) {
		if e == "access_code.modified_external_to_seam" {
			n++
		}
	}
	if got := b.code(c.ID); n != 1 || got.StartsAt == nil {
		t.Errorf("%d events, time-bound: %v", n, got.StartsAt != nil)
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
	if got := b.code(c.ID); got.Status != StatusSetting || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
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
					t.Errorf(
						"back: status %s, errors %v, on the device: %v",
						got.Status,
						got.Errors,
						got.AppliedGen > 0,
					)
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

// A code of a returned device that is neither in its confirmed nor in its desired state is set again.
func TestReturnedLock_ChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]PIN{"another PIN": "9999", "the former PIN": "2580", "the new PIN": "2581"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c := b.on("2580", "k1")
			b.update(c, change{PIN: "2581"})
			b.away()
			b.read(found("k1", shown))
			want := map[PIN]Action{"9999": Put, "2580": Put, "2581": Nothing}[shown]
			if w := b.work(c); w.Action != want {
				t.Errorf("planned action %q, want %q", w.Action, want)
			}
			if got := b.code(c.ID); (got.AppliedGen > 0) != (shown != "9999") {
				t.Errorf("confirmed generation %d", got.AppliedGen)
			}
		})
	}
}

// Drift is repaired immediately, unless it keeps happening.
func TestDrift_IntervalsGrow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		apart  time.Duration
		paused bool
	}{
		"often":  {driftWindow, true},
		"seldom": {driftWindow + time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			code := b.on("2580", "k1")
			for n := range 2 * failureThreshold {
				b.read(found("k1", "9999"))
				w := b.work(code)
				if paused := w.Action != Put; paused != (c.paused && n+1 >= failureThreshold) {
					t.Errorf("drift %d: planned action %q", n+1, w.Action)
				}
				if got := b.code(
					code.ID,
				); got.ExternalChange != domain.ChangeModified ||
					!got.hasError(domain.ErrExternal) {
					t.Errorf("drift %d: %s, errors %v", n+1, got.ExternalChange, got.Errors)
				}
				drifted := b.now()
				b.edit(func(c *Code) { c.NextAttemptAt = nil })
				b.set(code, "k1")
				b.to(drifted.Add(c.apart - time.Second))
			}
		})
	}
}
