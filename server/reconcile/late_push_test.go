package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// tells makes the vendor report a lock operation.
func (b byHand) tells(o access.Operation) {
	b.Helper()
	o.Kind = access.BoltMoved
	if o.Method == "" {
		o.Method = "manual"
	}
	_, err := b.access.RecordOperation(b.Context(), b.account, b.lock, o)
	b.must(err)
}

// A delayed push describes an earlier lock state.
func TestLatePush_KeepsLockState(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{OperationLag: time.Nanosecond}})
	from := time.Now().Add(-time.Hour).Truncate(time.Second)
	steps := []struct {
		what           string
		id             string
		locked, stands bool
		at             time.Time
	}{
		{"locked at first", "e0", true, true, from},
		{"unlocked", "e2", false, false, from.Add(2 * time.Minute)},
		{"locked before that", "e1", true, false, from.Add(time.Minute)},
		{"locked in the same second", "e3", true, true, from.Add(2 * time.Minute)},
		{"by a clock that is ahead", "e4", false, false, time.Now().Add(time.Hour)},
		{"by one that is right", "e5", true, true, time.Now().Add(time.Minute)},
		{"by one that does not say", "e6", false, false, time.Time{}},
	}
	var want []string
	for _, s := range steps {
		b.tells(access.Operation{ID: s.id, Locked: s.locked, At: s.at})
		want = append(want, map[bool]string{true: "lock.locked", false: "lock.unlocked"}[s.locked])
		if got := b.locked(); got == nil || *got != s.stands {
			t.Errorf("%s: the device shows %v", s.what, got)
		}
		if b.look().Doubted {
			t.Errorf("%s: the state counts as an unreported operation", s.what)
		}
	}
	var got []string
	late := 0
	for _, e := range b.tales("lock.locked", "lock.unlocked") {
		got = append(got, e.Type)
		if e.OccurredAt.Equal(from.Add(time.Minute)) && e.Type == "lock.locked" {
			late++
		}
	}
	if late != 1 {
		t.Errorf("%d events for the late push at its time", late)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

// A late confirmation of a command does not override a later operation.
func TestLateConfirmation_KeepsLockState(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	a := b.door(false)
	still, err := b.access.RecordBoltStarted(t.Context(), holder{}, b.id(), *b.look().Bolt)
	if err != nil || !still {
		t.Fatal(still, err)
	}
	at := time.Now().Truncate(time.Second)
	b.tells(access.Operation{ID: "e2", Locked: true, At: at.Add(time.Second)})
	b.tells(access.Operation{ID: "e1", Method: "remote", At: at})
	if got := b.attempt(a); got.Status != access.Succeeded {
		t.Errorf("attempt status %s", got.Status)
	}
	if got := b.locked(); got == nil || !*got {
		t.Errorf("the device shows %v", got)
	}
}

// Operations reported with a clock that was ahead do not make later ones count as late.
func TestLatePush_AfterClockWasAhead(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	b.tells(access.Operation{ID: "e1", Locked: false, At: clock.now()})
	clock.pass(-10 * time.Minute)
	b.tells(access.Operation{ID: "e2", Locked: true, At: clock.now()})
	if got := b.locked(); got == nil || !*got {
		t.Errorf("the device shows %v", got)
	}
}
