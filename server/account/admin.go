package account

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// addressIndex is the unique index of the addresses of accounts.
const addressIndex = "connected_accounts_address"

// Summary is an account as the operator sees it.
type Summary struct {
	Account
	Devices int
	Problem string // the current error; empty: it works or was not tried yet
}

// ListAllAccounts lists the accounts of all workspaces with their credentials. For administration only.
func (s *Service) ListAllAccounts(ctx context.Context) ([]Summary, error) {
	rows, err := s.db.ListAllAccounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the accounts: %w", err)
	}
	out := make([]Summary, len(rows))
	for i, r := range rows {
		out[i] = Summary{Devices: int(r.Devices), Problem: domain.Value(r.ConnectedAccount.ErrorMessage)}
		if out[i].Account, err = s.ToAccount(r.ConnectedAccount); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// FirstSteps says what an operator has done toward real devices.
type FirstSteps struct{ Workspace, Key, Account bool }

// FirstSteps returns what the operator has ever done. Disconnected accounts and revoked keys count.
func (s *Service) FirstSteps(ctx context.Context) (FirstSteps, error) {
	done, err := s.db.GetFirstSteps(ctx)
	if err != nil {
		return FirstSteps{}, fmt.Errorf("read the first steps: %w", err)
	}
	return FirstSteps(done), nil
}

// Change is the new way to reach an account.
type Change struct {
	DisplayName string
	Address     string            // as in NewAccount
	Gateway     string            // as in NewAccount
	Config      json.RawMessage   // as in NewAccount
	Secrets     map[string][]byte // as in NewAccount; others stay
}

// ChangeAccount changes the name, the address, or the credentials of an account. Its devices stay. It fails
// with NotFound, with Invalid, and with Conflict where another account has the address.
func (s *Service) ChangeAccount(ctx context.Context, id uuid.UUID, c Change) error {
	var a dbsqlc.ConnectedAccount
	err := s.db.InTx(ctx, func(tx store.Tx) (err error) {
		if a, err = lockAccount(ctx, tx, id); err != nil {
			return err
		}
		if c.DisplayName != a.DisplayName { // an existing name stays valid, such as one of a long address
			if err := domain.CheckLabel("display_name", c.DisplayName); err != nil {
				return err
			}
		}
		user := toConnectedAccount(a).User
		if c.Address != "" {
			user.APIURL = c.Address
		}
		n, err := tx.UpdateAccountConfig(ctx, dbsqlc.UpdateAccountConfigParams{
			ConnectedAccountID: id,
			DisplayName:        c.DisplayName,
			UserIdentifier:     domain.MustJSON(user),
			ConfigSealed:       s.keys.Seal(accountPlace(id), c.Config),
			AddressMac:         s.addressMAC(a.Adapter, c.Address),
			GatewayMac:         s.gatewayMAC(a.Adapter, c.Gateway),
		})
		if err != nil || n == 0 {
			return err
		}
		if err := s.putSecrets(ctx, tx, id, c.Secrets); err != nil {
			return err
		}
		tx.Concerns(a.WorkspaceID)
		return s.waker.Wake(ctx, tx, domain.AccountLane, id)
	})
	if store.Violates(err, addressIndex) {
		return s.AddressConnected(ctx, a.Adapter, c.Address, id)
	}
	if err != nil {
		return fmt.Errorf("change the account %s: %w", id, err)
	}
	return nil
}

// RenameAccount changes the name of an account. It fails with NotFound, and with Invalid.
func (s *Service) RenameAccount(ctx context.Context, id uuid.UUID, name string) error {
	if err := domain.CheckLabel("display_name", name); err != nil {
		return err
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		a, err := lockAccount(ctx, tx, id)
		if err != nil {
			return err
		}
		tx.Concerns(a.WorkspaceID)
		return tx.DescribeAccount(ctx, dbsqlc.DescribeAccountParams{
			ConnectedAccountID:   id,
			DisplayName:          name,
			CustomMetadata:       a.CustomMetadata,
			CustomerKey:          a.CustomerKey,
			ManageNewDevices:     a.ManageNewDevices,
			AcceptedCapabilities: a.AcceptedCapabilities,
		})
	})
	if err != nil {
		return fmt.Errorf("rename the account %s: %w", id, err)
	}
	return nil
}

// DisconnectAccount ends an account: it deletes the credentials, removes the devices, and fails what waits for
// them. The devices themselves keep their codes, which continue to open doors. The codes of backup pools are
// removed from a device when it is connected again. It fails with NotFound.
func (s *Service) DisconnectAccount(ctx context.Context, id uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		a, err := lockAccount(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, end := range s.endOfAccount {
			if err := end(ctx, tx, a.WorkspaceID, id); err != nil {
				return err
			}
		}
		if err := tx.SetAccountErrorOfDevices(
			ctx,
			dbsqlc.SetAccountErrorOfDevicesParams{ConnectedAccountID: id},
		); err != nil {
			return err
		}
		if err := tx.DeleteAccount(
			ctx,
			dbsqlc.DeleteAccountParams{
				ConnectedAccountID: id,
				ConfigSealed:       s.keys.Seal(accountPlace(id), []byte("{}")),
			},
		); err != nil {
			return err
		}
		if err := tx.DeleteAccountSecrets(ctx, id); err != nil {
			return err
		}
		if err := s.failWaiting(ctx, tx, id); err != nil {
			return err
		}
		if err := s.events.Emit(
			ctx,
			tx,
			"connected_account.deleted",
			event.About{Workspace: a.WorkspaceID, Account: id},
		); err != nil {
			return err
		}
		return s.waker.Wake(ctx, tx, domain.AccountLane, id)
	})
	if err != nil {
		return fmt.Errorf("disconnect the account %s: %w", id, err)
	}
	return nil
}

func lockAccount(ctx context.Context, tx store.Tx, id uuid.UUID) (dbsqlc.ConnectedAccount, error) {
	a, err := tx.LockAccount(ctx, id)
	if store.IsNoRows(err) || (err == nil && a.DeletedAt != nil) {
		return a, &domain.Error{
			Kind:    domain.NotFound,
			Type:    "connected_account_not_found",
			Message: "There is no such account.",
			Data:    map[string]any{"connected_account_id": id},
		}
	}
	return a, err
}

// AddressConnected fails with Conflict where another account than id has the address. id may be zero.
func (s *Service) AddressConnected(ctx context.Context, adapter, address string, id uuid.UUID) error {
	a, err := s.db.GetAccountByAddress(
		ctx,
		dbsqlc.GetAccountByAddressParams{Adapter: adapter, AddressMac: s.addressMAC(adapter, address)},
	)
	switch {
	case store.IsNoRows(err) || (err == nil && a.ConnectedAccountID == id):
		return nil
	case err != nil:
		return fmt.Errorf("look for the address: %w", err)
	}
	return &domain.Error{
		Kind: domain.Conflict,
		Type: "connected_account_exists",
		Data: map[string]any{"connected_account_id": a.ConnectedAccountID},
		Message: fmt.Sprintf(
			"%s is already connected, as account %s. Two accounts would fight over its devices.",
			address,
			a.ConnectedAccountID,
		),
	}
}

// addressMAC returns the MAC of an address, or nil for no address. Accounts without one are not compared.
func (s *Service) addressMAC(adapter, address string) []byte {
	if address == "" {
		return nil
	}
	return s.keys.IndexMAC("connected_accounts.address/"+adapter, []byte(address))
}
