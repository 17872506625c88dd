package lockstate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A large ring needs the index of PINs: without it, a ring of 200 codes takes 12 s.
func TestOneCodeOfALargeRingStepsAside(t *testing.T) {
	t.Parallel()
	const all = 500
	pin := func(n int) PIN { return PIN(fmt.Sprint(1000 + n%all)) }
	l := &Lock{}
	for n := range all {
		l.Codes = append(l.Codes, &Code{
			ID:         uuid.New(),
			Managed:    true,
			DesiredGen: 2,
			AppliedGen: 1,
			Ref:        fmt.Sprint(n),
			PIN:        pin(n + 1),
			Applied:    &State{PIN: pin(n)},
		})
	}
	if aside := stepAside(l); len(aside) != 1 {
		t.Errorf("%d step aside, want 1", len(aside))
	}
	for n, c := range l.Codes {
		if got := l.pinHolder(c); got != l.Codes[(n+1)%all] {
			t.Fatalf("code %d waits for a code without its PIN", n)
		}
	}
	// A later change of a code breaks the ring.
	l.Codes[7].AppliedGen, l.Codes[7].PIN = 2, pin(7)
	if aside := stepAside(l); len(aside) != 0 {
		t.Errorf("%d step aside without a ring", len(aside))
	}
	if l.Codes = l.Codes[:3]; l.pinHolder(l.Codes[2]) != nil || l.pinHolder(l.Codes[0]) != l.Codes[1] {
		t.Error("a code waits for a deleted one")
	}
}

func stepAside(l *Lock) (aside []*Code) {
	for _, c := range l.Codes {
		if l.yieldsPIN(c) {
			aside = append(aside, c)
		}
	}
	return aside
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

// Both changes are accepted: the first code gives up the PIN that the second one wants.
func TestPINChange_TakesOverPINOfAnother(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	two, one := b.on("2581", "r2"), b.on("2580", "r1")
	first := b.update(one, change{PIN: "2582"})
	second := b.update(two, change{PIN: "2580"})
	w := b.work(two)
	if w.Action == Put {
		b.begin(w)
		b.end(
			w,
			Outcome{
				Failure: &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: "r1"},
			},
		)
	}
	w = b.work(one)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1", Confirmed: true})
	b.pass(2 * time.Second)
	w = b.work(two)
	b.begin(w)
	b.end(w, Outcome{Ref: "r2", Confirmed: true})
	if a, z := b.attempt(first).Status, b.attempt(second).Status; a != Succeeded || z != Succeeded {
		t.Errorf("attempts %s and %s", a, z)
	}
}

func TestPINChange_WaitsForRemovalOfOther(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	one, two := b.on("2580", "r1"), b.on("2581", "r2")
	b.deleteCode(one)
	b.update(two, change{PIN: "2580"})
	if w := b.work(two); w.Action == Put {
		t.Error("the code is put while the PIN is still taken")
	}
	b.removal(b.work(one), true, nil)
	b.read(found("r2", "2581"))
	if w := b.work(two); w.Action != Put || w.PIN != "2580" {
		t.Errorf("planned action %q", w.Action)
	}
}

// A device that refuses a PIN which no code shows is asked again, unless a code may have it.
func TestDuplicatePIN_ShownNowhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hidden   bool
		other    Found
		conflict string
		retried  bool
	}{
		"no code has it":         {false, found("k1", "1111"), "", true},
		"an unknown code has it": {false, found("k1", "1111"), "k7", true},
		"a known code has it":    {false, found("k1", "1111"), "k1", false},
		"a code may have it":     {false, found("k1", ""), "", false},
		"the device hides PINs":  {true, found("k1", "1111"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.PINVisible = !c.hidden
			b.read(c.other)
			code, a := b.create("2580")
			w := b.work(code)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: c.conflict}})
			if got := b.attempt(a).Status; (got == Pending) != c.retried {
				t.Errorf("attempt %s", got)
			}
			if got := b.code(
				code.ID,
			); c.retried &&
				got.NextAttemptAt.Before(b.now().Add(b.timeouts.ReadLag/2-time.Second)) {
				t.Errorf("the next attempt is at %v", got.NextAttemptAt)
			}
		})
	}
}

// A write that met a PIN which its code is about to change is retried.
func TestDuplicatePIN_AboutToBeReleased(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	one, two := b.on("2580", "k1"), b.on("4711", "k2")
	b.update(one, change{PIN: "9999"})
	w := b.work(one)
	b.begin(w)
	b.update(two, change{PIN: "3690"})
	b.end(w, Outcome{Failure: &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: "k2"}})
	if got := b.code(one.ID); len(got.Errors) > 0 || got.BlockedGen > 0 || got.Attempts != 1 {
		t.Errorf("errors %v", got.Errors)
	}
	b.set(two, "k2")
	b.pass(time.Minute)
	b.update(one, change{PIN: "8888"})
	w = b.work(one)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: "k2"}})
	if got := b.code(one.ID); len(got.Errors) != 1 || got.Errors[0].Other != two.ID {
		t.Errorf("errors %v", got.Errors)
	}
}

// A code steps aside for a ring only while nothing of the ring is on its way.
func TestSwappedPINs_PendingWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		accepted bool
		aside    int
	}{
		"accepted":           {true, 0},
		"the answer is lost": {false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			one, two := b.on("2580", "k1"), b.on("4711", "k2")
			b.update(one, change{PIN: "9999"})
			w := b.work(one)
			b.begin(w)
			if c.accepted {
				b.end(w, Outcome{Ref: "k1"})
			}
			b.update(two, change{PIN: "2580"})
			b.update(one, change{PIN: "4711"})
			aside := func() (n int) {
				for _, w := range b.look().Codes {
					if w.Action == Delete {
						n++
					}
				}
				return n
			}
			if n := aside(); n != c.aside {
				t.Errorf("%d codes step aside, want %d", n, c.aside)
			}
			b.read(found("k1", "9999"), found("k2", "4711"))
			if n := aside(); c.accepted && n > 0 {
				t.Error("a code steps aside although there is no ring")
			}
		})
	}
}

// A removal that failed for certain need not be repeated once the PINs differ again. One that may have succeeded must.
func TestSwappedPINs_RevertedAfterFailedRemoval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		unsure bool
		want   Action
	}{
		"failed":             {false, Put},
		"may have succeeded": {true, Delete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			one, two := b.on("2580", "k1"), b.on("4711", "k2")
			b.update(two, change{PIN: "9090"})
			b.update(one, change{PIN: "4711"})
			b.update(two, change{PIN: "2580"})
			w := b.work(one)
			if w.Action != Delete || !w.TemporaryRemoval || !b.started(w) {
				t.Fatalf("planned action %q", w.Action)
			}
			b.removal(w, false, &Failure{Class: FailedForNow, Message: "no answer", Unsure: c.unsure})
			b.update(one, change{PIN: "3690"})
			if w := b.work(one); w.Action != c.want || w.Ref != "k1" {
				t.Errorf("planned action %q of %q, want %q", w.Action, w.Ref, c.want)
			}
		})
	}
}
