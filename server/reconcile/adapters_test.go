package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// An instance without work for an account is not notified when another instance changes its
// credentials or disconnects it. It still closes the adapter within half a minute.
func TestAdapterCloses_ChangedByAnotherInstance(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bed) error{
		"other credentials": func(b *bed) error {
			return b.access.Accounts.ChangeAccount(b.Context(), b.account, account.Change{DisplayName: "locks", Config: json.RawMessage(`{"token":"new"}`)})
		},
		"disconnected": func(b *bed) error { return b.access.Accounts.DisconnectAccount(b.Context(), b.account) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: "august"})
			other := reconcile.NewAdapters(b.access, map[string]reconcile.Opener{
				account.SandboxAdapter: func(context.Context, account.Account) (adapter.Adapter, error) {
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
	others, err := b.access.Accounts.HintDevices(t.Context(), b.account, []string{"\x00", b.lock, "\xff"})
	b.must(err)
	due, err := b.access.Devices.DeviceDue(t.Context(), uuid.MustParse(b.device))
	b.must(err)
	if !others || !due {
		t.Errorf("others: %v; device due: %v", others, due)
	}
	known, err := b.access.Devices.RecordOperation(
		t.Context(),
		b.account,
		"\x00",
		device.Operation{Kind: device.BoltMoved},
	)
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
		account.SandboxAdapter: func(context.Context, account.Account) (adapter.Adapter, error) {
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

// slow is an adapter whose Close blocks until it is released.
type slow struct {
	adapter.Adapter
	begun chan<- struct{}
	may   <-chan struct{}
}

func (a slow) Close() error {
	a.begun <- struct{}{}
	<-a.may
	return a.Adapter.Close()
}

// closing returns a registry of slow adapters with two open accounts.
func closing(b *bed) (r *reconcile.Adapters, accounts [2]account.Account, begun <-chan struct{}, may chan<- struct{}) {
	b.Helper()
	begins, mayClose := make(chan struct{}, 10), make(chan struct{})
	r = reconcile.NewAdapters(b.access, map[string]reconcile.Opener{
		account.SandboxAdapter: func(context.Context, account.Account) (adapter.Adapter, error) {
			return slow{
				devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token}),
				begins,
				mayClose,
			}, nil
		},
	}, slog.New(slog.DiscardHandler))
	other, err := b.access.Accounts.ConnectAccount(b.Context(), account.NewAccount{
		WorkspaceID: b.p.WorkspaceID,
		Adapter:     account.SandboxAdapter,
		DisplayName: "others",
		Config:      json.RawMessage(`{"token":"t"}`),
	})
	b.must(err)
	accounts[0].ID, accounts[1].ID = b.account, other
	for _, a := range accounts {
		_, err := r.Get(b.Context(), a.ID)
		b.must(err)
	}
	return r, accounts, begins, mayClose
}

func (b *bed) soon(what string, c <-chan struct{}) {
	b.Helper()
	select {
	case <-c:
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		b.Fatalf("timed out waiting: %s", what)
	}
}

// A broker that does not read delays the end of its connection, but not the work of other accounts.
func TestClose_SlowAdapterDelaysNoOtherAccount(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	r, accounts, begun, may := closing(b)
	b.must(
		b.access.Accounts.ChangeAccount(t.Context(), accounts[0].ID,
			account.Change{DisplayName: "locks", Config: json.RawMessage(`{"token":"new"}`)}),
	)
	changed, others := make(chan struct{}), make(chan struct{})
	get := func(a account.Account, got chan<- struct{}) {
		defer close(got)
		if _, err := r.Get(t.Context(), a.ID); err != nil {
			t.Error(err)
		}
	}
	go get(accounts[0], changed)
	b.soon("the old one is being closed", begun)
	go get(accounts[1], others)
	b.soon("the other account is reached", others)
	close(may)
	b.soon("the changed one is reached", changed)
	b.must(r.Close())
}

func TestClose_Concurrently(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	r, _, begun, may := closing(b)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		b.soon("each is being closed", begun)
	}
	close(may)
	b.soon("all are closed", closed)
	if _, err := r.Get(t.Context(), b.account); err == nil {
		t.Error("an adapter was opened after Close")
	}
}

// A cloud that hangs while its account is opened delays no other account, and is contacted once for
// all waiting callers. An adapter that opens after Close is closed.
func TestOpen_SlowAccountDelaysNoOther(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	slow, err := b.access.Accounts.ConnectAccount(t.Context(), account.NewAccount{
		WorkspaceID: b.p.WorkspaceID,
		Adapter:     "slow",
		DisplayName: "Slow",
		Config:      []byte(`{}`),
	})
	b.must(err)
	begun, goOn := make(chan struct{}), make(chan struct{})
	var opened atomic.Int32
	late := watched{devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token}), make(chan struct{})}
	other := reconcile.NewAdapters(b.access, map[string]reconcile.Opener{
		"slow": func(context.Context, account.Account) (adapter.Adapter, error) {
			if opened.Add(1) == 1 {
				close(begun)
			}
			<-goOn
			return late, nil
		},
		account.SandboxAdapter: func(context.Context, account.Account) (adapter.Adapter, error) {
			return devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token}), nil
		},
	}, slog.New(slog.DiscardHandler))
	asked := make(chan error, 2)
	ask := func() { _, err := other.Get(t.Context(), slow); asked <- err }
	go ask()
	<-begun
	go ask()
	done := make(chan error)
	go func() {
		_, err := other.Get(t.Context(), b.account)
		done <- err
	}()
	select {
	case err := <-done:
		b.must(err)
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Error("another account waits")
	}
	ended := make(chan error)
	go func() { ended <- other.Close() }()
	select {
	case err := <-ended:
		b.must(err)
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
		t.Error("Close waits")
	}
	close(goOn)
	for range 2 {
		if err := <-asked; err == nil {
			t.Error("the adapter was opened after Close")
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d opens", n)
	}
	select {
	case <-late.closed:
	default:
		t.Error("the adapter was not closed")
	}
}
