package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// If a device hides PINs, its slot identifies a code that was being written during a crash.
func TestCrash_HiddenCodeIsFoundBySlot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found shown
		ours  bool
	}{
		"there":                {found("7", ""), true},
		"elsewhere":            {found("8", ""), false},
		"changed at the lock":  {changedAt("7", time.Now().Add(time.Hour)), false},
		"reported as a change": {changedAt("7", time.Now()), true},
		"another key":          {shown{Ref: "7", Confirmed: true, Key: "another"}, false},
		"another visible PIN":  {found("7", "9999"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			// The radio was busy.
			_, err := b.db.Pool.Exec(t.Context(), "update access_codes set write_at = now() - interval '1 minute'")
			b.must(err)
			b.must(b.place(w, "7"))
			b.read(c.found)
			if got := b.code(code.ID); (got.Status == device.StatusSet) != c.ours ||
				(len(b.unmanaged()) == 0) != c.ours {
				t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
			}
		})
	}
}

// A lock reports a write to all servers, and some report it like a change at the keypad.
func TestDrift_OwnWriteReportedAsChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		want  device.Status
	}{
		"of the write":     {10 * time.Second, device.StatusSet},
		"a real one after": {time.Minute, device.StatusSetting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			code := b.on("2580", "7")
			_, err := b.db.Pool.Exec(t.Context(),
				"update access_codes set applied_at = now() - interval '1 hour', write_at = null")
			b.must(err)
			b.read(changedAt("7", time.Now().Add(c.after-time.Hour)))
			if got := b.code(code.ID); got.Status != c.want {
				t.Errorf("status %s", got.Status)
			}
		})
	}
}

// changedAt returns a code with a hidden PIN that the lock has reported as changed.
func changedAt(ref string, at time.Time) shown {
	return shown{Ref: ref, Confirmed: true, ChangedAt: at}
}

// Whether a hidden PIN was changed before a crash is unknown, so it is written again.
func TestCrash_HiddenChangeIsRepeated(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "7")
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "9988"})
	b.begin(b.work(c))
	b.read(found("7", ""))
	w := b.work(c)
	if w.Action != lockstate.Put || w.Ref != "7" {
		t.Fatalf("planned action %q of %q", w.Action, w.Ref)
	}
	b.begin(w)
	b.end(w, outcome{Ref: "7"}) // accepted: the list shows it from now on
	b.read(found("7", ""))
	if got := b.code(c.ID); got.Status != device.StatusSet {
		t.Errorf("status %s", got.Status)
	}
}

// A code may change while its write is uncertain. The pending PIN still identifies it.
func TestUncertainWrite_CodeChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(b byHand, code device.Code)
		want lockstate.Action
	}{
		"changed":             {func(byHand, device.Code) {}, lockstate.Put},
		"changed and deleted": {func(b byHand, code device.Code) { b.deleteCode(code) }, lockstate.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "smartthings"})
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "no answer"}})
			b.update(device.CodeChange{ID: code.ID.String(), PIN: "9988"})
			c.then(b, code)
			b.read(found("5", "2580"))
			if w := b.work(code); w.Action != c.want || w.Ref != "5" || len(b.unmanaged()) != 0 {
				t.Errorf("planned action %q of %q, %d unmanaged codes", w.Action, w.Ref, len(b.unmanaged()))
			}
		})
	}
}

// After a crash, only the name shows whether a rename arrived, because the PIN is the same.
func TestCrash_RenameIsRepeated(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "7")
	named := func(name string) shown {
		f := found("7", "2580")
		f.Name = name
		return f
	}
	b.update(device.CodeChange{ID: c.ID.String(), Name: new("First")})
	first := b.work(c)
	b.begin(first)
	b.end(first, outcome{Ref: "7", Confirmed: true})
	b.update(device.CodeChange{ID: c.ID.String(), Name: new("Other")})
	b.begin(b.work(c))
	b.read(named("First"))
	w := b.work(c)
	if w.Action != lockstate.Put || w.Ref != "7" {
		t.Fatalf("planned action %q of %q", w.Action, w.Ref)
	}
	b.begin(w)
	b.end(w, outcome{Ref: "7"}) // accepted: it may take a while
	b.read(named("First"))
	if got := b.code(c.ID); got.Status == device.StatusSet {
		t.Error("the code is set with its old name")
	}
	b.read(named("Other"))
	if got := b.code(c.ID); got.Status != device.StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// If a vendor accepts every change but keeps the first name, the server gives up after one retry.
func TestRename_VendorKeepsName(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "7")
	was := found("7", "2580")
	was.Name = "First"
	b.update(device.CodeChange{ID: c.ID.String(), Name: new("First")})
	first := b.work(c)
	b.begin(first)
	b.end(first, outcome{Ref: "7", Confirmed: true})
	b.update(device.CodeChange{ID: c.ID.String(), Name: new("Other")})
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "It is busy."}})
	b.begin(w)
	b.end(w, outcome{Ref: "7"})
	b.read(was)
	if got := b.code(c.ID); got.Status != device.StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// A write whose answer was lost may have arrived. The refusal of its successor does not change
// that, because the first write may be the cause.
func TestUncertainWrite_SurvivesRefusal(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"deleted meanwhile": true, "wanted": false} {
		for what, f := range map[string]lockstate.Failure{
			"has the PIN": {Class: lockstate.FailedDuplicate, Message: "taken"},
			"is full":     {Class: lockstate.FailedFull, Message: "no room"},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "smartthings")
				c, _ := b.create("2580")
				b.begin(b.work(c)) // the answer is lost
				b.read()
				w := b.work(c)
				b.begin(w)
				if deleted {
					b.deleteCode(c)
				}
				b.end(w, outcome{Failure: &f})
				clock.pass(5 * time.Second)
				b.read()
				if len(b.managed()) != 1 {
					t.Fatal("the code counts as gone, although it may still arrive")
				}
				b.read(found("5", "2580"))
				if n := len(b.unmanaged()); n > 0 {
					t.Errorf("%d unmanaged codes", n)
				}
				w = b.work(c)
				if deleted {
					if w.Action != lockstate.Delete || w.Ref != "5" {
						t.Errorf("planned action %q of %q", w.Action, w.Ref)
					}
				} else if got := b.code(c.ID); w.Action != lockstate.Nothing || got.Status != device.StatusSet || len(got.Errors) > 0 {
					t.Errorf("planned action %q, status %s, errors %v", w.Action, got.Status, got.Errors)
				}
			})
		}
	}
}

// The uncertainty ends after a while.
func TestUncertainWrite_EndsAfterTimeout(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "smartthings")
	c, _ := b.create("2580")
	b.begin(b.work(c))
	b.read()
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedFull, Message: "no room"}})
	clock.pass(2 * time.Minute)
	b.read()
	b.read(found("5", "2580")) // entered at the keypad
	if got := b.code(c.ID); got.OnDevice || len(b.unmanaged()) != 1 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
	if b.deleteCode(c); len(b.managed()) > 0 {
		t.Error("the deletion waits for the uncertain write")
	}
}
