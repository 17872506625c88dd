package lockstate

import (
	"testing"
	"time"
)

// If a device hides PINs, its slot identifies a code that was being written during a crash.
func TestCrash_HiddenCodeIsFoundBySlot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found Found
		// changed is when the lock reported a change, after the write; zero: never.
		changed time.Duration
		ours    bool
	}{
		"there":                {found("7", ""), 0, true},
		"elsewhere":            {found("8", ""), 0, false},
		"changed at the lock":  {found("7", ""), time.Hour, false},
		"reported as a change": {found("7", ""), time.Second, true},
		"another key":          {Found{Ref: "7", Confirmed: true, HasKey: true}, 0, false},
		"another visible PIN":  {found("7", "9999"), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			// The radio was busy.
			b.pass(time.Minute)
			b.place(w, "7")
			if c.changed > 0 {
				c.found.ChangedAt = b.now().Add(c.changed)
			}
			b.read(c.found)
			if got := b.code(code.ID); (got.Status == StatusSet) != c.ours ||
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
		want  Status
	}{
		"of the write":     {10 * time.Second, StatusSet},
		"a real one after": {time.Minute, StatusSetting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			code := b.on("2580", "7")
			b.pass(time.Hour)
			b.read(changedAt("7", b.now().Add(c.after-time.Hour)))
			if got := b.code(code.ID); got.Status != c.want {
				t.Errorf("status %s", got.Status)
			}
		})
	}
}

// changedAt returns a code with a hidden PIN that the lock has reported as changed.
func changedAt(ref string, at time.Time) Found {
	return Found{Ref: ref, Confirmed: true, ChangedAt: at}
}

// Whether a hidden PIN was changed before a crash is unknown, so it is written again.
func TestCrash_HiddenChangeIsRepeated(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "7")
	b.update(c, change{PIN: "9988"})
	b.begin(b.work(c))
	b.read(found("7", ""))
	w := b.work(c)
	if w.Action != Put || w.Ref != "7" {
		t.Fatalf("planned action %q of %q", w.Action, w.Ref)
	}
	b.begin(w)
	b.end(w, Outcome{Ref: "7"}) // accepted: the list shows it from now on
	b.read(found("7", ""))
	if got := b.code(c.ID); got.Status != StatusSet {
		t.Errorf("status %s", got.Status)
	}
}

// A code may change while its write is uncertain. The pending PIN still identifies it.
func TestUncertainWrite_CodeChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(b *bed, code view)
		want Action
	}{
		"changed":             {func(*bed, view) {}, Put},
		"changed and deleted": {func(b *bed, code view) { b.deleteCode(code) }, Delete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "smartthings")
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "no answer"}})
			b.update(code, change{PIN: "9988"})
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
	b := newBed(t, "august")
	c := b.on("2580", "7")
	named := func(name string) Found {
		f := found("7", "2580")
		f.Name = name
		return f
	}
	b.update(c, change{Name: new("First")})
	first := b.work(c)
	b.begin(first)
	b.end(first, Outcome{Ref: "7", Confirmed: true})
	b.update(c, change{Name: new("Other")})
	b.begin(b.work(c))
	b.read(named("First"))
	w := b.work(c)
	if w.Action != Put || w.Ref != "7" {
		t.Fatalf("planned action %q of %q", w.Action, w.Ref)
	}
	b.begin(w)
	b.end(w, Outcome{Ref: "7"}) // accepted: it may take a while
	b.read(named("First"))
	if got := b.code(c.ID); got.Status == StatusSet {
		t.Error("the code is set with its old name")
	}
	b.read(named("Other"))
	if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// If a vendor accepts every change but keeps the first name, the server gives up after one retry.
func TestRename_VendorKeepsName(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "7")
	was := found("7", "2580")
	was.Name = "First"
	b.update(c, change{Name: new("First")})
	first := b.work(c)
	b.begin(first)
	b.end(first, Outcome{Ref: "7", Confirmed: true})
	b.update(c, change{Name: new("Other")})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "It is busy."}})
	b.begin(w)
	b.end(w, Outcome{Ref: "7"})
	b.read(was)
	if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// A write whose answer was lost may have arrived. The refusal of its successor does not change
// that, because the first write may be the cause.
func TestUncertainWrite_SurvivesRefusal(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"deleted meanwhile": true, "wanted": false} {
		for what, f := range map[string]Failure{
			"has the PIN": {Class: FailedDuplicate, Message: "taken"},
			"is full":     {Class: FailedFull, Message: "no room"},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "smartthings")
				c, _ := b.create("2580")
				b.begin(b.work(c)) // the answer is lost
				b.read()
				w := b.work(c)
				b.begin(w)
				if deleted {
					b.deleteCode(c)
				}
				b.end(w, Outcome{Failure: &f})
				b.pass(5 * time.Second)
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
					if w.Action != Delete || w.Ref != "5" {
						t.Errorf("planned action %q of %q", w.Action, w.Ref)
					}
				} else if got := b.code(c.ID); w.Action != Nothing || got.Status != StatusSet || len(got.Errors) > 0 {
					t.Errorf("planned action %q, status %s, errors %v", w.Action, got.Status, got.Errors)
				}
			})
		}
	}
}

// The uncertainty ends after a while.
func TestUncertainWrite_EndsAfterTimeout(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c, _ := b.create("2580")
	b.begin(b.work(c))
	b.read()
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "no room"}})
	b.pass(2 * time.Minute)
	b.read()
	b.read(found("5", "2580")) // entered at the keypad
	if got := b.code(c.ID); got.AppliedGen > 0 || len(b.unmanaged()) != 1 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
	if b.deleteCode(c); len(b.managed()) > 0 {
		t.Error("the deletion waits for the uncertain write")
	}
}
