package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
)

// An instance that has nothing to do for an account is told by nobody that its credentials are others now, or that it
// was disconnected. It lets go of it all the same, within half a minute.
func TestInstanceWithoutWorkLetsGoOfWhatOthersHaveChanged(t *testing.T) {
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
					return watched{devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token}), make(chan struct{})}, nil
				},
			}, slog.New(slog.DiscardHandler))
			t.Cleanup(func() { b.must(other.Close()) })
			a, err := other.Get(t.Context(), b.account)
			b.must(err)
			b.must(change(b))
			select {
			case <-a.(watched).closed:
			case <-time.After(time.Minute):
				t.Fatal("it holds on to it")
			}
		})
	}
}

// watched is an adapter that tells when it was closed.
type watched struct {
	adapter.Adapter
	closed chan struct{}
}

func (w watched) Close() error {
	close(w.closed)
	return w.Adapter.Close()
}

// A vendor that never stops telling of devices that there are not has its account listed now and then, and not for each;
// what it tells of those that there are is heard all the same.
func TestWhatAVendorTellsWithoutAnEndIsTakenInTogether(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	events := make(chan adapter.Event, 256)
	other := reconcile.NewAdapters(b.access, map[string]reconcile.Opener{
		access.SandboxAdapter: func(context.Context, access.Account) (adapter.Adapter, error) {
			return telling{devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token}), events}, nil
		},
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(func() { b.must(other.Close()) })
	_, err := other.Get(t.Context(), b.account)
	b.must(err)
	woken := func(table, column string, id any) (n int) {
		t.Helper()
		b.must(b.db.Pool.QueryRow(t.Context(), "select wake_seq from "+table+" where "+column+" = $1", id).Scan(&n))
		return n
	}
	account := func() int { return woken("connected_accounts", "connected_account_id", b.account) }
	before, device := account(), woken("devices", "device_id", b.device)
	for i := range 5000 {
		events <- adapter.Event{Kind: adapter.CodesChanged, Device: adapter.DeviceRef(fmt.Sprint("none ", i%1000))}
	}
	events <- adapter.Event{Kind: adapter.CodesChanged, Device: adapter.DeviceRef(b.lock)}
	b.until("the device is looked at", func() bool { return woken("devices", "device_id", b.device) > device })
	if n := account() - before; n < 1 || n > 50 {
		t.Errorf("the account was to be listed %d times", n)
	}
	// What came last is not forgotten.
	before = account()
	events <- adapter.Event{Kind: adapter.DeviceListed}
	b.until("the account is to be listed", func() bool { return account() > before })
}

// telling is an adapter that tells what the test does.
type telling struct {
	adapter.Adapter
	events chan adapter.Event
}

func (a telling) Events() <-chan adapter.Event { return a.events }

func (a telling) Close() error {
	close(a.events)
	return a.Adapter.Close()
}
