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
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

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
func closing(b *bed) (r *reconcile.Adapters, accounts [2]access.Account, begun <-chan struct{}, may chan<- struct{}) {
	b.Helper()
	begins, mayClose := make(chan struct{}, 10), make(chan struct{})
	r = reconcile.NewAdapters(b.access, map[string]reconcile.Opener{
		access.SandboxAdapter: func(context.Context, access.Account) (adapter.Adapter, error) {
			return slow{
				devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token}),
				begins,
				mayClose,
			}, nil
		},
	}, slog.New(slog.DiscardHandler))
	other, err := b.access.ConnectAccount(b.Context(), access.NewAccount{
		WorkspaceID: b.p.WorkspaceID,
		Adapter:     access.SandboxAdapter,
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
		b.access.ChangeAccount(t.Context(), accounts[0].ID,
			access.AccountChange{DisplayName: "locks", Config: json.RawMessage(`{"token":"new"}`)}),
	)
	changed, others := make(chan struct{}), make(chan struct{})
	get := func(a access.Account, got chan<- struct{}) {
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
