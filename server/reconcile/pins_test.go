package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// A change succeeded, but its answer was lost. The retry is refused because the code itself has the
// PIN.
func TestDuplicatePIN_OfCodeItself(t *testing.T) {
	t.Parallel()
	itself := &lockstate.Failure{Class: lockstate.FailedDuplicate, Message: "taken", ConflictRef: "k1"}
	frame := device.CodeChange{StartsAt: "2020-01-01T00:00:00Z", EndsAt: "2099-01-01T00:00:00Z"}
	for name, c := range map[string]struct {
		more  string
		shown func() shown // nil: the device has no code list
		code  string       // remaining error; empty: none
		ch    device.CodeChange
		then  device.CodeChange // change before the answer
	}{
		"PINs are hidden": {`{}`, func() shown { return found("k1", "") }, "", device.CodeChange{PIN: "2591"}, device.CodeChange{}},
		"listed with the PIN": {`{}`, func() shown {
			f := found("k1", "")
			f.Failure = itself
			return f
		}, "", device.CodeChange{PIN: "2591"}, device.CodeChange{}},
		"no code list":                         {`{"list_codes": false}`, nil, "", device.CodeChange{PIN: "2591"}, device.CodeChange{}},
		"no code list, another change refused": {`{"list_codes": false}`, nil, "duplicate_code_on_device", device.CodeChange{PIN: "2591"}, frame},
		"no code list, PIN unchanged":          {`{"list_codes": false}`, nil, "duplicate_code_on_device", frame, device.CodeChange{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			_, err := b.db.Pool.Exec(t.Context(),
				`update devices set capabilities = (capabilities - 'pin_visible') || $1::jsonb`, c.more)
			b.must(err)
			code := b.on("2580", "k1")
			clock.pass(time.Minute)
			c.ch.ID = code.ID.String()
			a := b.update(c.ch)
			b.begin(b.work(code)) // the answer is lost
			if c.then.EndsAt != "" {
				c.then.ID = code.ID.String()
				a = b.update(c.then)
			}
			for n := 0; b.attempt(a).Status == device.Pending; n++ {
				if c.shown != nil {
					b.read(c.shown())
				}
				if w := b.work(code); w.Action == lockstate.Put {
					b.begin(w)
					b.end(w, outcome{Failure: itself})
				}
				if clock.pass(30 * time.Second); n > 10 {
					t.Fatalf("endless retries: %v", b.code(code.ID).Errors)
				}
			}
			got := b.code(code.ID)
			switch {
			case c.code == "" && (b.attempt(a).Status != device.Succeeded || got.Status != device.StatusSet || len(got.Errors) > 0):
				t.Errorf("status %s, errors %v, attempt %s", got.Status, got.Errors, b.attempt(a).Status)
			case c.code != "" && (len(got.Errors) != 1 || got.Errors[0].Code != c.code || got.Errors[0].Other != [16]byte{}):
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}

// invented creates a code whose vendor chose the given PIN.
func (b byHand) invented(pin, ref string) device.Code {
	b.Helper()
	c, _ := b.create("")
	b.invents(c, pin, ref)
	return c
}

func (b byHand) invents(c device.Code, pin, ref string) {
	b.Helper()
	w := b.work(c)
	if w.Action != lockstate.Put {
		b.Fatalf("planned action %q", w.Action)
	}
	b.begin(w)
	b.end(w, outcome{Ref: ref, PIN: pin})
	b.read(found(ref, pin))
}

func (b byHand) shows(when string, c device.Code, pin string, status device.Status) {
	b.Helper()
	got := b.code(c.ID)
	if told := got.PIN; told == nil && pin != "" || told != nil && *told != pin || got.Status != status {
		b.Errorf("%s: status %s, PIN known: %v", when, got.Status, told != nil)
	}
}

// A vendor that chooses PINs chooses another one if a code is recreated. That PIN opens.
func TestProviderPIN_ChangesOnRecreation(t *testing.T) {
	t.Parallel()
	lag := access.Options{ReadLag: time.Nanosecond}
	t.Run("deleted at the lock", func(t *testing.T) {
		t.Parallel()
		b := hand(t, options{profile: "salto_ks", access: lag})
		c := b.invented("111111", "r1")
		b.shows("at first", c, "111111", device.StatusSet)
		b.read(found("r9", "999999"))
		b.shows("gone", c, "", device.StatusSetting)
		b.invents(c, "222222", "r2")
		b.shows("put back", c, "222222", device.StatusSet)
	})
	t.Run("lost on its way", func(t *testing.T) {
		t.Parallel()
		b := hand(t, options{profile: "salto_ks", access: lag})
		c, _ := b.create("")
		w := b.work(c)
		b.begin(w)
		b.end(w, outcome{Ref: "r1", PIN: "111111"})
		b.read(
			shown{
				Ref:     "r1",
				PIN:     "111111",
				Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "lost"},
			},
		)
		_, err := b.db.Pool.Exec(t.Context(), "update access_codes set next_attempt_at = null")
		b.must(err)
		b.invents(c, "222222", "r2")
		b.shows("put again", c, "222222", device.StatusSet)
	})
	t.Run("changed at the lock", func(t *testing.T) {
		t.Parallel()
		b := hand(t, options{profile: "salto_ks", access: lag})
		c := b.invented("111111", "r1")
		for range 2 {
			b.read(found("r1", "333333"))
			b.shows("changed", c, "333333", device.StatusSet)
			if w := b.work(c); w.Action != lockstate.Nothing {
				t.Errorf("planned action %q, but no put restores the former PIN", w.Action)
			}
		}
		if n := countOf(b.events(c.ID), "access_code.modified_external_to_seam"); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// exchange creates codes on the lock and then swaps their PINs in a cycle while the lock is
// offline. It returns the codes and the attempts of their last changes.
func (b *bed) exchange(pins ...string) (codes []device.Code, attempts []device.Attempt) {
	b.Helper()
	for _, pin := range pins {
		c, a := b.create(pin)
		b.succeeded(a)
		codes = append(codes, c)
	}
	b.must(b.rec.SetOnline(b.Context(), b.p, b.device, false))
	update := func(c device.Code, pin string) device.Attempt {
		a, err := b.access.Devices.UpdateCode(b.Context(), b.p,
			device.CodeChange{ID: c.ID.String(), PIN: pin, EvenIfOffline: true})
		b.must(err)
		return a
	}
	last := len(codes) - 1
	update(codes[last], "64646") // frees the PIN, because two codes must not want the same one
	for i := last - 1; i >= 0; i-- {
		attempts = append(attempts, update(codes[i], pins[i+1]))
	}
	return codes, append(attempts, update(codes[last], pins[0]))
}

// Each code wants the PIN of another. One of them leaves temporarily.
func TestSwappedPINs(t *testing.T) {
	t.Parallel()
	for profile, pins := range map[string][]string{"august": {"25801", "25802"}, "smartthings": {"25801", "25802"}, "ttlock": {"25611", "25622", "25633"}} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: profile})
			others := b.memory()
			codes, attempts := b.exchange(pins...)
			b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
			for _, a := range attempts {
				b.succeeded(a)
			}
			for i, c := range codes {
				want := pins[(i+1)%len(pins)]
				b.onlyOnce(want)
				if got := b.code(c.ID); got.Status != device.StatusSet || *got.PIN != want || len(got.Errors) > 0 {
					t.Errorf("code %d is %s with %v", i, got.Status, got.Errors)
				}
				if got := b.events(c.ID); slices.Contains(got, "access_code.deleted_external_to_seam") ||
					slices.Contains(got, "access_code.failed_to_set_on_device") {
					t.Errorf("code %d: events %v", i, got)
				}
			}
			if on := b.memory(); len(on) != len(others)+len(pins) {
				t.Errorf("there are %d codes on the lock, want %d", len(on), len(others)+len(pins))
			}
		})
	}
}

// The server dies before and after the code that steps aside was removed from the lock.
func TestSwappedPINs_Crash(t *testing.T) {
	t.Parallel()
	clock := &testClock{at: time.Now()}
	b := hand(t, options{profile: "august", access: access.Options{Now: clock.now}})
	codes := map[string]device.Code{"k1": b.on("2580", "k1"), "k2": b.on("4711", "k2")}
	on := map[string]string{"k1": "2580", "k2": "4711"}
	b.update(device.CodeChange{ID: codes["k2"].ID.String(), PIN: "9090"})
	b.update(device.CodeChange{ID: codes["k1"].ID.String(), PIN: "4711"})
	b.update(device.CodeChange{ID: codes["k2"].ID.String(), PIN: "2580"})
	aside, stays := "k1", "k2"
	if b.work(codes[aside]).Action != lockstate.Delete {
		aside, stays = stays, aside
	}
	read := func() {
		var list []shown
		for ref, pin := range on {
			list = append(list, found(ref, pin))
		}
		b.read(list...)
	}
	for range 2 { // the second time, the deletion has started
		w := b.work(codes[aside])
		if w.Action != lockstate.Delete || !w.TemporaryRemoval || b.work(codes[stays]).Action != lockstate.Nothing {
			t.Fatalf("planned actions %q and %q", w.Action, b.work(codes[stays]).Action)
		}
		if still, err := b.started(w); err != nil || !still {
			t.Fatal("the deletion is not wanted", err)
		}
		read()
	}
	clock.pass(time.Hour) // past the read lag
	delete(on, aside)     // not recorded yet
	read()
	if w := b.work(codes[aside]); w.Action != lockstate.Nothing {
		t.Fatalf("planned action %q although the PIN is taken", w.Action)
	}
	w := b.work(codes[stays])
	if w.Action != lockstate.Put || w.Ref != stays {
		t.Fatalf("planned action %q for the other code", w.Action)
	}
	b.begin(w)
	b.end(w, outcome{Ref: stays, Confirmed: true})
	w = b.work(codes[aside])
	if w.Action != lockstate.Put || !w.New {
		t.Fatalf("planned action %q for the first code", w.Action)
	}
	b.begin(w)
	b.end(w, outcome{Ref: "k3", Confirmed: true})
	for ref, want := range map[string]string{"k1": "4711", "k2": "2580"} {
		got := b.code(codes[ref].ID)
		if got.Status != device.StatusSet || *got.PIN != want || len(got.Errors)+len(got.Mutations) > 0 {
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
	b := hand(t, options{profile: "august"})
	one, two := b.on("2580", "k1"), b.on("4711", "k2")
	b.update(device.CodeChange{ID: two.ID.String(), PIN: "9090"})
	b.update(device.CodeChange{ID: one.ID.String(), PIN: "4711"})
	b.update(device.CodeChange{ID: two.ID.String(), PIN: "2580"})
	b.update(device.CodeChange{ID: two.ID.String(), PIN: "9090"})
	if w := b.work(two); w.Action != lockstate.Put {
		t.Errorf("planned action %q for the code that steps aside", w.Action)
	}
	if w := b.work(one); w.Action != lockstate.Nothing {
		t.Errorf("planned action %q for the waiting code", w.Action)
	}
}

// The PINs of codes were swapped at the keypad, or before a backup was restored. Each is repaired
// with the PIN of another.
func TestSwappedPINs_AtLockAreRepaired(t *testing.T) {
	t.Parallel()
	clock := &testClock{at: time.Now()}
	b := hand(t, options{profile: "august", access: access.Options{Now: clock.now}})
	want := map[string]string{"k1": "2580", "k2": "4711", "k3": "3690"}
	on := map[string]string{"k1": "4711", "k2": "3690", "k3": "2580"}
	codes := map[string]device.Code{}
	for ref, pin := range want {
		codes[ref] = b.on(pin, ref)
	}
	clock.pass(time.Hour)
	lock := func(w work) {
		for ref, pin := range on {
			if pin == w.PIN && ref != w.Ref {
				b.end(
					w,
					outcome{
						Failure: &lockstate.Failure{
							Class:       lockstate.FailedDuplicate,
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
		b.end(w, outcome{Ref: w.Ref, Confirmed: true})
	}
	writes := 0
	for range 20 {
		var list []shown
		for ref, pin := range on {
			list = append(list, found(ref, pin))
		}
		b.read(list...)
		for _, w := range b.look().Codes {
			switch w.Action {
			case lockstate.Delete:
				b.taken(w)
				delete(on, w.Ref)
				writes++
			case lockstate.Put:
				b.begin(w)
				lock(w)
				writes++
			}
		}
		clock.pass(15 * time.Second)
	}
	for _, c := range codes {
		if got := b.code(c.ID); got.Status != device.StatusSet || len(got.Errors) > 0 {
			t.Errorf("status %s, errors %v", got.Status, got.Errors)
		}
	}
	if len(on) != 3 || writes > 8 {
		t.Errorf("%d writes, %d codes on the lock", writes, len(on))
	}
}
