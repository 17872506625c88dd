package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Opener opens the adapter of an account with the account's address and credentials.
type Opener func(ctx context.Context, account account.Account) (adapter.Adapter, error)

// Adapters holds one adapter per account. It opens an adapter on first use and forwards the
// adapter's events as hints.
type Adapters struct {
	access  *access.Services
	openers map[string]Opener
	log     *slog.Logger

	// opening runs one open per account at a time, because a vendor may hang.
	opening adapter.SingleFlight
	mu      sync.Mutex
	open    map[uuid.UUID]*opened
	closed  bool
	stop    chan struct{}
	hints   sync.WaitGroup
}

// checkInterval is the interval at which open adapters are compared with the stored accounts. Another
// instance may change or disconnect an account without notifying this one.
const checkInterval = 15 * time.Second

type opened struct {
	config  []byte
	adapter adapter.Adapter
}

// NewAdapters creates the registry. The keys of openers are adapter names.
func NewAdapters(a *access.Services, openers map[string]Opener, log *slog.Logger) *Adapters {
	r := &Adapters{
		access:  a,
		openers: openers,
		log:     log,
		open:    map[uuid.UUID]*opened{},
		stop:    make(chan struct{}),
	}
	r.hints.Go(r.watch)
	return r
}

var errDisconnected = adapter.Errorf(adapter.GatewayDown, "the account was disconnected")

// Get returns the adapter of an account with the account's current configuration. It opens the
// adapter if necessary.
func (r *Adapters) Get(ctx context.Context, id uuid.UUID) (adapter.Adapter, error) {
	account, err := r.access.Accounts.GetAccount(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.Of(ctx, account)
}

// Of is Get for an account that was just read.
func (r *Adapters) Of(ctx context.Context, account account.Account) (adapter.Adapter, error) {
	id := account.ID
	if account.Deleted {
		r.drop(id, anyAdapter)
		return nil, errDisconnected
	}
	r.drop(id, configDiffers(account.Config))
	for {
		a, err := r.cached(id)
		if a != nil || err != nil {
			return a, err
		}
		did, err := r.opening.Do(ctx, id, func() (err error) {
			// Another caller may have opened it since.
			if a, err = r.cached(id); a == nil && err == nil {
				a, err = r.openAdapter(ctx, account)
			}
			return err
		})
		if did || err != nil {
			return a, err
		}
	}
}

// cached returns the open adapter of an account, or nil if none is open. It fails after Close.
func (r *Adapters) cached(id uuid.UUID) (adapter.Adapter, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errAdaptersClosed
	}
	if o, ok := r.open[id]; ok {
		return o.adapter, nil
	}
	return nil, nil
}

var errAdaptersClosed = errors.New("the adapters are closed")

// openAdapter opens the adapter of an account. A slow vendor delays only its own account.
func (r *Adapters) openAdapter(ctx context.Context, account account.Account) (adapter.Adapter, error) {
	open, ok := r.openers[account.Adapter]
	if !ok {
		return nil, fmt.Errorf("account %s needs the adapter %q, which this program does not have", account.ID,
			account.Adapter)
	}
	a, err := open(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("open the adapter of account %s: %w", account.ID, err)
	}
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.open[account.ID] = &opened{account.Config, a}
		r.hints.Go(func() { listen(r, account.ID, a.Events()) })
	}
	r.mu.Unlock()
	if closed {
		go func() {
			// Drain the events so that Close does not block.
			for range a.Events() {
			}
		}()
		return nil, errors.Join(errAdaptersClosed, a.Close())
	}
	return a, nil
}

// ForPush returns the adapter that handles the vendor's push messages for an account. It does not
// compare an open adapter with the stored account, because that would cost a query per push. A push
// only says where to look.
func (r *Adapters) ForPush(ctx context.Context, id uuid.UUID) (adapter.Adapter, error) {
	r.mu.Lock()
	o, ok := r.open[id]
	r.mu.Unlock()
	if ok {
		return o.adapter, nil
	}
	return r.Get(ctx, id)
}

// drop closes the open adapter of an account if meant accepts it. Other callers do not wait for the
// close.
func (r *Adapters) drop(id uuid.UUID, meant func(*opened) bool) {
	r.mu.Lock()
	o, ok := r.open[id]
	if ok = ok && meant(o); ok {
		delete(r.open, id)
	}
	r.mu.Unlock()
	if !ok {
		return
	}
	if err := o.adapter.Close(); err != nil {
		r.log.Warn("close an adapter", "connected_account_id", id, "error", err)
	}
}

func anyAdapter(*opened) bool { return true }

// configDiffers accepts adapters that were opened with another configuration.
func configDiffers(than []byte) func(*opened) bool {
	return func(o *opened) bool { return !bytes.Equal(o.config, than) }
}

// watch drops the adapters of accounts that were disconnected or reconfigured.
func (r *Adapters) watch() {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.check()
		}
	}
}

func (r *Adapters) check() {
	r.mu.Lock()
	open := maps.Clone(r.open)
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), checkInterval)
	defer cancel()
	for id, o := range open {
		account, err := r.access.Accounts.GetAccount(ctx, id)
		meant := configDiffers(account.Config)
		if account.Deleted || outdated(o.adapter) {
			meant = anyAdapter
		}
		if err == nil && meant(o) {
			r.hints.Go(func() { r.drop(id, meant) })
		}
	}
}

// outdated reports whether an adapter asks to be opened again.
func outdated(a adapter.Adapter) bool {
	o, ok := a.(interface{ Outdated() bool })
	return ok && o.Outdated()
}

// Close closes all adapters concurrently and waits for them.
func (r *Adapters) Close() error {
	r.mu.Lock()
	if !r.closed {
		close(r.stop)
	}
	r.closed = true
	open := slices.Collect(maps.Values(r.open))
	clear(r.open)
	r.mu.Unlock()
	errs := make([]error, len(open))
	var closing sync.WaitGroup
	for n, o := range open {
		closing.Go(func() { errs[n] = o.adapter.Close() })
	}
	closing.Wait()
	r.hints.Wait()
	return errors.Join(errs...)
}
