package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// An instance without work for an account is not notified when another instance changes its
// credentials or disconnects it. It still closes the adapter within half a minute.
func TestAdapterCloses_ChangedByAnotherInstance(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bed) error{
		"other credentials": func(b *bed) error {
			return b.access.ChangeAccount(b.Context(), b.account, access.AccountChange{DisplayName: "locks", Config: json.RawMessage(`{"token":"new"}`)})
		},
		"disconnected": func(b *bed) error { return b.access.DisconnectAccount(b.Context(), b.account) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: "august"})
			other := reconcile.NewAdapters(b.access, map[string]reconcile.Opener{
				access.SandboxAdapter: func(context.Context, access.Account) (adapter.Adapter, error) {
					return watched{
						devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token}),
						make(chan struct{}),
					}, nil
				},
			}, slog.New(slog.DiscardHandler))
			t.Cleanup(func() { b.must(other.Close()) })
			a, err := other.Get(t.Context(), b.account)
			b.must(err)
			b.must(change(b))
			select {
			case <-a.(watched).closed:
			case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
				t.Fatal("the adapter is still open")
			}
		})
	}
}

// watched is an adapter that signals when it was closed.
type watched struct {
	adapter.Adapter
	closed chan struct{}
}

func (w watched) Close() error {
	close(w.closed)
	return w.Adapter.Close()
}

// A vendor that keeps reporting unknown devices causes a listing now and then, not for each event.
// Events about known devices still count.
func TestHints_EndlessEventsAreBatched(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	events, _ := b.telling()
	woken := func() (n int) {
		t.Helper()
		b.must(b.db.Pool.QueryRow(t.Context(), "select wake_seq from devices where device_id = $1", b.device).Scan(&n))
		return n
	}
	before, device := b.woken(), woken()
	for i := range 5000 {
		kind := []adapter.EventKind{adapter.CodesChanged, adapter.CodesChanged, adapter.LockOperated}[i%3]
		events <- adapter.Event{Kind: kind, Device: adapter.DeviceRef(fmt.Sprint("none ", i%1000))}
	}
	events <- adapter.Event{Kind: adapter.CodesChanged, Device: adapter.DeviceRef(b.lock)}
	b.until("the device is looked at", func() bool { return woken() > device })
	if n := b.woken() - before; n < 1 || n > 50 {
		t.Errorf("the account became due %d times", n)
	}
	// The last event counts as well.
	before = b.woken()
	events <- adapter.Event{Kind: adapter.DeviceListed}
	b.until("the account is due", func() bool { return b.woken() > before })
}

// Delayed work runs when the adapter closes, because the next instance does not know about it.
func TestHints_DelayedWorkRunsOnClose(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	events, end := b.telling()
	for range 2 {
		before := b.woken()
		events <- adapter.Event{Kind: adapter.Resync}
		b.until("the account is woken", func() bool { return b.woken() > before })
	}
	before := b.woken()
	events <- adapter.Event{Kind: adapter.Resync}
	end()
	if b.woken() == before {
		t.Error("the account was not woken")
	}
}

// A hint that could not be recorded is retried.
func TestHints_SurviveDatabaseErrors(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]adapter.Event{
		"a list":            {Kind: adapter.DeviceListed},
		"all":               {Kind: adapter.Resync},
		"codes of a device": {Kind: adapter.CodesChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: "august", db: ownDatabase(t)})
			b.stopEngine()
			events, _ := b.telling()
			for _, sql := range []string{
				"create sequence failures",
				"create table broken as select true",
				"create function fails() returns trigger language plpgsql as $$ begin if exists (select from broken) then perform nextval('failures'); raise exception 'no'; end if; return new; end $$",
				"create trigger fails before update on connected_accounts for each row execute function fails()",
				"create trigger fails before update on devices for each row execute function fails()",
			} {
				_, err := b.db.Pool.Exec(t.Context(), sql)
				b.must(err)
			}
			if e.Kind == adapter.CodesChanged {
				e.Device = adapter.DeviceRef(b.lock)
			}
			before := b.woken()
			events <- e
			b.until("it has failed", func() (failed bool) {
				b.must(b.db.Pool.QueryRow(t.Context(), "select is_called from failures").Scan(&failed))
				return failed
			})
			_, err := b.db.Pool.Exec(t.Context(), "delete from broken")
			b.must(err)
			b.until("the account is woken", func() bool { return b.woken() > before })
		})
	}
}

// An event about an impossible device does not affect the others.
func TestHints_ImpossibleDevice(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	others, err := b.access.HintDevices(t.Context(), b.account, []string{"\x00", b.lock, "\xff"})
	b.must(err)
	due, err := b.access.DeviceDue(t.Context(), uuid.MustParse(b.device))
	b.must(err)
	if !others || !due {
		t.Errorf("others: %v; device due: %v", others, due)
	}
	known, err := b.access.RecordOperation(t.Context(), b.account, "\x00", access.Operation{Kind: access.BoltMoved})
	b.must(err)
	if known {
		t.Error("the impossible device is known")
	}
}

// telling starts an instance for the account, whose adapter emits the test's events until end.
func (b *bed) telling() (events chan<- adapter.Event, end func()) {
	b.Helper()
	told := make(chan adapter.Event, 256)
	other := reconcile.NewAdapters(b.access, map[string]reconcile.Opener{
		access.SandboxAdapter: func(context.Context, access.Account) (adapter.Adapter, error) {
			return telling{devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token}), told}, nil
		},
	}, slog.New(slog.NewTextHandler(b.Output(), nil)))
	end = sync.OnceFunc(func() { b.must(other.Close()) })
	b.Cleanup(end)
	_, err := other.Get(b.Context(), b.account)
	b.must(err)
	return told, end
}

// woken returns how often the account was woken.
func (b *bed) woken() (n int) {
	b.Helper()
	b.must(
		b.db.Pool.QueryRow(b.Context(), "select wake_seq from connected_accounts where connected_account_id = $1", b.account).
			Scan(&n),
	)
	return n
}

// telling is an adapter that emits the test's events.
type telling struct {
	adapter.Adapter
	events chan adapter.Event
}

func (a telling) Events() <-chan adapter.Event { return a.events }

func (a telling) Close() error {
	close(a.events)
	return a.Adapter.Close()
}
