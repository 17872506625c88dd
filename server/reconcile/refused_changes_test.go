package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

func countOf(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// A refused change leaves the code in its former state, in which it opens from its start.
func TestRefusedChange_FormerStateCounts(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	from := clock.now().Add(50 * time.Hour)
	ahead, always := b.between("2580", from, from.Add(time.Hour)), b.on("4711", "k2")
	w := b.work(ahead)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	refused := outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "not such a PIN"}}
	for c, want := range map[*device.Code]device.Status{&ahead: device.StatusUnset, &always: device.StatusSet} {
		b.update(device.CodeChange{ID: c.ID.String(), PIN: map[*device.Code]string{&ahead: "2581", &always: "4712"}[c]})
		w := b.work(*c)
		b.begin(w)
		b.end(w, refused)
		if got := b.code(c.ID); got.Status != want || len(got.Errors) != 1 {
			t.Errorf("refused: status %s, errors %v, want %s", got.Status, got.Errors, want)
		}
	}
	if w := b.look(); w.Due == nil || !w.Due.Equal(from) {
		t.Errorf("due at %v, want %v", w.Due, from)
	}
	clock.to(from)
	for range 2 {
		b.look()
	}
	if got := b.code(ahead.ID); got.Status != device.StatusSet {
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
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	allowed := true
	b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: &allowed})
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "4711"})
	others := found("k9", "9999") // an empty list has a grace period
	b.read(others)
	w := b.work(c)
	if w.Action != lockstate.Put || w.PIN != "4711" || !w.New {
		t.Fatalf("planned action %q", w.Action)
	}
	b.begin(w)
	b.end(w, outcome{Ref: "k2", Confirmed: true})
	b.read(others) // a read without a new request: the code stays deleted
	if w := b.work(c); w.Action != lockstate.Nothing {
		t.Errorf("planned action %q", w.Action)
	}
}

// A code moved to a later time is removed by the server, whatever is requested meanwhile and
// however that ends.
func TestRemovalOfOurs_IsNotExternal(t *testing.T) {
	t.Parallel()
	for name, removal := range map[string]func(b byHand, w work){
		"answered": func(b byHand, w work) {
			b.must(b.removal(w, true, nil))
		},
		"a crash": func(byHand, work) {},
		"in doubt": func(b byHand, w work) {
			b.must(b.removal(w, false, &lockstate.Failure{Class: lockstate.FailedForNow, Message: "no answer", Unsure: true}))
		},
	} {
		for _, allowed := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", allowed", false: ", not allowed"}[allowed], func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "smartthings")
				c := b.between("2580", clock.now(), clock.now().Add(300*time.Hour))
				w := b.work(c)
				b.begin(w)
				b.end(w, outcome{Ref: "k1", Confirmed: true})
				clock.pass(time.Hour)
				b.update(
					device.CodeChange{
						ID:                          c.ID.String(),
						ExternalModificationAllowed: &allowed,
						StartsAt:                    clock.now().Add(100 * time.Hour).Format(time.RFC3339),
					},
				)
				w = b.work(c)
				if w.Action != lockstate.Delete {
					t.Fatalf("planned action %q", w.Action)
				}
				still, err := b.started(w)
				if err != nil || !still {
					t.Fatal(still, err)
				}
				b.update(device.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Format(time.RFC3339)})
				removal(b, w)
				b.read(found("k9", "9999"))
				clock.pass(time.Minute)
				if w := b.work(c); w.Action != lockstate.Put || !w.New {
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
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "not such a PIN"}})
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != lockstate.Put || !w.New {
		t.Errorf("planned action %q", w.Action)
	}
}

// A slow lock removes a code on our behalf, however late.
func TestRemovalOfOurs_ConfirmedLate(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "smartthings")
	c := b.between("2580", clock.now(), clock.now().Add(300*time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	b.update(device.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Add(100 * time.Hour).Format(time.RFC3339)})
	w = b.work(c)
	if still, err := b.started(w); err != nil || !still {
		t.Fatal(still, err)
	}
	b.must(b.removal(w, false, nil))
	clock.pass(2 * time.Minute)
	b.look()
	b.update(device.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Format(time.RFC3339)})
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != lockstate.Put || !w.New {
		t.Errorf("planned action %q", w.Action)
	}
	if countOf(b.events(c.ID), "access_code.deleted_external_to_seam") > 0 {
		t.Error("the code was announced as deleted externally")
	}
}

