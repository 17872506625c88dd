package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// The PIN of a pending code is entered at the keypad, and then that unmanaged code is converted.
func TestConversion_PINWantedByPendingCode(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	b.create("2580")
	b.read(found("k1", "2580"))
	a, err := b.access.Devices.ConvertCode(t.Context(), b.p, b.unmanaged()[0].ID.String(), nil)
	b.must(err)
	b.read(found("k1", "2580"))
	if a = b.attempt(a); a.Status != device.Succeeded || len(b.unmanaged()) > 0 {
		t.Errorf("conversion attempt %s %s", a.Status, a.ErrorType)
	}
}

func TestAllowedModification_SwappedPINs(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	one, two := b.on("2580", "r1"), b.on("2581", "r2")
	allowed := true
	for _, c := range []device.Code{one, two} {
		b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: &allowed})
	}
	b.read(found("r1", "2581"), found("r2", "2580"))
	if a, z := *b.code(one.ID).PIN, *b.code(two.ID).PIN; a != "2581" || z != "2580" {
		t.Errorf("status %s and %s", a, z)
	}
}

// A pending code wants a PIN that another managed code received at the keypad.
func TestAllowedModification_ToPINOfPendingCode(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	one := b.on("2580", "r1")
	allowed := true
	b.update(device.CodeChange{ID: one.ID.String(), ExternalModificationAllowed: &allowed})
	two, _ := b.create("9988")
	b.read(found("r1", "9988"))
	if pin := *b.code(one.ID).PIN; pin != "9988" {
		t.Errorf("the change was reverted: %s", pin)
	}
	w := b.work(two)
	b.begin(w)
	b.end(w,
		outcome{Failure: &lockstate.Failure{Class: lockstate.FailedDuplicate, Message: "taken", ConflictRef: "r1"}})
	if got := b.code(two.ID); got.Status != device.StatusUnset || got.Errors[0].Other != one.ID {
		t.Errorf("the other code: status %s, errors %v", got.Status, got.Errors)
	}
}

func TestDeletion_WaitsForUncertainWrite(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	a := b.deleteCode(c)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "no answer"}})
	if len(b.managed()) != 1 || b.attempt(a).Status != device.Pending {
		t.Fatal("the code counts as gone, although it may still arrive")
	}
	b.read(shown{
		Ref:       "r1",
		Key:       c.ID.String(),
		PIN:       "2580",
		Confirmed: true,
	})
	if w := b.work(c); w.Action != lockstate.Delete || w.Ref != "r1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

func TestChange_DuringRefusedWrite(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c, first := b.create("2580")
	w := b.work(c)
	b.begin(w)
	second := b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no such PIN"}})
	if a, z := b.attempt(first).Status, b.attempt(second).Status; a != device.Failed || z != device.Pending {
		t.Errorf("attempts %s and %s", a, z)
	}
	if w := b.work(c); w.Action != lockstate.Put || w.PIN != "2581" {
		t.Errorf("planned action %q", w.Action)
	}
}

func TestChange_DuringAcceptedWriteIsSentImmediately(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "r1"})
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
	if w := b.work(c); w.Action != lockstate.Put || w.PIN != "2581" || w.Ref != "r1" {
		t.Errorf("planned action %q", w.Action)
	}
}

// A stale list shows neither the new write nor the code.
func TestStaleList_MissingCodeIsNotGone(t *testing.T) {
	t.Parallel()
	for name, confirmed := range map[string]bool{"accepted": false, "confirmed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Ref: "r1", Confirmed: confirmed})
			b.deleteCode(c)
			b.read()
			if w := b.work(c); w.Action != lockstate.Delete || w.Ref != "r1" {
				t.Errorf("planned action %q of %q", w.Action, w.Ref)
			}
		})
	}
}

// The vendor keeps listing a failed attempt.
func TestFailedWrite_IsRetried(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := hand(t, options{profile: "august", access: access.Options{Now: func() time.Time { return now }}})
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "r1"})
	given := shown{
		Ref:     "r1",
		Key:     c.ID.String(),
		PIN:     "2580",
		Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "it jammed"},
	}
	b.read(given)
	now = now.Add(2 * time.Second)
	b.read(given)
	if w := b.work(c); w.Action != lockstate.Put || w.Ref != "" {
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
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "r1")
	allowed := true
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581", ExternalModificationAllowed: &allowed})
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "r1", Confirmed: true})
	b.read(found("r1", "2580"))
	if pin := *b.code(c.ID).PIN; pin != "2581" {
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
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	c := b.on("2580", "r1")
	allowed := true
	b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: &allowed})
	from, to := time.Now().Add(-time.Hour).Truncate(time.Second), time.Now().Add(time.Hour).Truncate(time.Second)
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
	if got := b.code(c.ID); n != 1 || !got.TimeBound() {
		t.Errorf("%d events, time-bound: %v", n, got.TimeBound())
	}
}

func TestConversion_OfCodeBeingDeleted(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	b.read(found("k1", "2580"))
	u := b.unmanaged()[0]
	convert, err := b.access.Devices.ConvertCode(t.Context(), b.p, u.ID.String(), nil)
	b.must(err)
	remove, err := b.access.Devices.DeleteUnmanagedCode(t.Context(), b.p, u.ID.String())
	b.must(err)
	b.read(found("k1", "2580"))
	if len(b.managed()) > 0 {
		t.Error("the code was converted during its deletion")
	}
	b.taken(b.work(u))
	b.read()
	if a, z := b.attempt(convert).Status, b.attempt(remove).Status; a != device.Failed || z != device.Succeeded {
		t.Errorf("conversion %s, removal %s", a, z)
	}
}

