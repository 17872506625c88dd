package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// What a holder that has crashed was writing to a device that hides PINs is known by its place.
func TestHiddenCodeOfACrashIsKnownByItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found access.Found
		ours  bool
	}{
		"there":                  {found("7", ""), true},
		"elsewhere":              {found("8", ""), false},
		"changed at the lock":    {changedAt("7", time.Now().Add(time.Hour)), false},
		"told as such a change":  {changedAt("7", time.Now()), true},
		"another key":            {access.Found{Ref: "7", Confirmed: true, Key: "another"}, false},
		"another PIN that shows": {found("7", "9999"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			_, err := b.db.Pool.Exec(t.Context(), "update access_codes set write_at = now() - interval '1 minute'") // the radio was busy
			b.must(err)
			b.must(b.access.RecordPlace(t.Context(), holder{}, b.id(), w, "7"))
			b.read(c.found)
			if got := b.code(code.ID); (got.Status == access.StatusSet) != c.ours ||
				(len(b.unmanaged()) == 0) != c.ours {
				t.Errorf("it is %s, beside %d unmanaged codes", got.Status, len(b.unmanaged()))
			}
		})
	}
}

// A lock tells all servers of what one has written, and some tell it as if it were done at the keypad.
func TestWriteThatIsToldAsAChangeIsNoDrift(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		want  access.Status
	}{
		"of the write":     {10 * time.Second, access.StatusSet},
		"a real one after": {time.Minute, access.StatusSetting},
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
				t.Errorf("it is %s", got.Status)
			}
		})
	}
}

// changedAt is a code with a hidden PIN of which the lock has told that it was changed.
func changedAt(ref string, at time.Time) access.Found {
	return access.Found{Ref: ref, Confirmed: true, ChangedAt: at}
}

// Whether a change of a PIN that is hidden has arrived before a crash nobody knows: it is written again.
func TestHiddenChangeOfACrashIsWrittenAgain(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "7")
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "9988"})
	b.begin(b.work(c))
	b.read(found("7", ""))
	w := b.work(c)
	if w.Action != access.Put || w.Ref != "7" {
		t.Fatalf("there is %q of %q to do", w.Action, w.Ref)
	}
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "7"}) // accepted: what it shows from then on is that
	b.read(found("7", ""))
	if got := b.code(c.ID); got.Status != access.StatusSet {
		t.Errorf("it is %s", got.Status)
	}
}

// The PIN that was on its way may have been changed before anybody knew whether it had arrived: it is not somebody else's.
func TestCodeThatWasChangedWhileItsWriteIsInDoubtIsKnownByWhatWasSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(b byHand, code access.Code)
		want access.Action
	}{
		"changed":             {func(byHand, access.Code) {}, access.Put},
		"changed and deleted": {func(b byHand, code access.Code) { b.deleteCode(code) }, access.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "smartthings"})
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedForNow, Message: "no answer"}})
			b.update(access.CodeChange{ID: code.ID.String(), PIN: "9988"})
			c.then(b, code)
			b.read(found("5", "2580"))
			if w := b.work(code); w.Action != c.want || w.Ref != "5" || len(b.unmanaged()) != 0 {
				t.Errorf("there is %q of %q to do, beside %d unmanaged codes", w.Action, w.Ref, len(b.unmanaged()))
			}
		})
	}
}

// Whether a new name has arrived before a crash only the name tells: the PIN is the same before and after.
func TestNewNameOfACrashIsWrittenAgain(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "7")
	named := func(name string) access.Found {
		f := found("7", "2580")
		f.Name = name
		return f
	}
	b.update(access.CodeChange{ID: c.ID.String(), Name: new("First")})
	first := b.work(c)
	b.begin(first)
	b.end(first, access.PutOutcome{Ref: "7", Confirmed: true})
	b.update(access.CodeChange{ID: c.ID.String(), Name: new("Other")})
	b.begin(b.work(c))
	b.read(named("First"))
	w := b.work(c)
	if w.Action != access.Put || w.Ref != "7" {
		t.Fatalf("there is %q of %q to do", w.Action, w.Ref)
	}
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "7"}) // accepted: it may be on its way for a while
	b.read(named("First"))
	if got := b.code(c.ID); got.Status == access.StatusSet {
		t.Error("it is set, and has the name that it had before")
	}
	b.read(named("Other"))
	if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 {
		t.Errorf("it is %s with %v", got.Status, got.Errors)
	}
}

// A vendor that takes every change and keeps its first name all the same is not asked without an end.
func TestNameThatAVendorKeepsIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "7")
	was := found("7", "2580")
	was.Name = "First"
	b.update(access.CodeChange{ID: c.ID.String(), Name: new("First")})
	first := b.work(c)
	b.begin(first)
	b.end(first, access.PutOutcome{Ref: "7", Confirmed: true})
	b.update(access.CodeChange{ID: c.ID.String(), Name: new("Other")})
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedForNow, Message: "It is busy."}})
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "7"})
	b.read(was)
	if got := b.code(c.ID); got.Status != access.StatusSet || len(got.Errors) > 0 {
		t.Errorf("it is %s with %v", got.Status, got.Errors)
	}
}
