package lockstate

import (
	"slices"
	"strings"
	"testing"
	"time"
)

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

// The PIN of a pending code is entered at the keypad, and then that unmanaged code is converted.
func TestConversion_PINWantedByPendingCode(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.create("2580")
	b.read(found("k1", "2580"))
	a := b.convert(b.unmanaged()[0], nil)
	b.read(found("k1", "2580"))
	if a = b.attempt(a); a.Status != Succeeded || len(b.unmanaged()) > 0 {
		t.Errorf("conversion attempt %s %s", a.Status, a.ErrorType)
	}
}

// The vendor keeps listing a failed attempt.
func TestFailedWrite_IsRetried(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1"})
	given := Found{
		Ref:     "r1",
		Key:     c.ID,
		PIN:     "2580",
		Failure: &Failure{Class: FailedForNow, Message: "it jammed"},
	}
	b.read(given)
	b.pass(2 * time.Second)
	b.read(given)
	if w := b.work(c); w.Action != Put || w.Ref != "" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
	b.deleteCode(c)
	b.read(given)
	if len(b.managed()) > 0 {
		t.Error("the failed write delays the deletion")
	}
}

func TestConversion_OfCodeBeingDeleted(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k1", "2580"))
	u := b.unmanaged()[0]
	convert := b.convert(u, nil)
	remove := b.deleteUnmanaged(u)
	b.read(found("k1", "2580"))
	if len(b.managed()) > 0 {
		t.Error("the code was converted during its deletion")
	}
	b.taken(b.work(u))
	b.read()
	if a, z := b.attempt(convert).Status, b.attempt(remove).Status; a != Failed || z != Succeeded {
		t.Errorf("conversion %s, removal %s", a, z)
	}
}

// A conversion requested during a read is refused if the vendor allows none, like at any other
// time. Otherwise the code would be managed without its PIN if the lock hides it.
func TestConversion_RefusedDuringRead(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"smartthings", "kwikset", "igloohome"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			on := Found{Ref: "k0", Name: "Cleaner", Confirmed: true}
			b.read(on)
			b.look()
			c := b.unmanaged()[0]
			a := b.convert(c, nil)
			b.observed(0, []Found{on}) // the read had started before
			if len(b.unmanaged()) != 1 {
				t.Error("the code is managed")
			}
			b.look()
			if got := b.attempt(a); got.Status != Failed || got.ErrorType != "cannot_be_managed" {
				t.Errorf("attempt %s %s", got.Status, got.ErrorType)
			}
		})
	}
}

// A code that the vendor must take over becomes managed once the vendor has, and stays unmanaged if it refuses.
func TestConversion_ByVendor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then Found
		want AttemptStatus
	}{
		"taken over": {Found{}, Succeeded},
		"waiting":    {Found{Unconverted: true}, Pending},
		"refused":    {Found{Unconverted: true, Unconvertible: "No."}, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			first := found("k1", "2580")
			first.Unconverted = true
			b.read(first)
			a := b.convert(b.unmanaged()[0], nil)
			if refs := b.look().Conversions; len(refs) != 1 || refs[0] != "k1" {
				t.Errorf("the conversions are %v", refs)
			}
			then := found("k1", "2580")
			then.Unconverted, then.Unconvertible = test.then.Unconverted, test.then.Unconvertible
			b.read(then)
			if got := b.attempt(a).Status; got != test.want || (len(b.managed()) == 1) != (test.want == Succeeded) {
				t.Errorf("the attempt is %s, and %d codes are managed", got, len(b.managed()))
			}
		})
	}
}

// An expired conversion does not continue, and its attempt says so.
func TestConversion_Expired(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k1", "2580"))
	b.unreachable(true, true)
	c := b.unmanaged()[0]
	a := b.convert(c, nil)
	b.pass(b.timeouts.Attempt)
	b.look()
	if a = b.attempt(a); a.ErrorType != "action_attempt_expired" ||
		!strings.Contains(a.Message, "Convert it when the device is back") {
		t.Errorf("attempt %s %s: %s", a.Status, a.ErrorType, a.Message)
	}
	if !slices.ContainsFunc(b.unmanaged(), func(o view) bool { return o.ID == c.ID }) {
		t.Error("the code is managed")
	}
}

