package lockstate

import (
	"slices"
	"testing"
	"time"
)

// A lock with time frames receives its codes three days early; others, an hour early.
func TestTimeBoundCode_IsProgrammedBeforeStart(t *testing.T) {
	t.Parallel()
	for profile, ahead := range map[string]time.Duration{"august": 72 * time.Hour, "smartthings": time.Hour} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			from := b.now().Add(100 * time.Hour)
			c := b.between("2580", from, from.Add(time.Hour))
			if w := b.look(); len(w.Codes) > 0 || w.Due == nil || !w.Due.Equal(from.Add(-ahead)) {
				t.Fatalf("due at %v, want %v", w.Due, from.Add(-ahead))
			}
			b.to(from.Add(-ahead))
			w := b.work(c)
			if native := profile == "august"; w.Action != Put || (w.StartsAt != nil) != native {
				t.Fatalf("planned action %q, from %v", w.Action, w.StartsAt)
			}
			b.begin(w)
			b.end(w, Outcome{Ref: "k1", Confirmed: true})
			if got := b.code(c.ID); got.Status != StatusUnset {
				t.Errorf("before its start: status %s", got.Status)
			}
			b.to(from)
			b.look()
			if got := b.code(c.ID); got.Status != StatusSet {
				t.Errorf("after its start: status %s", got.Status)
			}
			if got := b.events(c.ID); !slices.Contains(got, "access_code.scheduled_on_device") ||
				!slices.Contains(got, "access_code.set_on_device") {
				t.Errorf("events %v", got)
			}
		})
	}
}

// The lock was offline at the end of the code. Removing the code is the first operation afterwards.
// Until then, a warning says that it may still open.
func TestTimeBoundCode_EndsWhileOffline(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c := b.between("2580", b.now(), b.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	later, _ := b.create("4711")
	b.pass(time.Hour)
	if w := b.work(c); w.Action != Delete {
		t.Fatalf("planned action %q", w.Action)
	}
	for range 10 {
		b.unreachable(true, true)
		b.pass(10 * time.Minute)
		b.look()
	}
	got := b.code(c.ID)
	if got.Status != StatusRemoving || len(got.Errors)+len(got.Warnings) == 0 {
		t.Errorf("status %s, errors %v, warnings %v", got.Status, got.Errors, got.Warnings)
	}
	late := slices.Index(b.events(c.ID), "access_code.delay_in_removing_from_device")
	if late < 0 || slices.Contains(b.events(c.ID)[late+1:], "access_code.delay_in_removing_from_device") {
		t.Errorf("events %v", b.events(c.ID))
	}
	b.read(found("k1", ""))
	if w := b.work(c); w.Action != Delete {
		t.Errorf("back online: planned action %q", w.Action)
	}
	if w := b.work(later); w.Action != Put || !w.New {
		t.Errorf("planned action %q for the other code", w.Action)
	}
	b.removal(b.work(c), true, nil)
	b.read()
	if slices.ContainsFunc(b.managed(), func(m view) bool { return m.ID == c.ID }) {
		t.Error("the code still exists")
	}
}

// The removal needs a confirmation.
func TestTimeBoundCode_LateRemovalIsAnError(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.between("2580", b.now(), b.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	b.pass(time.Hour)
	tries := 0
	for range 6 {
		w := b.work(c)
		if w.Action != Delete {
			t.Fatalf("planned action %q", w.Action)
		}
		b.removal(w, false,
			&Failure{Class: FailedForNow, Message: "the lock jammed."})
		tries++
		b.pass(time.Hour)
	}
	if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_expire" {
		t.Errorf("after %d tries: errors %v", tries, got.Errors)
	}
	if got := b.told("access_code.failed_to_expire", "access_code.failed_to_remove_from_device"); !slices.Equal(got,
		[]string{"access_code.failed_to_expire"}) {
		t.Errorf("events %v", got)
	}
}

// A failure concerning a code on the lock is a failure to change it, not to set it.
func TestFailedChange_IsFailedToUpdate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure Failure
		tries   int
		says    string
	}{
		"refused":          {Failure{Class: FailedInvalid, Message: "no such name"}, 1, "code_constraints_violated"},
		"cannot be done":   {Failure{Class: FailedUnsupported, Message: "codes cannot be renamed"}, 1, "failed_to_update"},
		"fails repeatedly": {Failure{Class: FailedForNow, Message: "busy."}, 6, "failed_to_update"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			code := b.on("2580", "k1")
			b.update(code, change{Name: new("Friend")})
			for range c.tries {
				w := b.work(code)
				b.begin(w)
				b.end(w, Outcome{Failure: &c.failure})
				b.pass(time.Hour)
			}
			if got := b.code(code.ID); len(got.Errors) != 1 || got.Errors[0].Code != c.says {
				t.Errorf("errors %v", got.Errors)
			}
			events := b.told("access_code.failed_to_update", "access_code.failed_to_set_on_device")
			if !slices.Equal(events, []string{"access_code.failed_to_update"}) {
				t.Errorf("events %v", events)
			}
			if c.failure.Class != FailedForNow {
				return
			}
			w := b.work(code)
			b.begin(w)
			b.end(w, Outcome{Ref: "k1", Confirmed: true})
			if got := b.code(code.ID); len(got.Errors) > 0 {
				t.Errorf("after the change: errors %v", got.Errors)
			}
		})
	}
}

// A code whose change was refused repeatedly and is paused still leaves the lock at its end.
func TestTimeBoundCode_EndsDuringBackoff(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"smartthings", "august"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			ends := b.now().Add(3 * time.Hour)
			c := b.between("2580", b.now(), ends)
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Ref: "k1", Confirmed: true})
			b.update(c, change{Name: new("Friend")})
			b.to(ends.Add(-time.Minute))
			for range 12 { // each pause is longer than the last
				b.edit(func(c *Code) { c.NextAttemptAt = nil })
				if w = b.work(c); w.Action != Put {
					t.Fatalf("planned action %q", w.Action)
				}
				b.begin(w)
				b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "busy"}})
			}
			if look := b.look(); look.Due == nil || look.Due.After(ends) {
				t.Errorf("end at %s, next look at %v", ends, look.Due)
			}
			b.to(ends)
			if w = b.work(c); w.Action != Delete {
				t.Errorf("after its end: planned action %q", w.Action)
			}
		})
	}
}
