package lockstate

import (
	"slices"
	"testing"
	"time"
)

// The PIN of a pending code is entered at the keypad, and then that unmanaged code is converted.
func TestConversion_PINWantedByPendingCode(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.create("2580")
	b.read(found("k1", "2580"))
	a := b.convert(b.unmanaged()[0], nil)
	b.read(found("k1", "2580"))
	if a = b.attempt(a); a.Status != Succeeded || len(b.unmanaged()) > 0 {
		t.Errorf("conversion attempt %s %s", a.Status, a.ErrorType)
	}
}

func TestAllowedModification_SwappedPINs(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	one, two := b.on("2580", "r1"), b.on("2581", "r2")
	for _, c := range []view{one, two} {
		b.allow(c, true)
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
	b.allow(one, true)
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

func TestDeletion_WaitsForUncertainWrite(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	a := b.deleteCode(c)
	b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "no answer"}})
	if len(b.managed()) != 1 || b.attempt(a).Status != Pending {
		t.Fatal("the code counts as gone, although it may still arrive")
	}
	b.read(Found{
		Ref:       "r1",
		Key:       c.ID,
		PIN:       "2580",
		Confirmed: true,
	})
	if w := b.work(c); w.Action != Delete || w.Ref != "r1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

func TestChange_DuringRefusedWrite(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, first := b.create("2580")
	w := b.work(c)
	b.begin(w)
	second := b.update(c, change{PIN: "2581"})
	b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
	if a, z := b.attempt(first).Status, b.attempt(second).Status; a != Failed || z != Pending {
		t.Errorf("attempts %s and %s", a, z)
	}
	if w := b.work(c); w.Action != Put || w.PIN != "2581" {
		t.Errorf("planned action %q", w.Action)
	}
}

func TestChange_DuringAcceptedWriteIsSentImmediately(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1"})
	b.update(c, change{PIN: "2581"})
	if w := b.work(c); w.Action != Put || w.PIN != "2581" || w.Ref != "r1" {
		t.Errorf("planned action %q", w.Action)
	}
}

// A stale list shows neither the new write nor the code.
func TestStaleList_MissingCodeIsNotGone(t *testing.T) {
	t.Parallel()
	for name, confirmed := range map[string]bool{"accepted": false, "confirmed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Ref: "r1", Confirmed: confirmed})
			b.deleteCode(c)
			b.read()
			if w := b.work(c); w.Action != Delete || w.Ref != "r1" {
				t.Errorf("planned action %q of %q", w.Action, w.Ref)
			}
		})
	}
}

// The vendor keeps listing a failed attempt.
func TestFailedWrite_IsRetried(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1"})
	given := Found{
		Ref:     "r1",
		Key:     c.ID,
		PIN:     "2580",
		Failure: &Failure{Class: FailedForNow, Message: "it jammed"},
	}
	b.read(given)
	b.pass(2 * time.Second)
	b.read(given)
	if w := b.work(c); w.Action != Put || w.Ref != "" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
	b.deleteCode(c)
	b.read(given)
	if len(b.managed()) > 0 {
		t.Error("the failed write delays the deletion")
	}
}

func TestStaleList_DoesNotUndoChange(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "r1")
	b.update(c, change{PIN: "2581", ExternalModificationAllowed: new(true)})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1", Confirmed: true})
	b.read(found("r1", "2580"))
	if pin := b.code(c.ID).PIN; pin != "2581" {
		t.Errorf("the PIN is back at %s", pin)
	}
	if slices.Contains(b.events(c.ID), "access_code.modified_external_to_seam") {
		t.Error("a stale list counts as a change at the device")
	}
	if b.look().Due == nil {
		t.Error("no read is planned")
	}
}

func TestAllowedModification_TimeFrameIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "r1")
	b.allow(c, true)
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