// Both changes are accepted: the first code gives up the PIN that the second one wants.
func TestPINChange_TakesOverPINOfAnother(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := hand(t, options{profile: "august", access: access.Options{Now: func() time.Time { return now }}})
	two, one := b.on("2581", "r2"), b.on("2580", "r1")
	first := b.update(device.CodeChange{ID: one.ID.String(), PIN: "2582"})
	second := b.update(device.CodeChange{ID: two.ID.String(), PIN: "2580"})
	w := b.work(two)
	if w.Action == lockstate.Put {
		b.begin(w)
		b.end(
			w,
			outcome{
				Failure: &lockstate.Failure{Class: lockstate.FailedDuplicate, Message: "taken", ConflictRef: "r1"},
			},
		)
	}
	w = b.work(one)
	b.begin(w)
	b.end(w, outcome{Ref: "r1", Confirmed: true})
	now = now.Add(2 * time.Second)
	w = b.work(two)
	b.begin(w)
	b.end(w, outcome{Ref: "r2", Confirmed: true})
	if a, z := b.attempt(first).Status, b.attempt(second).Status; a != device.Succeeded || z != device.Succeeded {
		t.Errorf("attempts %s and %s", a, z)
	}
}

func TestPINChange_WaitsForRemovalOfOther(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	one, two := b.on("2580", "r1"), b.on("2581", "r2")
	b.deleteCode(one)
	b.update(device.CodeChange{ID: two.ID.String(), PIN: "2580"})
	if w := b.work(two); w.Action == lockstate.Put {
		t.Error("the code is put while the PIN is still taken")
	}
	b.must(b.removal(b.work(one), true, nil))
	b.read(found("r2", "2581"))
	if w := b.work(two); w.Action != lockstate.Put || w.PIN != "2580" {
		t.Errorf("planned action %q", w.Action)
	}
}

// The code opens now and must not open again for four days.
func TestPostponedCode_LeavesLockWithoutTimeFrames(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "smartthings"})
	c := b.on("2580", "r1")
	a := b.update(
		device.CodeChange{
			ID:       c.ID.String(),
			StartsAt: time.Now().Add(100 * time.Hour).Format(time.RFC3339),
			EndsAt:   time.Now().Add(101 * time.Hour).Format(time.RFC3339),
		},
	)
	w := b.work(c)
	if w.Action != lockstate.Delete {
		t.Fatalf("planned action %q", w.Action)
	}
	b.must(b.removal(w, true, nil))
	b.read(found("r1", ""))
	b.read()
	b.look()
	if got := b.code(c.ID); got.Status != device.StatusUnset || got.OnDevice ||
		b.attempt(a).Status != device.Succeeded {
		t.Errorf("status %s, on the device: %v, attempt %s", got.Status, got.OnDevice, b.attempt(a).Status)
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
			b := hand(t, options{profile: profile})
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.update(
				device.CodeChange{
					ID:       c.ID.String(),
					StartsAt: time.Now().Add(100 * time.Hour).Format(time.RFC3339),
					EndsAt:   time.Now().Add(101 * time.Hour).Format(time.RFC3339),
				},
			)
			b.end(w, outcome{Ref: "r1"})
			want := map[string]lockstate.Action{"august": lockstate.Put, "smartthings": lockstate.Delete}[profile]
			if w := b.work(c); w.Action != want {
				t.Errorf("planned action %q", w.Action)
			}
		})
	}
}

func TestReturnedDevice_KeepsConvertedCodes(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	b.read(found("k1", "2580"))
	u := b.unmanaged()[0]
	_, err := b.access.Devices.ConvertCode(t.Context(), b.p, u.ID.String(), nil)
	b.must(err)
	b.read(found("k1", "2580"))
	b.must(b.access.Devices.RecordRemoved(t.Context(), holder{}, b.id(), false))
	b.look()
	_, err = b.db.Pool.Exec(t.Context(), "update devices set removed_at = null, online = true")
	b.must(err)
	b.read(found("k1", "2580"))
	if got := b.code(u.ID); got.Status != device.StatusSet || len(b.unmanaged()) > 0 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
}

func TestDuplicateDevice_IsRecordedOnce(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	d := device.FoundDevice{Ref: "x", Name: "Side door", Online: true}
	b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{d, d}))
}

// A vendor with numbered slots assigns the slot of a vanished code to the next one.
func TestVanishedCode_ReferenceIsReused(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	two, _ := b.create("2581")
	one := b.on("2580", "3")
	w := b.work(two)
	b.begin(w)
	b.end(w, outcome{Ref: "3", Confirmed: true})
	b.read(found("3", "2581"))
	if got := b.code(two.ID); got.Status != device.StatusSet {
		t.Errorf("the new code: status %s", got.Status)
	}
	if w := b.work(one); w.Action != lockstate.Put || w.Ref != "" {
		t.Errorf("planned action %q of %q for the other code", w.Action, w.Ref)
	}
}

func TestUnstorableName_DelaysNothing(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	f := found("k1", "2580")
	f.Name = "a\x00b"
	b.read(f)
	b.must(
		b.access.Devices.RecordDevices(t.Context(), holder{}, b.account,
			[]device.FoundDevice{{Ref: "x", Name: "Side\x00door"}}),
	)
}
