package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// If changes at the lock are allowed, the time frame on the lock decides whether the code opens.
func TestAllowedChange_TimeFrameDecidesStatus(t *testing.T) {
	t.Parallel()
	type frame struct{ from, to time.Duration } // relative to now; zero: none
	for name, c := range map[string]struct {
		was, is frame
		before  device.Status
		after   device.Status
		told    int // number of set events after the change
	}{
		"made permanent before its start": {frame{50 * time.Hour, 60 * time.Hour}, frame{}, device.StatusUnset, device.StatusSet, 1},
		"begun before its start":          {frame{50 * time.Hour, 60 * time.Hour}, frame{-time.Hour, 60 * time.Hour}, device.StatusUnset, device.StatusSet, 1},
		"with another start ahead":        {frame{50 * time.Hour, 60 * time.Hour}, frame{55 * time.Hour, 60 * time.Hour}, device.StatusUnset, device.StatusUnset, 0},
		"put off once it opens":           {frame{-time.Hour, 60 * time.Hour}, frame{50 * time.Hour, 60 * time.Hour}, device.StatusSet, device.StatusUnset, 0},
		"made longer while it opens":      {frame{-time.Hour, 60 * time.Hour}, frame{-time.Hour, 90 * time.Hour}, device.StatusSet, device.StatusSet, 0},
		"given to an ongoing code":        {frame{}, frame{50 * time.Hour, 60 * time.Hour}, device.StatusSet, device.StatusUnset, 0},
	} {
		for _, disabled := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and disabled until later"}[disabled], func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "august")
				show := func(fr frame) shown {
					f := found("k1", "2580")
					if fr != (frame{}) {
						f.StartsAt, f.EndsAt = new(clock.now().Add(fr.from)), new(clock.now().Add(fr.to))
					}
					return f
				}
				was, is := show(c.was), show(c.is)
				var code device.Code
				if was.StartsAt == nil {
					code = b.on("2580", "k1")
				} else {
					code = b.between("2580", *was.StartsAt, *was.EndsAt)
					w := b.work(code)
					b.begin(w)
					b.end(w, outcome{Ref: "k1", Confirmed: true})
				}
				b.update(device.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(true)})
				if got := b.code(code.ID); got.Status != c.before {
					t.Fatalf("before the change: status %s", got.Status)
				}
				before := countOf(b.events(code.ID), "access_code.set_on_device")
				clock.pass(time.Minute) // past the read lag
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
				if got := b.code(code.ID); got.Status != c.after || !got.OnDevice {
					t.Errorf("after the change: status %s, want %s", got.Status, c.after)
				}
				if n := countOf(b.events(code.ID), "access_code.set_on_device") - before; n != c.told {
					t.Errorf("%d set events, want %d", n, c.told)
				}
				if is.StartsAt == nil || !is.StartsAt.After(clock.now()) {
					return
				}
				if w := b.look(); w.Due == nil || w.Due.After(*is.StartsAt) {
					t.Errorf("due at %v, want %v", w.Due, is.StartsAt)
				}
				clock.to(*is.StartsAt)
				b.look()
				if got := b.code(code.ID); got.Status != device.StatusSet {
					t.Errorf("after its start: status %s", got.Status)
				}
			})
		}
	}
}

// allowing returns a code whose modification at its lock is allowed.
func allowing(t *testing.T) (byHand, device.Code) {
	t.Helper()
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
	return b, c
}