func TestConversion_OfCodeBeingDeleted(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k1", "2580"))
	u := b.unmanaged()[0]
	convert := b.convert(u, nil)
	remove := b.deleteUnmanaged(u)
	b.read(found("k1", "2580"))
	if len(b.managed()) > 0 {
		t.Error("the code was converted during its deletion")
	}
	b.taken(b.work(u))
	b.read()
	if a, z := b.attempt(convert).Status, b.attempt(remove).Status; a != Failed || z != Succeeded {
		t.Errorf("conversion %s, removal %s", a, z)
	}
}

// Both changes are accepted: the first code gives up the PIN that the second one wants.
func TestPINChange_TakesOverPINOfAnother(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	two, one := b.on("2581", "r2"), b.on("2580", "r1")
	first := b.update(one, change{PIN: "2582"})
	second := b.update(two, change{PIN: "2580"})
	w := b.work(two)
	if w.Action == Put {
		b.begin(w)
		b.end(
			w,
			Outcome{
				Failure: &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: "r1"},
			},
		)
	}
	w = b.work(one)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1", Confirmed: true})
	b.pass(2 * time.Second)
	w = b.work(two)
	b.begin(w)
	b.end(w, Outcome{Ref: "r2", Confirmed: true})
	if a, z := b.attempt(first).Status, b.attempt(second).Status; a != Succeeded || z != Succeeded {
		t.Errorf("attempts %s and %s", a, z)
	}
}

func TestPINChange_WaitsForRemovalOfOther(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	one, two := b.on("2580", "r1"), b.on("2581", "r2")
	b.deleteCode(one)
	b.update(two, change{PIN: "2580"})
	if w := b.work(two); w.Action == Put {
		t.Error("the code is put while the PIN is still taken")
	}
	b.removal(b.work(one), true, nil)
	b.read(found("r2", "2581"))
	if w := b.work(two); w.Action != Put || w.PIN != "2580" {
		t.Errorf("planned action %q", w.Action)
	}
}

// The code opens now and must not open again for four days.
func TestPostponedCode_LeavesLockWithoutTimeFrames(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c := b.on("2580", "r1")
	a := b.update(c, change{
		StartsAt: new(b.now().Add(100 * time.Hour)),
		EndsAt:   new(b.now().Add(101 * time.Hour)),
	},
	)
	w := b.work(c)
	if w.Action != Delete {
		t.Fatalf("planned action %q", w.Action)
	}
	b.removal(w, true, nil)
	b.read(found("r1", ""))
	b.read()
	b.look()
	if got := b.code(c.ID); got.Status != StatusUnset || got.AppliedGen > 0 ||
		b.attempt(a).Status != Succeeded {
		t.Errorf("status %s, on the device: %v, attempt %s", got.Status, got.AppliedGen > 0, b.attempt(a).Status)
	}
	if slices.Contains(b.events(c.ID), "access_code.deleted_external_to_seam") {
		t.Error("the removal counts as external")
	}
}

// The outcome of the first write is unknown when the time frame is postponed.
func TestPostponedCode_DuringUncertainWrite(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"august", "smartthings"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.update(c, change{
				StartsAt: new(b.now().Add(100 * time.Hour)),
				EndsAt:   new(b.now().Add(101 * time.Hour)),
			},
			)
			b.end(w, Outcome{Ref: "r1"})
			want := map[string]Action{"august": Put, "smartthings": Delete}[profile]
			if w := b.work(c); w.Action != want {
				t.Errorf("planned action %q", w.Action)
			}
		})
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

// A vendor with numbered slots assigns the slot of a vanished code to the next one.
func TestVanishedCode_ReferenceIsReused(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	two, _ := b.create("2581")
	one := b.on("2580", "3")
	w := b.work(two)
	b.begin(w)
	b.end(w, Outcome{Ref: "3", Confirmed: true})
	b.read(found("3", "2581"))
	if got := b.code(two.ID); got.Status != StatusSet {
		t.Errorf("the new code: status %s", got.Status)
	}
	if w := b.work(one); w.Action != Put || w.Ref != "" {
		t.Errorf("planned action %q of %q for the other code", w.Action, w.Ref)
	}
}
