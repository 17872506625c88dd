package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Opener makes the adapter of an account from its address and credentials.
type Opener func(ctx context.Context, account access.Account) (adapter.Adapter, error)

// Adapters keeps one adapter per account, opened when it is first needed, and passes on what they hint at.
type Adapters struct {
	access  *access.Service
	openers map[string]Opener
	log     *slog.Logger

	mu     sync.Mutex
	open   map[uuid.UUID]*opened
	closed bool
	hints  sync.WaitGroup
}

type opened struct {
	config  []byte
	adapter adapter.Adapter
}

// NewAdapters makes the registry; openers are by the name of the adapter.
func NewAdapters(a *access.Service, openers map[string]Opener, log *slog.Logger) *Adapters {
	return &Adapters{access: a, openers: openers, log: log, open: map[uuid.UUID]*opened{}}
}

// Get is the adapter of an account, as its configuration is now.
func (r *Adapters) Get(ctx context.Context, id uuid.UUID) (adapter.Adapter, error) {
	account, err := r.access.GetAccount(ctx, id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("the adapters are closed")
	}
	if o, ok := r.open[id]; ok {
		if bytes.Equal(o.config, account.Config) {
			return o.adapter, nil
		}
		delete(r.open, id)
		if err := o.adapter.Close(); err != nil {
			r.log.Warn("close an adapter", "account", id, "error", err)
		}
	}
	open, ok := r.openers[account.Adapter]
	if !ok {
		return nil, fmt.Errorf("account %s needs the adapter %q, which this program does not have", id, account.Adapter)
	}
	a, err := open(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("open the adapter of account %s: %w", id, err)
	}
	r.open[id] = &opened{account.Config, a}
	r.hints.Go(func() { r.listen(id, a.Events()) })
	return a, nil
}

// listen turns what an adapter hints at into wake-ups.
func (r *Adapters) listen(account uuid.UUID, events <-chan adapter.Event) {
	for e := range events {
		ref := string(e.Device)
		if e.Kind == adapter.DeviceListed || e.Kind == adapter.AccountRevoked || e.Kind == adapter.StatusChanged {
			ref = "" // the list of devices tells
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := r.access.Hint(ctx, account, ref); err != nil {
			r.log.Warn("a hint was lost; the account's devices are listed before long", "account", account, "error", err)
		}
		cancel()
	}
}

// Close ends all adapters.
func (r *Adapters) Close() error {
	r.mu.Lock()
	r.closed = true
	var errs []error
	for _, o := range r.open {
		errs = append(errs, o.adapter.Close())
	}
	r.mu.Unlock()
	r.hints.Wait()
	return errors.Join(errs...)
}
