package lockstate

import (
	"slices"
	"testing"
	"time"
)

// Without a code list, nothing shows that a write with a lost answer arrived, so the refusal of the
// next one counts.
func TestNoCodeList_RefusedCodeIsNotAwaited(t *testing.T) {
	t.Parallel()
	for class, says := range map[FailureClass]string{
		FailedFull:      "no_space_for_access_code_on_device",
		FailedDuplicate: "duplicate_code_on_device",
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			b := unlisted(t)
			c, _ := b.create("2580")
			b.begin(b.work(c)) // the answer is lost
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: class, Message: "refused"}})
			if w := b.work(c); w.Action != Await {
				t.Errorf("just refused: planned action %q", w.Action)
			}
			b.rests()
			if got := b.code(c.ID); got.Status != StatusUnset || !got.hasError(says) {
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
			other := b.on("4711", "k2")
			b.deleteCode(other)
			b.taken(b.work(other))
			if w := b.work(c); w.Action != Put || !w.New { // a slot is free, and the PIN may be, too
				t.Errorf("after another code left: planned action %q", w.Action)
			}
		})
	}
}

// A write refused because of other codes on the lock is retried when they change. Only the first
// refusal emits an event.
func TestRefusal_IsAnnouncedOncePerRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k1", "1010"))
	c, _ := b.create("2580")
	refuse := func() {
		t.Helper()
		w := b.work(c)
		if w.Action != Put {
			t.Fatalf("planned action %q", w.Action)
		}
		b.begin(w)
		b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "the lock is full."}})
		b.pass(time.Minute)
	}
	refuse()
	for _, pin := range []PIN{"1111", "2222", "3333"} {
		b.read(found("k1", pin))
		refuse()
	}
	const failed = "access_code.failed_to_set_on_device"
	if got := b.told(failed); len(got) != 1 {
		t.Errorf("%d events for the same refusal", len(got))
	}
	b.update(c, change{Name: new("Friend")})
	refuse()
	if got := b.told(failed); len(got) != 2 {
		t.Errorf("%d events after another request", len(got))
	}
}

func TestFailure_IsAnnouncedOncePerRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	var want []string
	for _, name := range []string{"Friend", "Guest"} {
		b.update(c, change{Name: &name})
		for range 6 {
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "busy."}})
			b.pass(time.Hour)
		}
		want = append(want, "access_code.failed_to_update")
		if got := b.told("access_code.failed_to_update"); !slices.Equal(got, want) {
			t.Errorf("events %v", got)
		}
		if got := b.code(c.ID).Errors; len(got) != 1 || got[0].Code != "failed_to_update" {
			t.Errorf("errors %v", got)
		}
	}
}

// A change succeeded, but its answer was lost. The retry is refused because the code itself has the
// PIN.
func TestDuplicatePIN_OfCodeItself(t *testing.T) {
	t.Parallel()
	itself := &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: "k1"}
	frame := change{
		StartsAt: new(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)),
		EndsAt:   new(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	for name, c := range map[string]struct {
		unlisted bool
		shown    func() Found // nil: the device has no code list
		code     string       // remaining error; empty: none
		ch       change
		then     change // change before the answer
	}{
		"PINs are hidden": {false, func() Found { return found("k1", "") }, "", change{PIN: "2591"}, change{}},
		"listed with the PIN": {false, func() Found {
			f := found("k1", "")
			f.Failure = itself
			return f
		}, "", change{PIN: "2591"}, change{}},
		"no code list":                         {true, nil, "", change{PIN: "2591"}, change{}},
		"no code list, another change refused": {true, nil, "duplicate_code_on_device", change{PIN: "2591"}, frame},
		"no code list, PIN unchanged":          {true, nil, "duplicate_code_on_device", frame, change{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.PINVisible, b.device.Capabilities.ListCodes = false, !c.unlisted
			code := b.on("2580", "k1")
			b.pass(time.Minute)
			a := b.update(code, c.ch)
			b.begin(b.work(code)) // the answer is lost
			if c.then.EndsAt != nil {
				a = b.update(code, c.then)
			}
			for n := 0; b.attempt(a).Status == Pending; n++ {
				if c.shown != nil {
					b.read(c.shown())
				}
				if w := b.work(code); w.Action == Put {
					b.begin(w)
					b.end(w, Outcome{Failure: itself})
				}
				if b.pass(30 * time.Second); n > 10 {
					t.Fatalf("endless retries: %v", b.code(code.ID).Errors)
				}
			}
			got := b.code(code.ID)
			switch {
			case c.code == "" && (b.attempt(a).Status != Succeeded || got.Status != StatusSet || len(got.Errors) > 0):
				t.Errorf("status %s, errors %v, attempt %s", got.Status, got.Errors, b.attempt(a).Status)
			case c.code != "" && (!got.hasError(c.code) || got.Errors[0].Other != [16]byte{}):
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		})
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
			if got := b.code(code.ID); !got.hasError(c.says) {
				t.Errorf("errors %v", got.Errors)
			}
			events := b.told("access_code.failed_to_update", "access_code.failed_to_set_on_device")
			if !slices.Equal(events, []string{"access_code.failed_to_update"}) {
				t.Errorf("events %v", events)
			}
			if c.failure.Class != FailedForNow {
				return
			}
			b.set(code, "k1")
			if got := b.code(code.ID); len(got.Errors) > 0 {
				t.Errorf("after the change: errors %v", got.Errors)
			}
		})
	}
}
