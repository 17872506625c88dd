package reconcile_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// A cloud that hangs while its account is opened delays no other account, and is contacted once for
// all waiting callers. An adapter that opens after Close is closed.
func TestOpen_SlowAccountDelaysNoOther(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	slow, err := b.access.ConnectAccount(t.Context(), access.NewAccount{
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
		"slow": func(context.Context, access.Account) (adapter.Adapter, error) {
			if opened.Add(1) == 1 {
				close(begun)
			}
			<-goOn
			return late, nil
		},
		access.SandboxAdapter: func(context.Context, access.Account) (adapter.Adapter, error) {
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
