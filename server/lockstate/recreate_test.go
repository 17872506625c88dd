package lockstate

import (
	"testing"
	"time"
)

// The vendor answered a repeated create with the first code. The code is recreated and not
// announced as set before.
func TestRepeatedCreate_OtherPINIsRecreated(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.device.Capabilities.ModifyInPlace = false
	c, _ := b.create("2580")
	b.begin(b.work(c)) // the answer is lost
	b.update(c, change{PIN: "1357"})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1"})
	first := found("r1", "2580")
	first.Key = c.ID
	b.read(first)
	b.pass(2 * time.Second) // the backoff has passed
	if got, w := b.code(c.ID), b.work(c); got.Status != StatusSetting || w.Action != Delete ||
		w.Ref != "r1" {
		t.Errorf("status %s, planned action %q of %s", got.Status, w.Action, w.Ref)
	}
}

// A write that a vendor accepts and never confirms shows nowhere without a code list, and without
// in-place changes nothing overwrites it. The server announces that once. A new request recreates
// the code, and the code can be deleted.
func TestNoCodeList_NeverConfirmed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(b *bed, c view)
		left int
	}{
		"asked for again": {func(b *bed, c view) {
			b.update(c, change{PIN: "2580"})
			w := b.work(c)
			if w.Action != Delete || w.Ref != "k1" {
				b.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.taken(w)
			b.set(c, "k2")
			if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
				b.Errorf("confirmed: status %s, errors %v", got.Status, got.Errors)
			}
		}, 1},
		"deleted": {func(b *bed, c view) {
			b.deleteCode(c)
			w := b.work(c)
			if w.Action != Delete || w.Ref != "k1" {
				b.Fatalf("planned action %q of %q", w.Action, w.Ref)
			}
			b.taken(w)
		}, 0},
	} {
		for when, away := range map[string]bool{"": false, ", its lock was away": true} {
			t.Run(name+when, func(t *testing.T) {
				t.Parallel()
				b := unlisted(t)
				b.device.Capabilities.ModifyInPlace = false
				code, a := b.create("2580")
				w := b.work(code)
				b.begin(w)
				b.end(w, Outcome{Ref: "k1"})
				if w := b.work(code); w.Action != Await {
					t.Fatalf("just put: planned action %q", w.Action)
				}
				if away {
					b.away()
				}
				b.rests()
				got := b.code(code.ID)
				if got.Status != StatusUnset || !got.hasError("failed_to_set_on_device") ||
					b.attempt(a).Status != Failed {
					t.Errorf("status %s, errors %v, attempt %s", got.Status, got.Errors, b.attempt(a).Status)
				}
				if n := countOf(b.events(code.ID), "access_code.failed_to_set_on_device"); n != 1 {
					t.Errorf("%d events", n)
				}
				if c.then(b, code); len(b.managed()) != c.left {
					t.Errorf("%d codes left", len(b.managed()))
				}
			})
		}
	}
}

