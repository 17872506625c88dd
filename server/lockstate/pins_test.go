package lockstate

import (
	"slices"
	"testing"
	"time"
)

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
			case c.code != "" && (len(got.Errors) != 1 || got.Errors[0].Code != c.code || got.Errors[0].Other != [16]byte{}):
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}

// invented creates a code whose vendor chose the given PIN.
func (b *bed) invented(pin PIN, ref string) view {
	b.Helper()
	c, _ := b.create("")
	b.invents(c, pin, ref)
	return c
}

func (b *bed) invents(c view, pin PIN, ref string) {
	b.Helper()
	w := b.work(c)
	if w.Action != Put {
		b.Fatalf("planned action %q", w.Action)
	}
	b.begin(w)
	b.end(w, Outcome{Ref: ref, PIN: pin})
	b.read(found(ref, pin))
}

func (b *bed) shows(when string, c view, pin PIN, status Status) {
	b.Helper()
	if got := b.code(c.ID); got.PIN != pin || got.Status != status {
		b.Errorf("%s: status %s, PIN known: %v", when, got.Status, got.PIN != "")
	}
}

// A vendor that chooses PINs chooses another one if a code is recreated. That PIN opens.
func TestProviderPIN_ChangesOnRecreation(t *testing.T) {
	t.Parallel()
	t.Run("deleted at the lock", func(t *testing.T) {
		t.Parallel()
		b := newFreshBed(t, "salto_ks")
		c := b.invented("111111", "r1")
		b.shows("at first", c, "111111", StatusSet)
		b.read(found("r9", "999999"))
		b.shows("gone", c, "", StatusSetting)
		b.invents(c, "222222", "r2")
		b.shows("put back", c, "222222", StatusSet)
	})
	t.Run("lost on its way", func(t *testing.T) {
		t.Parallel()
		b := newFreshBed(t, "salto_ks")
		c, _ := b.create("")
		w := b.work(c)
		b.begin(w)
		b.end(w, Outcome{Ref: "r1", PIN: "111111"})
		b.read(
			Found{
				Ref:     "r1",
				PIN:     "111111",
				Failure: &Failure{Class: FailedForNow, Message: "lost"},
			},
		)
		b.edit(func(c *Code) { c.NextAttemptAt = nil })
		b.invents(c, "222222", "r2")
		b.shows("put again", c, "222222", StatusSet)
	})
	t.Run("changed at the lock", func(t *testing.T) {
		t.Parallel()
		b := newFreshBed(t, "salto_ks")
		c := b.invented("111111", "r1")
		for range 2 {
			b.read(found("r1", "333333"))
			b.shows("changed", c, "333333", StatusSet)
			if w := b.work(c); w.Action != Nothing {
				t.Errorf("planned action %q, but no put restores the former PIN", w.Action)
			}
		}
		if n := countOf(b.events(c.ID), "access_code.modified_external_to_seam"); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// The server dies before and after the code that steps aside was removed from the lock.
func TestSwappedPINs_Crash(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	codes := map[string]view{"k1": b.on("2580", "k1"), "k2": b.on("4711", "k2")}
	on := map[string]PIN{"k1": "2580", "k2": "4711"}
	b.update(codes["k2"], change{PIN: "9090"})
	b.update(codes["k1"], change{PIN: "4711"})
	b.update(codes["k2"], change{PIN: "2580"})
	aside, stays := "k1", "k2"
	if b.work(codes[aside]).Action != Delete {
		aside, stays = stays, aside
	}
	read := func() {
		var list []Found
		for ref, pin := range on {
			list = append(list, found(ref, pin))
		}
		b.read(list...)
	}
	for range 2 { // the second time, the deletion has started
		w := b.work(codes[aside])
		if w.Action != Delete || !w.TemporaryRemoval || b.work(codes[stays]).Action != Nothing {
			t.Fatalf("planned actions %q and %q", w.Action, b.work(codes[stays]).Action)
		}
		if !b.started(w) {
			t.Fatal("the operation is not wanted")
		}
		read()
	}
	b.pass(time.Hour) // past the read lag
	delete(on, aside) // not recorded yet
	read()
	if w := b.work(codes[aside]); w.Action != Nothing {
		t.Fatalf("planned action %q although the PIN is taken", w.Action)
	}
	w := b.work(codes[stays])
	if w.Action != Put || w.Ref != stays {
		t.Fatalf("planned action %q for the other code", w.Action)
	}
	b.begin(w)
	b.end(w, Outcome{Ref: stays, Confirmed: true})
	w = b.work(codes[aside])
	if w.Action != Put || !w.New {
		t.Fatalf("planned action %q for the first code", w.Action)
	}
	b.begin(w)
	b.end(w, Outcome{Ref: "k3", Confirmed: true})
	for ref, want := range map[string]PIN{"k1": "4711", "k2": "2580"} {
		got := b.code(codes[ref].ID)
		if got.Status != StatusSet || got.PIN != want || len(got.Errors) > 0 || got.pending() {
			t.Errorf("%s: status %s, errors %v", ref, got.Status, got.Errors)
		}
		if events := b.events(codes[ref].ID); slices.Contains(events, "access_code.deleted_external_to_seam") {
			t.Errorf("%s: events %v", ref, events)
		}
	}
}

// A postponed code continues once the other code has its PIN back.
func TestSwappedPINs_Reverted(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	one, two := b.on("2580", "k1"), b.on("4711", "k2")
	b.update(two, change{PIN: "9090"})
	b.update(one, change{PIN: "4711"})
	b.update(two, change{PIN: "2580"})
	b.update(two, change{PIN: "9090"})
	if w := b.work(two); w.Action != Put {
		t.Errorf("planned action %q for the code that steps aside", w.Action)
	}
	if w := b.work(one); w.Action != Nothing {
		t.Errorf("planned action %q for the waiting code", w.Action)
	}
}

// The PINs of codes were swapped at the keypad, or before a backup was restored. Each is repaired
// with the PIN of another.
func TestSwappedPINs_AtLockAreRepaired(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	want := map[string]PIN{"k1": "2580", "k2": "4711", "k3": "3690"}
	on := map[string]PIN{"k1": "4711", "k2": "3690", "k3": "2580"}
	codes := map[string]view{}
	for ref, pin := range want {
		codes[ref] = b.on(pin, ref)
	}
	b.pass(time.Hour)
	lock := func(w *Operation) {
		for ref, pin := range on {
			if pin == w.PIN && ref != w.Ref {
				b.end(
					w,
					Outcome{
						Failure: &Failure{
							Class:       FailedDuplicate,
							Message:     "taken",
							ConflictRef: ref,
						},
					},
				)
				return
			}
		}
		if w.Ref == "" {
			w.Ref = "k4"
		}
		on[w.Ref] = w.PIN
		b.end(w, Outcome{Ref: w.Ref, Confirmed: true})
	}
	writes := 0
	for range 20 {
		var list []Found
		for ref, pin := range on {
			list = append(list, found(ref, pin))
		}
		b.read(list...)
		for _, w := range b.look().Codes {
			switch w.Action {
			case Delete:
				b.taken(w)
				delete(on, w.Ref)
				writes++
			case Put:
				b.begin(w)
				lock(w)
				writes++
			}
		}
		b.pass(15 * time.Second)
	}
	for _, c := range codes {
		if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 {
			t.Errorf("status %s, errors %v", got.Status, got.Errors)
		}
	}
	if len(on) != 3 || writes > 8 {
		t.Errorf("%d writes, %d codes on the lock", writes, len(on))
	}
}