// A vendor may report that it gave up a change. The report counts once.
func TestFailedChange_IsReportedRepeatedly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class   FailureClass
		want    Action
		attempt AttemptStatus
	}{
		"refused": {FailedInvalid, Nothing, Failed},
		"failed":  {FailedForNow, Put, Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			code := b.on("2580", "k1")
			a := b.update(code, change{PIN: "4711"})
			w := b.work(code)
			b.begin(w)
			b.end(w, Outcome{Ref: "k1"})
			is := found("k1", "2580")
			is.Failure = &Failure{Class: c.class, Message: "no"}
			for range 5 {
				b.read(is)
			}
			b.pass(2 * time.Second)
			if got := b.code(code.ID); got.Attempts > 1 || b.attempt(a).Status != c.attempt {
				t.Errorf("%d failures, attempt %s", got.Attempts, b.attempt(a).Status)
			}
			if w := b.work(code); w.Action != c.want {
				t.Errorf("planned action %q", w.Action)
			}
		})
	}
}

// A vendor shows that the creation of a code failed, which is being deleted.
func TestFailedCreate_OfCodeBeingDeleted(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	b.begin(b.work(c)) // the answer is lost
	a := b.deleteCode(c)
	b.read(Found{Ref: "k1", Key: c.ID, PIN: "2580", Failure: &Failure{Class: FailedForNow, Message: "no"}})
	if b.exists(c.ID) || b.attempt(a).Status != Succeeded {
		t.Errorf("the code exists: %t, removal %s", b.exists(c.ID), b.attempt(a).Status)
	}
}

// An observed code without an owner that is leaving, or was never set, gets no row.
func TestObserve_IgnoresLeavingStrangers(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	leaving, failed, changed := found("k1", "1111"), found("k2", "2222"), found("k3", "3333")
	leaving.Removing = true
	failed.Confirmed, failed.Failure = false, &Failure{Class: FailedForNow}
	changed.Failure = &Failure{Class: FailedForNow} // of its last change: the code opens
	b.read(leaving, failed, changed)
	if us := b.unmanaged(); len(us) != 1 || us[0].PIN != "3333" {
		t.Errorf("%d codes", len(us))
	}
}

// A pending or leaving code is compared when it has arrived.
func TestObserve_PendingCodeIsNotCompared(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*Found){
		"on its way": func(f *Found) { f.Confirmed = false },
		"leaving":    func(f *Found) { f.Removing = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			c := b.on("2580", "k1")
			is := found("k1", "9999")
			f(&is)
			b.read(is)
			if got := b.code(c.ID); got.Status != StatusSet || len(got.Errors) > 0 || len(b.unmanaged()) > 0 {
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}

// A lock that accepts no past start has the time of the write instead, which is no drift.
func TestObserve_StartIsTimeOfWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile string
		starts  time.Duration
		ends    time.Duration
		same    bool
	}{
		"later than asked for":               {"kwikset", 30 * time.Minute, time.Hour, true},
		"later, but past starts are allowed": {"august", 30 * time.Minute, time.Hour, false},
		"not begun":                          {"kwikset", 50 * time.Minute, time.Hour, false},
		"another end":                        {"kwikset", 30 * time.Minute, 2 * time.Hour, false},
		"a fraction of a second":             {"august", time.Millisecond, time.Hour + time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, c.profile)
			from := b.now()
			code := b.onBetween("2580", from, from.Add(time.Hour))
			b.pass(40 * time.Minute)
			is := found("k1", "2580")
			is.StartsAt, is.EndsAt = new(from.Add(c.starts)), new(from.Add(c.ends))
			b.read(is)
			if got := b.code(code.ID); (len(got.Errors) == 0) != c.same {
				t.Errorf("errors %v", got.Errors)
			}
		})
	}
}
