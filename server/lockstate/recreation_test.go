package lockstate

import (
	"testing"
	"time"
)

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
	b.removal(b.work(c), true, nil)
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
	c := b.between("2580", b.now(), b.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
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
	b.removal(b.work(c), true, nil)
	b.read(found("k9", "9999"))
	w = b.work(c)
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
	if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_set_on_device" {
		t.Errorf("errors %v", got.Errors)
	}
	if n := countOf(b.events(c.ID), "access_code.failed_to_set_on_device"); n != 1 {
		t.Errorf("%d events", n)
	}
}

// A vendor with idempotent creates answers a repeated create with the first code. If it hides PINs,
// the answer does not show which PIN the code has.
func TestRepeatedCreate_OtherPINHidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// unlisted and rigid are what the lock cannot do: list codes, and change them in place.
		unlisted, rigid bool
		doubt           func(b *bed, c view) Outcome
		shown           bool
	}{
		"confirmed": {false, false, func(b *bed, c view) Outcome {
			return Outcome{Ref: "r1", Confirmed: true}
		}, false},
		"accepted": {false, false, func(b *bed, c view) Outcome { return Outcome{Ref: "r1"} }, true},
		"confirmed and listed late, no in-place changes": {false, true, func(b *bed, c view) Outcome {
			return Outcome{Ref: "r1", Confirmed: true}
		}, false},
		"accepted, no in-place changes": {false, true, func(b *bed, c view) Outcome { return Outcome{Ref: "r1"} }, true},
		"second answer lost, too": {false, false, func(b *bed, c view) Outcome {
			b.begin(b.work(c))
			b.read(found("k9", ""))
			return Outcome{Ref: "r1", Confirmed: true}
		}, false},
		"without a code list": {true, false, func(b *bed, c view) Outcome { return Outcome{Ref: "r1", Confirmed: true} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.PINVisible = false
			b.device.Capabilities.ListCodes, b.device.Capabilities.ModifyInPlace = !c.unlisted, !c.rigid
			code, _ := b.create("2580")
			b.begin(b.work(code)) // the answer is lost
			b.read(found("k9", ""))
			b.update(code, change{PIN: "1357"})
			o := c.doubt(b, code)
			w := b.work(code)
			if w.Action != Put || !w.New {
				t.Fatalf("planned action %q", w.Action)
			}
			b.begin(w)
			b.end(w, o)
			masked := Found{Ref: "r1", Key: code.ID, Confirmed: true}
			if !c.unlisted {
				for _, list := range [][]Found{{found("k9", "")}, {found("k9", ""), masked}}[:1+map[bool]int{true: 1}[c.shown]] {
					b.pass(time.Second)
					b.read(list...)
				}
			}
			if got := b.code(code.ID); got.Status != StatusSetting {
				t.Errorf("status %s", got.Status)
			}
			w = b.work(code)
			if want := map[bool]Action{true: Delete, false: Put}[c.rigid]; w.Action != want ||
				w.Ref != "r1" {
				t.Fatalf("planned action %q of %q, want %q", w.Action, w.Ref, want)
			}
			if w.Action == Delete {
				b.taken(w)
				b.pass(30 * time.Second) // a stale list still shows the old code
				b.read(found("k9", ""))
				w = b.work(code)
			}
			b.begin(w)
			b.end(w, Outcome{Ref: "r2", Confirmed: true})
			if got := b.code(code.ID); w.PIN != "1357" || got.Status != StatusSet {
				t.Errorf("after the second put: status %s", got.Status)
			}
		})
	}
}

// If the second answer is lost as well, the listed code may be either of the two.
func TestRepeatedCreate_TwoLostAnswersHiddenPIN(t *testing.T) {
	t.Parallel()
	for inPlace, want := range map[bool]Action{true: Put, false: Delete} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.PINVisible = false
			b.device.Capabilities.ModifyInPlace = inPlace
			code, _ := b.create("2580")
			b.begin(b.work(code))
			b.update(code, change{PIN: "1357"})
			b.begin(b.work(code))
			for _, confirmed := range []bool{false, true, true} {
				b.read(Found{Ref: "r1", Key: code.ID, Confirmed: confirmed})
			}
			if got, w := b.code(code.ID), b.work(code); got.Status != StatusSetting || w.Action != want ||
				w.Ref != "r1" {
				t.Errorf("status %s, planned action %q of %q", got.Status, w.Action, w.Ref)
			}
		})
	}
}

// Repeating a create with the same PIN yields the same code.
func TestRepeatedCreate_SamePIN(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.device.Capabilities.PINVisible = false
	code, _ := b.create("2580")
	b.begin(b.work(code))
	b.read(found("k9", ""))
	b.update(code, change{Name: new("Friend")})
	w := b.work(code)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1", Confirmed: true})
	if got := b.code(code.ID); got.Status != StatusSet {
		t.Errorf("status %s", got.Status)
	}
}
