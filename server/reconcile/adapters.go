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
	stop   chan struct{}
	hints  sync.WaitGroup
}

// checkEvery is how often open adapters are compared with what is written down: an account that another
// instance looks after is changed or disconnected without this one being told.
const checkEvery = 15 * time.Second

type opened struct {
	config  []byte
	adapter adapter.Adapter
}

// NewAdapters makes the registry; openers are by the name of the adapter.
func NewAdapters(a *access.Service, openers map[string]Opener, log *slog.Logger) *Adapters {
	r := &Adapters{access: a, openers: openers, log: log, open: map[uuid.UUID]*opened{}, stop: make(chan struct{})}
	r.hints.Go(r.watch)
	return r
}

// Get is the adapter of an account, as its configuration is now.
func (r *Adapters) Get(ctx context.Context, id uuid.UUID) (adapter.Adapter, error) {
	account, err := r.access.GetAccount(ctx, id)
	if err != nil {
		return nil, err
	}
	if account.Deleted {
		r.drop(id)
		return nil, adapter.Errorf(adapter.GatewayDown, "the account was disconnected")
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
		r.shut(id)
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
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := r.take(ctx, account, e)
		cancel()
		for ; err != nil && e.Kind == adapter.DeviceRemoved && r.rest(); cancel() { // nothing else would tell of that
			r.log.Warn("a device has left its account, which could not be written down; it is repeated", "account", account, "error", err)
			ctx, cancel = context.WithTimeout(context.Background(), 10*time.Second)
			err = r.take(ctx, account, e)
		}
		if err != nil {
			r.log.Warn("a hint was lost; the account's devices are listed before long", "account", account, "error", err)
		}
	}
}

// rest pauses, and says whether to go on.
func (r *Adapters) rest() bool {
	select {
	case <-r.stop:
		return false
	case <-time.After(time.Second):
		return true
	}
}

// operations are what somebody did at a lock, in the words of package access.
var operations = map[adapter.EventKind]access.OperationKind{
	adapter.LockOperated: access.BoltMoved, adapter.Jammed: access.BoltJammed, adapter.AccessDenied: access.AccessDenied,
}

func (r *Adapters) take(ctx context.Context, account uuid.UUID, e adapter.Event) error {
	if kind, ok := operations[e.Kind]; ok {
		return r.access.RecordOperation(ctx, account, string(e.Device), access.Operation{Kind: kind, ID: e.Operation.ID, Locked: e.Operation.Locked,
			Method: string(e.Operation.Method), CodeRef: string(e.Code), At: e.Operation.At})
	}
	ref := string(e.Device)
	if e.Kind == adapter.DeviceRemoved {
		return r.access.RecordLeft(ctx, account, ref, time.Since(e.At))
	}
	if e.Kind == adapter.DeviceListed || e.Kind == adapter.AccountRevoked || e.Kind == adapter.StatusChanged {
		ref = "" // the list of devices tells
	}
	if e.Kind == adapter.Resync {
		return r.access.Resync(ctx, account)
	}
	return r.access.Hint(ctx, account, ref)
}

// drop closes the adapter of an account, if it is open.
func (r *Adapters) drop(id uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut(id)
}

// shut is drop for those who hold the lock.
func (r *Adapters) shut(id uuid.UUID) {
	o, ok := r.open[id]
	if !ok {
		return
	}
	delete(r.open, id)
	if err := o.adapter.Close(); err != nil {
		r.log.Warn("close an adapter", "account", id, "error", err)
	}
}

// watch drops the adapters of accounts that have ended or are reached otherwise by now.
func (r *Adapters) watch() {
	tick := time.NewTicker(checkEvery)
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
	configs := map[uuid.UUID][]byte{}
	for id, o := range r.open {
		configs[id] = o.config
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), checkEvery)
	defer cancel()
	for id, config := range configs {
		if account, err := r.access.GetAccount(ctx, id); err == nil && (account.Deleted || !bytes.Equal(config, account.Config)) {
			r.drop(id)
		}
	}
}

// Close ends all adapters.
func (r *Adapters) Close() error {
	r.mu.Lock()
	if !r.closed {
		close(r.stop)
	}
	r.closed = true
	var errs []error
	for _, o := range r.open {
		errs = append(errs, o.adapter.Close())
	}
	r.mu.Unlock()
	r.hints.Wait()
	return errors.Join(errs...)
}
