package reconcile_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// A lock reports an operation without its cause. Each server on its gateway receives the report,
// and one of them sent the command.
func TestLockOperation_UnknownCauseIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	confirmed := func(b byHand, w lockstate.Command) {
		b.must(b.access.Devices.RecordLockCommandDone(b.Context(), holder{}, b.id(), w))
	}
	commander := func(b byHand, _ lockstate.Command) { b.tells(device.Operation{Method: "remote"}) }
	other := func(b byHand, _ lockstate.Command) { b.tells(device.Operation{Method: "unknown"}) }
	for name, heard := range map[string][]func(byHand, lockstate.Command){
		"confirmed first":               {confirmed, commander, other},
		"other server first":            {other, commander},
		"other server, then confirmed":  {other, confirmed, commander},
		"commander first":               {commander, other},
		"confirmed, other server first": {confirmed, other, commander},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			b.tells(device.Operation{Locked: true})
			a := b.door(false)
			w := *b.look().Command
			still, err := b.access.Devices.RecordLockCommandStarted(t.Context(), holder{}, b.id(), w)
			if err != nil || !still {
				t.Fatal(still, err)
			}
			for _, hear := range heard {
				hear(b, w)
			}
			if got := b.attempt(a); got.Status != device.Succeeded {
				t.Errorf("attempt status %s", got.Status)
			}
			events := b.tales("lock.locked", "lock.unlocked")
			var told []string
			for _, e := range events {
				told = append(told, e.Type)
			}
			if !slices.Equal(told, []string{"lock.locked", "lock.unlocked"}) {
				t.Fatalf("events %v", told)
			}
			if f := b.fields(events[1]); f["method"] != "remote" || f["action_attempt_id"] != a.ID.String() {
				t.Errorf("event fields %v", f)
			}
		})
	}
}

// An operation with an identifier is a separate one, whatever its cause.
func TestLockOperation_IdentifiedOnesAreSeparate(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	for _, id := range []string{"e1", "e2"} {
		b.tells(device.Operation{ID: id, Method: "unknown"})
	}
	if got := b.told("lock.unlocked"); len(got) != 2 {
		t.Errorf("events %v", got)
	}
}

// tells makes the vendor report a lock operation.
func (b byHand) tells(o device.Operation) {
	b.Helper()
	o.Kind = device.BoltMoved
	if o.Method == "" {
		o.Method = "manual"
	}
	_, err := b.access.Devices.RecordOperation(b.Context(), b.account, b.lock, o)
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
		b.tells(device.Operation{ID: s.id, Locked: s.locked, At: s.at})
		want = append(want, map[bool]string{true: "lock.locked", false: "lock.unlocked"}[s.locked])
		if got := b.locked(); got == nil || *got != s.stands {
			t.Errorf("%s: the device shows %v", s.what, got)
		}
		if b.look().PositionUnknown {
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
	still, err := b.access.Devices.RecordLockCommandStarted(t.Context(), holder{}, b.id(), *b.look().Command)
	if err != nil || !still {
		t.Fatal(still, err)
	}
	at := time.Now().Truncate(time.Second)
	b.tells(device.Operation{ID: "e2", Locked: true, At: at.Add(time.Second)})
	b.tells(device.Operation{ID: "e1", Method: "remote", At: at})
	if got := b.attempt(a); got.Status != device.Succeeded {
		t.Errorf("attempt status %s", got.Status)
	}
	if got := b.locked(); got == nil || !*got {
		t.Errorf("the device shows %v", got)
	}
}

// Repeated reports of one cause make one event.
func TestTampering_IsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	for range 2 {
		o := device.Operation{Kind: device.Tampered}
		_, err := b.access.Devices.RecordOperation(b.Context(), b.account, b.lock, o)
		b.must(err)
	}
	events := b.tales("device.tampered")
	if len(events) != 1 || b.fields(events[0])["device_id"] != b.device {
		t.Errorf("%d events", len(events))
	}
}

// Operations reported with a clock that was ahead do not make later ones count as late.
func TestLatePush_AfterClockWasAhead(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	b.tells(device.Operation{ID: "e1", Locked: false, At: clock.now()})
	clock.pass(-10 * time.Minute)
	b.tells(device.Operation{ID: "e2", Locked: true, At: clock.now()})
	if got := b.locked(); got == nil || !*got {
		t.Errorf("the device shows %v", got)
	}
}

// Accounts are locked before their devices. A transaction that waits for an account because of a
// jam holds no lock on a device. Otherwise, it could deadlock with the account's holder.
func TestJam_LocksAccountBeforeDevice(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	told := make(chan error, 1)
	errEnough := errors.New("enough was seen")
	err := b.db.InTx(t.Context(), func(tx store.Tx) error {
		if _, err := tx.LockAccount(t.Context(), b.account); err != nil {
			return err
		}
		go func() {
			_, err := b.access.Devices.RecordOperation(t.Context(), b.account, b.lock,
				device.Operation{Kind: device.BoltJammed, ID: "e1"})
			told <- err
		}()
		b.until("the transaction waits for the account", func() bool {
			waiting := 0
			b.must(
				b.db.Pool.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0").
					Scan(&waiting),
			)
			return waiting > 0
		})
		own, err := tx.Start(t.Context())
		if err != nil {
			return err
		}
		if _, err := own.Exec(
			t.Context(),
			"select from devices where device_id = $1 for no key update nowait",
			b.id(),
		); err != nil {
			t.Errorf("the device is locked: %v", err)
			return errEnough
		}
		return nil
	})
	b.must(<-told)
	if errors.Is(err, errEnough) {
		return
	}
	b.must(err)
	var due bool
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select due_at <= now() from connected_accounts where connected_account_id = $1", b.account).
			Scan(&due),
	)
	if !due {
		t.Error("the account is not listed to learn the lock state")
	}
}
