package reconcile

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// An account that is slow to open delays neither another account nor periodic work, and is opened
// once for all waiting callers.
func TestOpen_SlowAccountDelaysNoOther(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"it is opened": nil, "it fails": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shut, begun, goOn := 0, make(chan struct{}), make(chan struct{})
			var opened atomic.Int32
			slow := func(context.Context, account.Account) (adapter.AccessSystems, error) {
				if opened.Add(1) == 1 {
					close(begun)
				}
				<-goOn
				return counted{shut: &shut}, failure
			}
			quick := func(context.Context, account.Account) (adapter.AccessSystems, error) {
				return counted{shut: new(int)}, nil
			}
			d := New(nil, nil, map[string]Opener{"slow": slow, "quick": quick}, Options{})
			acct := account.Account{ID: uuid.New(), Adapter: "slow"}
			var asking sync.WaitGroup
			ask := func() {
				asking.Go(func() {
					if _, err := d.get(t.Context(), acct); !errors.Is(err, failure) {
						t.Errorf("the slow one: %v", err)
					}
				})
			}
			ask()
			<-begun
			ask()
			other := make(chan error)
			go func() {
				_, err := d.get(t.Context(), account.Account{ID: uuid.New(), Adapter: "quick"})
				d.closeIdle()
				other <- err
			}()
			select {
			case err := <-other:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
				t.Error("another account waits")
			}
			close(goOn)
			asking.Wait()
			if failure == nil && opened.Load() != 1 {
				t.Errorf("%d opens", opened.Load())
			}
		})
	}
}

// A caller that stops waiting for an account does not fail the others.
func TestOpen_CanceledCallerFailsNoOther(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 2)
	d := New(
		nil,
		nil,
		map[string]Opener{"a": func(ctx context.Context, _ account.Account) (adapter.AccessSystems, error) {
			if begun <- struct{}{}; len(begun) == 1 {
				<-ctx.Done()
			}
			return counted{shut: new(int)}, ctx.Err()
		}},
		Options{},
	)
	account := account.Account{ID: uuid.New(), Adapter: "a"}
	impatient, giveUp := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { _, err := d.get(impatient, account); first <- err }()
	testenv.Until(t, "it is being opened", func() bool { return len(begun) > 0 })
	go func() { _, err := d.get(t.Context(), account); second <- err }()
	giveUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled caller: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("other caller: %v", err)
	}
}