// The server dies before and after the code was removed from the lock.
func TestRecreation_SurvivesCrash(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	c := b.on("2580", "k1")
	b.update(c, change{PIN: "2591"})
	for range 2 { // the second time, the deletion has started
		w := b.work(c)
		if w.Action != Delete || !w.TemporaryRemoval {
			t.Fatalf("planned action %q", w.Action)
		}
		if !b.started(w) {
			t.Fatal("the operation is not wanted")
		}
		b.read(found("k1", "2580"))
	}
	w := b.work(c)
	b.removal(w, true, nil)
	b.read()
	w = b.work(c)
	if w.Action != Put || !w.New || w.PIN != "2591" {
		t.Fatalf("planned action %q", w.Action)
	}
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "no answer"}})
	b.read(Found{Ref: "k2", Key: c.ID, PIN: "2591"}) // pending
	if w := b.work(c); w.Action != Await {
		t.Fatalf("planned action %q for a pending code", w.Action)
	}
	b.read(Found{
		Ref:       "k2",
		Key:       c.ID,
		PIN:       "2591",
		Confirmed: true,
	})
	if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 ||
		b.work(c).Action != Nothing {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// A briefly empty list does not lose a code that waits for recreation.
func TestRecreation_EmptyListKeepsCode(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	c := b.on("2580", "k1")
	b.update(c, change{PIN: "2591"})
	b.read()
	if w := b.work(c); w.Action != Delete || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A drifted code is repaired in the same way.
func TestRecreation_RepairsDrift(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	b.timeouts.ReadLag = time.Nanosecond
	c := b.on("2580", "k1")
	b.read(found("k1", "9999"))
	if w := b.work(c); w.Action != Delete || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
	b.read(found("k1", "2580")) // repaired by another party
	if w := b.work(c); w.Action != Nothing || b.code(c.ID).Status != StatusSet {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A change refused because the vendor's limits were unknown succeeds once they are known.
func TestRecreation_AfterRefusedInPlaceChange(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	b.update(c, change{PIN: "2591"})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedUnsupported, Message: "not in place"}})
	if w := b.work(c); w.Action != Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	b.device.Capabilities.ModifyInPlace = false
	if w := b.work(c); w.Action != Delete {
		t.Errorf("planned action %q", w.Action)
	}
}

// rigid returns the capabilities of locks without in-place changes.
func rigid(t *testing.T, profile string) *bed {
	t.Helper()
	b := newBed(t, profile)
	b.device.Capabilities.ModifyInPlace = false
	return b
}

// A lock may wake up only every few minutes. A pending code in the vendor's queue is the desired
// one and must not be deleted.
func TestRecreation_PendingCodeIsKept(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1"})
	for range 10 {
		b.pass(2 * time.Minute)
		if w := b.work(c); w.Action == Delete || w.Action == Put {
			t.Fatalf("planned action %q", w.Action)
		}
	}
	b.read(found("k1", "2580"))
	if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
	b.update(c, change{PIN: "2591"})
	b.taken(b.work(c))
	b.pass(b.timeouts.ReadLag)
	b.read(found("k9", "9999"))
	w = b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k2"})
	b.read(found("k9", "9999"), found("k2", "2580")) // not the code that was put, and it will not become it
	b.pass(2 * time.Second)
	if w := b.work(c); w.Action != Delete || w.Ref != "k2" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// The same if the lock hides PINs: the reference of that put has no other code.
func TestRecreation_PendingHiddenCodeIsKept(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1"})
	for range 3 {
		b.pass(2 * time.Minute)
		b.look()
	}
	b.read(found("k1", ""))
	if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// If the device stores no time frames, a changed one is no reason to recreate the code.
func TestRecreation_NotForUnstoredTimeFrame(t *testing.T) {
	t.Parallel()
	b := rigid(t, "smartthings")
	c := b.onBetween("2580", b.now(), b.now().Add(time.Hour))
	a := b.update(c, change{EndsAt: new(b.now().Add(48 * time.Hour))})
	if w := b.work(c); w.Action != Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	a = b.attempt(a)
	if got := b.code(c.ID); a.Status != Succeeded || got.Status != StatusSet || got.pending() {
		t.Errorf("attempt %s, status %s", a.Status, got.Status)
	}
	if countOf(b.events(c.ID), "access_code.time_frame_changed") != 1 {
		t.Errorf("events %v", b.events(c.ID))
	}
	// Two changes back to the first state, while the lock accepted the one in between.
	b.update(c, change{PIN: "2591"})
	b.taken(b.work(c))
	b.pass(b.timeouts.ReadLag)
	b.read(found("k9", "9999"))
	w := b.work(c)
	b.begin(w)
	b.update(c, change{PIN: "2580"})
	b.end(w, Outcome{Ref: "k2", Confirmed: true})
	if w := b.work(c); w.Action != Delete || w.Ref != "k2" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// A pulled backup code is in use by a person at the door.
func TestRecreation_PulledBackupIsKept(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	guest := b.filled(b.now(), b.now().Add(time.Hour))
	pulled, err := b.pull(guest)
	b.must(err)
	if w := b.work(pulled); w.Action != Nothing {
		t.Fatalf("planned action %q", w.Action)
	}
	if got := b.code(pulled.ID); got.Status != StatusSet || len(got.Errors)+len(got.Warnings) > 0 {
		t.Errorf("status %s, errors %v, warnings %v", got.Status, got.Errors, got.Warnings)
	}
	b.pass(time.Hour)
	if w := b.work(pulled); w.Action != Delete {
		t.Errorf("after its end: planned action %q", w.Action)
	}
}

// A code with an unknown PIN could not be created again.
func TestRecreation_NotForUnknownPIN(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	b.read(Found{Ref: "k1", Name: "Owner", Confirmed: true})
	code := b.unmanaged()[0]
	b.convert(code, nil)
	b.read(Found{Ref: "k1", Name: "Owner", Confirmed: true})
	name := "Landlady"
	b.update(code, change{Name: &name})
	if w := b.work(code); w.Action != Put || w.Ref != "k1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

// An operation that takes hours is not polled every few seconds.
func TestRecreation_PollsSlowWriteLessAndLess(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1"})
	end, looks := b.now().Add(24*time.Hour), 0
	for ; b.now().Before(end); looks++ {
		b.read(Found{Ref: "k1", Key: c.ID, PIN: "2580"})
		due := b.look().Due
		if due == nil || due.Sub(b.now()) > 15*time.Minute {
			t.Fatalf("next look at %v", due)
		}
		b.to(*due)
	}
	if looks > 400 {
		t.Errorf("%d looks a day", looks)
	}
}

// A vendor that always shows another code than the one put does so again.
func TestRecreation_BacksOffIfNeverShownAsPut(t *testing.T) {
	t.Parallel()
	b := rigid(t, "august")
	c := b.between("2580", b.now(), b.now().Truncate(time.Minute).Add(48*time.Hour+30*time.Second))
	puts, on := 0, []Found{found("k9", "9999")}
	for end := b.now().Add(6 * time.Hour); b.now().Before(end); {
		b.read(on...)
		w := b.work(c)
		switch w.Action {
		case Put:
			b.begin(w)
			b.end(w, Outcome{Ref: "k1"})
			rounded := found("k1", "2580")
			rounded.StartsAt, rounded.EndsAt = w.StartsAt, new(w.EndsAt.Truncate(time.Minute))
			puts, on = puts+1, append(on[:1], rounded)
		case Delete:
			b.taken(w)
			on = on[:1]
		default:
			due := b.look().Due
			if due == nil {
				t.Fatal("the code was given up")
			}
			b.to(*due)
		}
		b.pass(time.Second)
	}
	if puts < 5 || puts > 45 {
		t.Errorf("%d puts in six hours", puts)
	}
	if got := b.code(c.ID); !got.hasError("failed_to_set_on_device") {
		t.Errorf("errors %v", got.Errors)
	}
	if n := countOf(b.events(c.ID), "access_code.failed_to_set_on_device"); n != 1 {
		t.Errorf("%d events", n)
	}
}

// The vendor chooses another PIN for a recreated code. Until then, none opens.
func TestRecreation_ProviderPIN(t *testing.T) {
	t.Parallel()
	b := rigid(t, "salto_ks")
	b.timeouts.ReadLag = time.Nanosecond
	c := b.invented("111111", "k1")
	b.update(c, change{Name: new("Cleaner")})
	w := b.work(c)
	if w.Action != Delete || w.Ref != "k1" {
		t.Fatalf("planned action %q of %q", w.Action, w.Ref)
	}
	b.taken(w)
	b.read(found("k9", "999999"))
	b.shows("removed", c, "", StatusSetting)
	b.invents(c, "222222", "k2")
	b.shows("recreated", c, "222222", StatusSet)
}
