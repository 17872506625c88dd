package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// maxRenewals is the maximum number of concurrent renewals of this instance for the accounts of one adapter. Each holds a
// connection of the pool while the vendor responds. There is no maximum of all adapters, which are few: a vendor that
// does not respond must not stop the renewals of others.
const maxRenewals = 2

// renewals limits the renewals of this instance to one of each account, and to maxRenewals of each adapter.
type renewals struct {
	one adapter.SingleFlight

	mu    sync.Mutex
	slots map[string]chan struct{} // by adapter
}

func newRenewals() *renewals { return &renewals{slots: map[string]chan struct{}{}} }

// acquire waits for a slot of the adapter until ctx ends. The caller must call release.
func (r *renewals) acquire(ctx context.Context, adapterName string) (release func(), err error) {
	r.mu.Lock()
	slots, ok := r.slots[adapterName]
	if !ok {
		slots = make(chan struct{}, maxRenewals)
		r.slots[adapterName] = slots
	}
	r.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accountSecrets implements adapter.Secrets.
type accountSecrets struct {
	accounts *account.Service
	account  uuid.UUID
	adapter  string // of the account
	renewals *renewals
}

// Load implements adapter.Secrets.
func (s *accountSecrets) Load(ctx context.Context, name string) ([]byte, error) {
	value, err := s.accounts.LoadSecret(ctx, s.account, name)
	return value, secretError(err)
}

// Store implements adapter.Secrets.
func (s *accountSecrets) Store(ctx context.Context, name string, value []byte) error {
	return secretError(s.accounts.StoreSecret(ctx, s.account, name, value))
}

// Rotate implements adapter.Secrets.
func (s *accountSecrets) Rotate(ctx context.Context, name string, seen []byte, renew adapter.Renew) ([]byte, error) {
	for {
		var value []byte
		did, err := s.renewals.one.Do(ctx, s.account, func() (err error) {
			release, err := s.renewals.acquire(ctx, s.adapter)
			if err != nil {
				return err
			}
			defer release()
			value, err = s.accounts.RotateSecret(ctx, s.account, name, account.Renewal{
				Seen:    seen,
				Timeout: adapter.RenewTimeout,
				Renew: func(ctx context.Context, old []byte, interrupted bool) ([]byte, error) {
					return renewed(ctx, old, interrupted, renew)
				},
			})
			return err
		})
		if did || err != nil {
			return value, secretError(err)
		}
		// Another goroutine renewed it.
		if value, err = s.Load(ctx, name); err != nil || !bytes.Equal(value, seen) {
			return value, err
		}
	}
}

// renewed calls renew, and explains a refusal that may have been caused by a kill between the vendor's answer and its
// storage.
func renewed(ctx context.Context, old []byte, interrupted bool, renew adapter.Renew) ([]byte, error) {
	value, err := renew(ctx, old)
	if e := adapter.AsError(err); interrupted && e != nil && e.Class == adapter.AuthRevoked {
		return nil, adapter.Errorf(
			adapter.AuthRevoked,
			"an earlier renewal of the login was interrupted, and the vendor no longer accepts the stored one; log in again",
		)
	}
	return value, err
}

// secretError turns an error of the domain into one of an adapter.
func secretError(err error) error {
	e, ok := errors.AsType[*domain.Error](err)
	switch {
	case err == nil || adapter.AsError(err) != nil:
		return err
	case ok && e.Kind == domain.NotFound:
		return adapter.Errorf(adapter.GatewayDown, "the account was disconnected")
	}
	failed := adapter.Errorf(adapter.Transient, "the account's secrets cannot be read or stored")
	return fmt.Errorf("%w (%w)", failed, err)
}