// A lock with time frames stops opening at the old end if it refused an extension.
func TestRefusedExtension_NotSetAfterOldEnd(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]device.Status{"august": device.StatusUnset, "smartthings": device.StatusSet} {
		for when, late := range map[string]bool{"before its end": false, "after its end": true} {
			t.Run(profile+", refused "+when, func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, profile)
				end := clock.now().Add(2 * time.Hour)
				c := b.between("2580", clock.now(), end)
				w := b.work(c)
				b.begin(w)
				b.end(w, outcome{Ref: "k1", Confirmed: true})
				b.update(device.CodeChange{ID: c.ID.String(), EndsAt: end.Add(6 * time.Hour).Format(time.RFC3339)})
				w = b.work(c)
				b.begin(w)
				if late {
					clock.to(end)
				}
				b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "too long"}})
				if !late {
					if got := b.code(c.ID); got.Status != device.StatusSet {
						t.Errorf("before its end: status %s", got.Status)
					}
					if w := b.look(); want == device.StatusUnset && (w.Due == nil || !w.Due.Equal(end)) {
						t.Errorf("due at %v, want %v", w.Due, end)
					}
					clock.to(end)
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
	b, clock := timeBound(t, "august")
	from := clock.now().Add(50 * time.Hour)
	c := b.between("2580", from, from.Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
	w = b.work(c)
	b.begin(w)
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2582"})
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	b.refuse(c)
	clock.to(from)
	b.look()
	told := b.tales("access_code.set_on_device", "access_code.code_changed")
	if len(told) != 2 || told[0].Type != "access_code.code_changed" {
		t.Fatalf("events %v", b.events(c.ID))
	}
	change, opens := b.fields(told[0]), b.fields(told[1])
	if change["from"].(map[string]any)["code"] != "2580" || change["to"].(map[string]any)["code"] != "2581" ||
		opens["code"] != "2581" {
		t.Error("the event has another PIN than the device")
	}
}

// A code being removed is not being set, whatever else leaves the lock.
func TestRemovingCode_IsNotSetting(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	b.read(found("k9", "9999"), found("k8", "8888"))
	c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
	w = b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedFull, Message: "no room"}})
	clock.pass(time.Hour)
	b.look()
	b.read(found("k8", "8888"), found("k1", "2580"))
	if got := b.code(c.ID); got.Status != device.StatusRemoving {
		t.Errorf("status %s", got.Status)
	}
}

// A code that became unmanaged opens when its device says so.
func TestUnmanagedCode_IsSetBeforeItsStart(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	from := clock.now().Add(50 * time.Hour)
	c := b.between("2580", from, from.Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	b.update(device.CodeChange{ID: c.ID.String(), Managed: new(false)})
	if got := b.unmanaged()[0]; got.Status != device.StatusSet {
		t.Errorf("status %s", got.Status)
	}
	// The state of an older server.
	_, err := b.db.Pool.Exec(t.Context(), "update access_codes set status = 'unset' where access_code_id = $1", c.ID)
	b.must(err)
	f := found("k1", "2580")
	f.StartsAt, f.EndsAt = &from, new(from.Add(time.Hour))
	b.read(f)
	if got := b.unmanaged()[0]; got.Status != device.StatusSet {
		t.Errorf("read again: status %s", got.Status)
	}
}

// away removes the lock from its account temporarily.
func (b byHand) away() {
	b.Helper()
	dev, err := b.access.Devices.GetDevice(b.Context(), b.p, b.device, "")
	b.must(err)
	b.must(b.access.Devices.RecordRemoved(b.Context(), holder{}, b.id(), false))
	b.look()
	b.must(b.access.Devices.RecordDevices(b.Context(), holder{}, b.account, []device.FoundDevice{
		{
			Ref:          dev.Ref,
			Name:         "Door",
			Type:         dev.Type,
			Provider:     dev.Provider,
			Online:       true,
			Capabilities: dev.Capabilities,
		},
	}))
}

// refuse makes the next write of a code fail permanently.
func (b byHand) refuse(c device.Code) {
	b.Helper()
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "not such a PIN"}})
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
				b, clock := timeBound(t, profile)
				c := b.on("2580", "k1")
				is := map[string]shown{"august": found("k1", "2580"), "smartthings": found("k1", "")}[profile]
				b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
				if before {
					b.refuse(c)
				}
				b.away()
				b.read(is)
				if !before {
					b.refuse(c)
				}
				if got := b.code(c.ID); got.Status != device.StatusSet || !got.OnDevice || len(got.Errors) != 1 {
					t.Errorf("back: status %s, errors %v, on the device: %v", got.Status, got.Errors, got.OnDevice)
				}
				clock.pass(time.Minute)
				b.read(found("k9", "9999"))
				if w := b.work(c); w.Action != lockstate.Put || !w.New {
					t.Errorf("deleted at the lock: planned action %q", w.Action)
				}
			})
		}
	}
}

func TestReturnedLock_RefusedChangeMissingCodeIsPut(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "k1")
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
	b.refuse(c)
	b.away()
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != lockstate.Put || !w.New {
		t.Errorf("planned action %q", w.Action)
	}
}

func TestReturnedLock_AllowedDisabledCode(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	c := b.on("2580", "k1")
	b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
	clock.pass(time.Minute)
	off := found("k1", "2580")
	off.Disabled = true
	b.read(off)
	b.away()
	b.read(off)
	if w, got := b.work(c), b.code(c.ID); w.Action != lockstate.Nothing || got.Status != device.StatusSet ||
		len(got.Warnings) != 1 {
		t.Errorf("planned action %q, status %s, warnings %v", w.Action, got.Status, got.Warnings)
	}
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
	b.away()
	b.read(off)
	if w := b.work(c); w.Action != lockstate.Put || w.PIN != "2581" {
		t.Errorf("changed: planned action %q", w.Action)
	}
}
