package account

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

func secretPlace(account uuid.UUID, name string) string {
	return "account_secrets.sealed/" + account.String() + "/" + name
}

// LoadSecret returns a secret of an account, or nil if there is none. For adapters only.
func (s *Service) LoadSecret(ctx context.Context, account uuid.UUID, name string) ([]byte, error) {
	r, err := s.db.GetAccountSecret(
		ctx,
		dbsqlc.GetAccountSecretParams{ConnectedAccountID: account, Name: name},
	)
	if store.IsNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the secret %q of account %s: %w", name, account, err)
	}
	return s.openSecret(r)
}

func (s *Service) openSecret(r dbsqlc.AccountSecret) ([]byte, error) {
	value, err := s.keys.Open(secretPlace(r.ConnectedAccountID, r.Name), r.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open the secret %q of account %s: %w", r.Name, r.ConnectedAccountID, err)
	}
	return value, nil
}

// StoreSecret replaces a secret of an account. nil deletes it. It fails with NotFound for an account that was
// disconnected.
func (s *Service) StoreSecret(ctx context.Context, account uuid.UUID, name string, value []byte) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error { return s.putSecret(ctx, tx, account, name, value) })
	if err != nil {
		return fmt.Errorf("store the secret %q of account %s: %w", name, account, err)
	}
	return nil
}

func (s *Service) putSecret(ctx context.Context, tx store.Tx, account uuid.UUID, name string, value []byte) error {
	if value == nil {
		return tx.DeleteAccountSecret(ctx, dbsqlc.DeleteAccountSecretParams{ConnectedAccountID: account, Name: name})
	}
	n, err := tx.PutAccountSecret(ctx, dbsqlc.PutAccountSecretParams{
		ConnectedAccountID: account,
		Name:               name,
		Sealed:             s.keys.Seal(secretPlace(account, name), value),
	})
	if err == nil && n == 0 {
		err = domain.AccountNotFound("connected_account_id", account.String())
	}
	return err
}

func (s *Service) putSecrets(ctx context.Context, tx store.Tx, account uuid.UUID, all map[string][]byte) error {
	for name, value := range all {
		if err := s.putSecret(ctx, tx, account, name, value); err != nil {
			return err
		}
	}
	return nil
}

// Renewal is how RotateSecret renews a secret.
type Renewal struct {
	// Seen is the value that the caller cannot use any more.
	Seen []byte
	// Timeout bounds Renew, which continues when the context of the caller ends.
	Timeout time.Duration
	// Renew returns what replaces the old value. interrupted means that an earlier renewal of this value has not stored
	// its result.
	Renew func(ctx context.Context, old []byte, interrupted bool) ([]byte, error)
}

// errRenewedConcurrently is the error of a transaction that finds a renewed secret.
var errRenewedConcurrently = errors.New("the secret was renewed concurrently")

// RotateSecret renews a secret of an account under the lock of its row, so that one of several instances renews it, and
// the others receive its result. The lock of an instance that is killed is free immediately, and of one that hangs, after
// the timeout. RotateSecret fails with NotFound for an account that was disconnected, with the error of Renew, and when
// the row remains locked.
func (s *Service) RotateSecret(ctx context.Context, account uuid.UUID, name string, r Renewal) ([]byte, error) {
	key := dbsqlc.GetAccountSecretParams{ConnectedAccountID: account, Name: name}
	known, err := s.db.GetAccountSecret(ctx, key)
	if store.IsNoRows(err) {
		return nil, domain.AccountNotFound("connected_account_id", account.String())
	}
	if err != nil {
		return nil, fmt.Errorf("read the secret %q of account %s: %w", name, account, err)
	}
	old, err := s.openSecret(known)
	if err != nil || !bytes.Equal(old, r.Seen) {
		return old, err
	}
	// A renewal that has started cannot be undone at the vendor.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*r.Timeout)
	defer cancel()
	var value []byte
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		// The note commits before the call, so that it survives a kill.
		n, err := tx.BeginSecretRenewal(ctx, dbsqlc.BeginSecretRenewalParams{
			ConnectedAccountID: account,
			Name:               name,
			Version:            known.Version,
		})
		if err == nil && n == 0 {
			err = errRenewedConcurrently
		}
		return err
	})
	if err == nil {
		err = s.db.InTx(ctx, func(tx store.Tx) (err error) {
			value, err = s.renewLocked(ctx, tx, known, r, value)
			return err
		})
	}
	switch {
	case errors.Is(err, errRenewedConcurrently):
		return s.LoadSecret(ctx, account, name)
	case err != nil && value != nil: // the commit failed
		err = s.storeRenewed(ctx, known, value)
	}
	if err != nil {
		return nil, fmt.Errorf("renew the secret %q of account %s: %w", name, account, err)
	}
	return value, nil
}

// renewLocked renews a secret while its row is locked. The result of an earlier try is not requested again.
func (s *Service) renewLocked(
	ctx context.Context,
	tx store.Tx,
	known dbsqlc.AccountSecret,
	r Renewal,
	value []byte,
) ([]byte, error) {
	if err := tx.ExtendIdleTimeout(ctx, r.Timeout+10*time.Second); err != nil {
		return value, err
	}
	now, err := tx.LockAccountSecret(ctx, dbsqlc.LockAccountSecretParams{
		ConnectedAccountID: known.ConnectedAccountID,
		Name:               known.Name,
	})
	if store.IsNoRows(err) || err == nil && now.Version != known.Version {
		return value, errRenewedConcurrently
	}
	if err != nil {
		return value, err
	}
	if value == nil {
		old, err := s.openSecret(now)
		if err != nil {
			return nil, err
		}
		limited, cancel := context.WithTimeout(ctx, r.Timeout)
		defer cancel()
		if value, err = r.Renew(limited, old, known.RenewingSince != nil); err != nil {
			return nil, err
		}
	}
	_, err = tx.StoreRenewedSecret(ctx, s.renewed(known, value))
	return value, err
}

func (s *Service) renewed(known dbsqlc.AccountSecret, value []byte) dbsqlc.StoreRenewedSecretParams {
	return dbsqlc.StoreRenewedSecretParams{
		ConnectedAccountID: known.ConnectedAccountID,
		Name:               known.Name,
		Version:            known.Version,
		Sealed:             s.keys.Seal(secretPlace(known.ConnectedAccountID, known.Name), value),
	}
}

// storeRenewed stores a result whose transaction failed, because the vendor may accept the old value never again. It
// retries until ctx ends.
func (s *Service) storeRenewed(ctx context.Context, known dbsqlc.AccountSecret, value []byte) error {
	pause := 50 * time.Millisecond
	for {
		// No row means that the failed transaction was committed after all, or that there was another login.
		_, err := s.db.StoreRenewedSecret(ctx, s.renewed(known, value))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
			pause = min(2*pause, 2*time.Second)
		}
	}
}