// A change at the lock is undone once such modifications are forbidden.
func TestForbidModification_UndoesChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found shown
		ref   string // where the code is put
	}{
		"deleted":  {found("k0", "1111"), ""},
		"disabled": {disabled("2580"), "k1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, code := allowing(t)
			b.read(c.found)
			if w := b.work(code); w.Action != lockstate.Nothing || len(b.code(code.ID).Warnings) != 1 {
				t.Fatalf("while allowed: planned action %q", w.Action)
			}
			a := b.update(device.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
			if got := b.code(code.ID); a.Status != device.Pending || len(got.Warnings)+len(got.Errors) > 0 {
				t.Errorf("attempt %s, warnings %v", a.Status, got.Warnings)
			}
			if !b.look().ReadNeeded {
				t.Error("no read is planned")
			}
			b.read(c.found)
			w := b.work(code)
			if w.Action != lockstate.Put || w.Ref != c.ref {
				t.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.begin(w)
			b.end(w, outcome{Ref: "k1", Confirmed: true})
			b.read(found("k1", "2580"))
			if got := b.code(code.ID); got.Status != device.StatusSet || len(got.Warnings)+len(got.Errors) > 0 ||
				b.attempt(a).Status != device.Succeeded {
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
		found shown
		want  lockstate.Action
	}{
		"shown":  {found("k1", "9999"), lockstate.Nothing},
		"hidden": {changedAt("k1", time.Now().Add(time.Hour)), lockstate.Put},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, code := allowing(t)
			b.read(c.found)
			if got := b.code(code.ID); len(got.Warnings) != 1 {
				t.Fatalf("warnings %v", got.Warnings)
			}
			a := b.update(device.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
			if got := b.code(code.ID); a.Status != device.Succeeded || len(got.Warnings) > 0 {
				t.Errorf("attempt %s, warnings %v", a.Status, got.Warnings)
			}
			if !b.look().ReadNeeded {
				t.Error("no read is planned")
			}
			b.read(c.found)
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
	back.Key = code.ID.String()
	b.read(back)
	b.update(device.CodeChange{ID: code.ID.String(), ExternalModificationAllowed: new(false)})
	if got := b.code(code.ID); got.Status != device.StatusSet || len(got.Warnings) > 0 {
		t.Fatalf("back: status %s, warnings %v", got.Status, got.Warnings)
	}
	b.read(found("k0", "1111"))
	if w := b.work(code); w.Action != lockstate.Put {
		t.Errorf("deleted again: status %s, errors %v, planned action %q", b.code(code.ID).Status,
			b.code(code.ID).Errors, w.Action)
	}
}

// An error names the conflicting code as long as the reader may see it, with its current state.
func TestConflict_NamesOtherCode(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	taken := func(c device.Code, ref string) {
		t.Helper()
		w := b.work(c)
		b.begin(w)
		b.end(
			w,
			outcome{
				Failure: &lockstate.Failure{Class: lockstate.FailedDuplicate, Message: "taken", ConflictRef: ref},
			},
		)
	}
	tells := func(c device.Code, other *device.Code) {
		t.Helper()
		listed := b.managed()
		for _, got := range []device.Code{b.code(c.ID), listed[len(listed)-1]} {
			if len(got.Errors) != 1 || got.Errors[0].Code != "duplicate_code_on_device" {
				t.Fatalf("errors %v", got.Errors)
			}
			switch p := got.Errors[0]; {
			case other == nil && p.Other != [16]byte{}:
				t.Errorf("the error names %s, which does not exist", p.Other)
			case other != nil && (p.Other != other.ID || p.Managed != other.Managed):
				t.Errorf("the error names %s, managed %t; want %s, managed %t", p.Other, p.Managed, other.ID,
					other.Managed)
			}
		}
	}
	ours := b.on("2580", "k1")
	b.read(found("k1", "2580"), found("k2", "1470"))
	theirs := b.unmanaged()[0]
	c, _ := b.create("9988")
	taken(c, "k2")
	tells(c, &theirs)
	_, err := b.access.Devices.ConvertCode(t.Context(), b.p, theirs.ID.String(), nil)
	b.must(err)
	b.read(found("k1", "2580"), found("k2", "1470"))
	theirs.Managed = true
	tells(c, &theirs)
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "9987"})
	taken(c, "k1")
	tells(c, &ours)
	_, err = b.db.Pool.Exec(t.Context(), "update access_codes set in_pool = true where access_code_id = $1", ours.ID)
	b.must(err)
	tells(c, nil) // pool codes are never named
}

// The error says whether a code was changed or deleted at the device.
func TestExternalModification_NamesChange(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		clock := &testClock{at: time.Now()}
		b := hand(t, options{profile: "august", access: access.Options{Now: clock.now}})
		name := "conflicting_external_modification"
		if allowed {
			name = "external_modification_in_effect"
		}
		c := b.on("2580", "k1")
		b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: &allowed})
		told := func(change string, found ...shown) {
			t.Helper()
			clock.pass(time.Minute) // longer than the list may lag
			b.read(found...)
			clock.pass(time.Minute) // and longer than the grace period of an empty list
			b.read(found...)
			got := b.code(c.ID)
			if all := append(got.Errors, got.Warnings...); len(all) != 1 || all[0].Code != name ||
				all[0].Change != change {
				t.Errorf("allowed %t: %v, want %s of %s", allowed, all, name, change)
			}
		}
		told("modified", found("k1", "1470"))
		if w := b.work(c); w.Action == lockstate.Put {
			b.begin(w)
			b.end(w, outcome{Ref: "k1", Confirmed: true})
		}
		told("removed")
	}
}

// disabled returns a code that its device stores but that does not open.
func disabled(pin string) shown {
	f := found("k1", pin)
	f.Disabled = true
	return f
}

func TestDisabledCode_IsRepaired(t *testing.T) {
	t.Parallel()
	for name, pin := range map[string]string{"shown": "2580", "hidden": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
			c := b.on("2580", "k1")
			b.read(disabled(pin))
			if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "conflicting_external_modification" {
				t.Errorf("errors %v", got.Errors)
			}
			w := b.work(c)
			if w.Action != lockstate.Put || w.Ref != "k1" {
				t.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.begin(w)
			b.read(disabled(pin)) // before the write arrives
			if w := b.work(c); w.Action != lockstate.Put {
				t.Fatalf("a disabled code counts as written: planned action %q", w.Action)
			}
			b.end(w, outcome{Ref: "k1", Confirmed: true})
			b.read(found("k1", pin))
			if got := b.code(c.ID); got.Status != device.StatusSet || len(got.Errors) > 0 {
				t.Errorf("enabled again: status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}

func TestDisabledCode_AllowedModification(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	allowed := true
	b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: &allowed})
	for range 3 {
		b.read(disabled("2580"))
		got := b.code(c.ID)
		if len(got.Errors) > 0 || len(got.Warnings) != 1 || got.Warnings[0].Code != "external_modification_in_effect" {
			t.Fatalf("errors %v, warnings %v", got.Errors, got.Warnings)
		}
		if w := b.work(c); w.Action != lockstate.Nothing {
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
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	b.read(disabled("2580"), found("k2", "4711"))
	for range 2 {
		for _, u := range b.unmanaged() {
			if inactive := len(u.Errors) == 1 &&
				u.Errors[0].Code == "access_code_inactive"; inactive != (*u.PIN == "2580") {
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
			b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
			b.read(disabled("2580"))
			c := b.unmanaged()[0]
			_, err := b.access.Devices.ConvertCode(t.Context(), b.p, c.ID.String(), &allowed)
			b.must(err)
			b.read(disabled("2580"))
			if got := b.code(c.ID); len(got.Errors) > 0 || len(got.Warnings) > 0 != allowed {
				t.Errorf("errors %v, warnings %v", got.Errors, got.Warnings)
			}
			if w := b.work(c); (w.Action == lockstate.Put && w.Ref == "k1") == allowed {
				t.Errorf("planned action %q of %q", w.Action, w.Ref)
			}
		})
	}
}
