package reconcile_test

import (
	"context"
	"encoding/json"
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
