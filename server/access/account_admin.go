package access

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// addressIndex keeps two accounts from having one address.
const addressIndex = "connected_accounts_address"

// AccountSummary is an account as those who run the server see it.
type AccountSummary struct {
	Account
	Devices int
	Problem string // why it does not work at the moment; empty: it does, or has not been tried
}

// ListAllAccounts lists the accounts of all workspaces with their credentials. For administration only.
func (s *Service) ListAllAccounts(ctx context.Context) ([]AccountSummary, error) {
	rows, err := s.db.ListAllAccounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the accounts: %w", err)
	}
	out := make([]AccountSummary, len(rows))
	for i, r := range rows {
		out[i] = AccountSummary{Devices: int(r.Devices), Problem: text(r.ConnectedAccount.ErrorMessage)}
		if out[i].Account, err = s.toAccount(r.ConnectedAccount); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// AccountChange is how an account is reached from now on.
type AccountChange struct {
	DisplayName string
	Address     string          // as for ConnectAccount
	Gateway     string          // as for ConnectAccount
	Config      json.RawMessage // as for ConnectAccount
}

// ChangeAccount changes the name, the address or the credentials of an account. Its devices stay what they are.
// It fails with NotFound, with Invalid, and with Conflict when another account has the address.
func (s *Service) ChangeAccount(ctx context.Context, id uuid.UUID, c AccountChange) error {
	var a dbsqlc.ConnectedAccount
	err := s.db.InTx(ctx, func(tx store.Tx) (err error) {
		if a, err = lockAccount(ctx, tx, id); err != nil {
			return err
		}
		if c.DisplayName != a.DisplayName { // what is there stays good, such as the name of a long address
			if err := checkLabel("display_name", c.DisplayName); err != nil {
				return err
			}
		}
		user := toConnectedAccount(a).User
		if c.Address != "" {
			user.APIURL = c.Address
		}
		n, err := tx.UpdateAccountConfig(ctx, dbsqlc.UpdateAccountConfigParams{ConnectedAccountID: id, DisplayName: c.DisplayName, UserIdentifier: mustJSON(user),
			ConfigSealed: s.keys.Seal(accountPlace(id), c.Config), AddressMac: s.addressMAC(a.Adapter, c.Address), GatewayMac: s.gatewayMAC(a.Adapter, c.Gateway)})
		if err != nil || n == 0 {
			return err
		}
		tx.Concerns(a.WorkspaceID)
		return s.waker.Wake(ctx, tx, AccountLane, id)
	})
	if store.Violates(err, addressIndex) {
		return s.AddressConnected(ctx, a.Adapter, c.Address, id)
	}
	if err != nil {
		return fmt.Errorf("change the account %s: %w", id, err)
	}
	return nil
}

// RenameAccount gives an account another name, and leaves how it is reached as it is. It fails with NotFound, and with Invalid.
func (s *Service) RenameAccount(ctx context.Context, id uuid.UUID, name string) error {
	if err := checkLabel("display_name", name); err != nil {
		return err
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		a, err := lockAccount(ctx, tx, id)
		if err != nil {
			return err
		}
		tx.Concerns(a.WorkspaceID)
		return tx.DescribeAccount(ctx, dbsqlc.DescribeAccountParams{ConnectedAccountID: id, DisplayName: name, CustomMetadata: a.CustomMetadata,
			CustomerKey: a.CustomerKey, ManageNewDevices: a.ManageNewDevices, AcceptedCapabilities: a.AcceptedCapabilities})
	})
	if err != nil {
		return fmt.Errorf("rename the account %s: %w", id, err)
	}
	return nil
}

// DisconnectAccount ends an account: its credentials are deleted, its devices are removed, what waits for them ends.
// On the devices themselves nothing is touched: the codes on them go on opening doors. So do those of backup pools, which
// are taken off when the device is connected again. It fails with NotFound.
func (s *Service) DisconnectAccount(ctx context.Context, id uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		a, err := lockAccount(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := s.removeAll(ctx, tx, a); err != nil {
			return err
		}
		for _, end := range s.endOfAccount {
			if err := end(ctx, tx, a.WorkspaceID, id); err != nil {
				return err
			}
		}
		if err := tx.SetAccountErrorOfDevices(ctx, dbsqlc.SetAccountErrorOfDevicesParams{ConnectedAccountID: id}); err != nil {
			return err
		}
		if err := tx.DeleteAccount(ctx, dbsqlc.DeleteAccountParams{ConnectedAccountID: id, ConfigSealed: s.keys.Seal(accountPlace(id), []byte("{}"))}); err != nil {
			return err
		}
		if err := s.failWaiting(ctx, tx, id); err != nil {
			return err
		}
		if err := s.emit(ctx, tx, "connected_account.deleted", about{workspace: a.WorkspaceID, account: id}); err != nil {
			return err
		}
		return s.waker.Wake(ctx, tx, AccountLane, id)
	})
	if err != nil {
		return fmt.Errorf("disconnect the account %s: %w", id, err)
	}
	return nil
}

func lockAccount(ctx context.Context, tx store.Tx, id uuid.UUID) (dbsqlc.ConnectedAccount, error) {
	a, err := tx.LockAccount(ctx, id)
	if store.IsNoRows(err) || (err == nil && a.DeletedAt != nil) {
		return a, &Error{Kind: NotFound, Type: "connected_account_not_found", Message: "There is no such account.", Data: map[string]any{"connected_account_id": id}}
	}
	return a, err
}

// AddressConnected fails with Conflict when another account than id has the address; id may be zero.
func (s *Service) AddressConnected(ctx context.Context, adapter, address string, id uuid.UUID) error {
	a, err := s.db.GetAccountByAddress(ctx, dbsqlc.GetAccountByAddressParams{Adapter: adapter, AddressMac: s.addressMAC(adapter, address)})
	switch {
	case store.IsNoRows(err) || (err == nil && a.ConnectedAccountID == id):
		return nil
	case err != nil:
		return fmt.Errorf("look for the address: %w", err)
	}
	return &Error{Kind: Conflict, Type: "connected_account_exists", Data: map[string]any{"connected_account_id": a.ConnectedAccountID},
		Message: fmt.Sprintf("%s is connected already, as account %s: two accounts would fight over its devices.", address, a.ConnectedAccountID)}
}

// addressMAC is nil for no address: such accounts are not compared.
func (s *Service) addressMAC(adapter, address string) []byte {
	if address == "" {
		return nil
	}
	return s.keys.MAC("connected_accounts.address/"+adapter, []byte(address))
}

// AccountRests notes that nothing is left to do for an account that was disconnected.
func (s *Service) AccountRests(ctx context.Context, id uuid.UUID) error {
	s.news.forget(id)
	return s.db.AccountRests(ctx, id)
}
