package lockstate

import (
	"testing"
	"time"
)

// After a restore, the server knows a recreated code only under its old reference. The vendor has
// kept the owner.
func TestRestoredBackup_FindsRecreatedCode(t *testing.T) {
	t.Parallel()
	b := newFreshBed(t, "august")
	c := b.on("2580", "r1")
	b.read(found("r1", "2580"))
	moved := found("r2", "1357")
	moved.Key = c.ID
	b.read(moved)
	if w := b.work(c); w.Action != Put || w.Ref != "r2" || len(b.unmanaged()) != 0 {
		t.Errorf("planned action %+v, %d unmanaged codes", w.Action, len(b.unmanaged()))
	}
	// While both are listed, the known reference counts.
	b.read(found("r2", "2580"))
	old := found("r1", "9999")
	old.Key = c.ID
	b.read(old, found("r2", "2580"))
	if got := b.code(c.ID); got.Status != StatusSet || len(b.unmanaged()) != 1 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
}

// A code recreated after the backup, which hides its PIN or failed, does not count as the code in
// the backup.
func TestRestoredBackup_UnprovenCodeIsPutAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shown Found
		ref   string
	}{
		"hidden PIN":   {Found{Ref: "r2", Confirmed: true}, "r2"},
		"failed write": {Found{Ref: "r2", Failure: &Failure{Class: FailedForNow, Message: "The lock did not answer."}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			code := b.on("2580", "r1")
			b.read(found("r1", "2580"), found("k9", "9999"))
			c.shown.Key = code.ID
			b.read(c.shown, found("k9", "9999"))
			if got, w := b.code(
				code.ID,
			), b.work(
				code,
			); got.Status != StatusSetting ||
				w.Action != Put ||
				w.Ref != c.ref {
				t.Errorf("status %s, planned action %q of %q", got.Status, w.Action, w.Ref)
			}
		})
	}
}

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

// A code moved to another reference only where nothing else explains that one.
func TestMovedCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found func(f *Found)
		then  func(b *bed, c view)
		moved bool
	}{
		"moved":                       {moved: true},
		"the vendor is removing it":   {found: func(f *Found) { f.Removing = true }},
		"a write is on its way":       {then: func(b *bed, c view) { b.update(c, change{PIN: "4711"}); b.begin(b.work(c)) }},
		"the list may be out of date": {then: func(b *bed, c view) { b.update(c, change{PIN: "4711"}); b.set(c, "k1") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			code := b.on("2580", "k1")
			b.pass(time.Hour)
			if c.then != nil {
				c.then(b, code)
			}
			is := Found{Ref: "k2", Key: code.ID, PIN: "2580", Confirmed: true}
			if c.found != nil {
				c.found(&is)
			}
			b.read(is)
			if got := b.code(code.ID); (got.Ref == "k2") != c.moved {
				t.Errorf("the code is at %q", got.Ref)
			}
		})
	}
}
