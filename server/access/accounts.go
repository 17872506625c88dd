package access

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// SandboxAdapter is the adapter of accounts whose devices are simulated.
const SandboxAdapter = "sandbox"

// SandboxAccessAdapter is the adapter of accounts whose access systems are simulated.
const SandboxAccessAdapter = "sandbox_access"

// AccessControl is what is taken from accounts that have access systems, and from no other.
const AccessControl = "access_control"

// Account is a connected account: the way to a vendor's devices.
type Account struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	Adapter     string // the protocol, such as "devicecloud", or SandboxAdapter
	DisplayName string
	Config      json.RawMessage // address and credentials, as the adapter understands them: a secret
	Deleted     bool            // it was disconnected; Config is empty
	Failing     bool            // it had an error the last time
	Seq         int64
}

func accountPlace(id uuid.UUID) string { return "connected_accounts.config/" + id.String() }

// NewAccount says how an account is reached and what its workspace is to keep about it.
type NewAccount struct {
	WorkspaceID uuid.UUID
	Adapter     string
	DisplayName string
	Address     string          // the vendor's end without any credential, such as a gateway's URL: one is connected once; empty: that does not matter
	Gateway     string          // which gateway it is, by what that says itself, whatever its address; empty: none, or it does not say
	Config      json.RawMessage // as for Account
	User        UserIdentifier
	SeeOnly     bool     // its devices are not managed when they appear
	Takes       []string // the kinds of devices that are taken from it; nil: locks
	Unproven    bool     // nothing that was entered says that it is that person's: an account that is there already is left alone
}

// ConnectAccount adds an account; its devices appear by themselves. It fails with Invalid, and with Conflict when the address is
// connected.
func (s *Service) ConnectAccount(ctx context.Context, n NewAccount) (uuid.UUID, error) {
	if err := checkText("display_name", n.DisplayName); err != nil {
		return uuid.Nil, err
	}
	id := newID()
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.HoldWorkspace(ctx, n.WorkspaceID); err != nil {
			return err
		}
		if err := s.holdGateway(ctx, tx, n.Adapter, n.Gateway); err != nil {
			return err
		}
		return s.connect(ctx, tx, id, n)
	})
	if store.Violates(err, addressIndex) {
		return id, s.AddressConnected(ctx, n.Adapter, n.Address, uuid.Nil)
	}
	if err != nil {
		return id, fmt.Errorf("connect the account %q: %w", n.DisplayName, err)
	}
	return id, nil
}

func (s *Service) connect(ctx context.Context, tx store.Tx, id uuid.UUID, n NewAccount) error {
	if err := s.insertAccount(ctx, tx, id, n); err != nil {
		return err
	}
	return s.tellConnected(ctx, tx, n.WorkspaceID, id, nil)
}

// user says with what was logged in, or, where nobody has, which gateway it is.
func (n NewAccount) user() UserIdentifier {
	if n.User == (UserIdentifier{}) {
		return UserIdentifier{APIURL: n.Address}
	}
	return n.User
}

func (s *Service) insertAccount(ctx context.Context, tx store.Tx, id uuid.UUID, n NewAccount) error {
	if n.Takes == nil {
		n.Takes = []string{"lock"}
	}
	err := tx.InsertAccount(ctx, dbsqlc.InsertAccountParams{ConnectedAccountID: id, WorkspaceID: n.WorkspaceID, Adapter: n.Adapter,
		DisplayName: n.DisplayName, ConfigSealed: s.keys.Seal(accountPlace(id), n.Config), AddressMac: s.addressMAC(n.Adapter, n.Address), GatewayMac: s.gatewayMAC(n.Adapter, n.Gateway),
		UserIdentifier: mustJSON(n.user()), ManageNewDevices: !n.SeeOnly, AcceptedCapabilities: n.Takes})
	if err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, AccountLane, id)
}

// tellConnected tells of a new account, and of the webview on which it was logged in to; nil: it was on none, which the
// nil identifier says.
func (s *Service) tellConnected(ctx context.Context, tx store.Tx, workspace, id uuid.UUID, webview *uuid.UUID) error {
	created := about{workspace: workspace, account: id}
	connected := created
	if webview != nil {
		connected = connected.with("connect_webview_id", *webview)
		created = connected
	} else {
		created = created.with("connect_webview_id", uuid.Nil)
	}
	if err := s.emit(ctx, tx, "connected_account.created", created); err != nil {
		return err
	}
	return s.emit(ctx, tx, "connected_account.connected", connected)
}

// GetAccount reads an account with its credentials; one that was erased is a deleted one. For the adapters only.
func (s *Service) GetAccount(ctx context.Context, id uuid.UUID) (Account, error) {
	r, err := s.db.GetAccount(ctx, id)
	if store.IsNoRows(err) {
		return Account{ID: id, Deleted: true}, nil
	}
	if err != nil {
		return Account{}, fmt.Errorf("read the account %s: %w", id, err)
	}
	return s.toAccount(r)
}

// ListAccounts lists the accounts of one adapter, in all workspaces. For administration and start-up only.
func (s *Service) ListAccounts(ctx context.Context, adapter string) ([]Account, error) {
	rows, err := s.db.ListAccountsOfAdapter(ctx, adapter)
	if err != nil {
		return nil, fmt.Errorf("list the accounts: %w", err)
	}
	out := make([]Account, len(rows))
	for i, r := range rows {
		if out[i], err = s.toAccount(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Service) toAccount(r dbsqlc.ConnectedAccount) (Account, error) {
	config, err := s.keys.Open(accountPlace(r.ConnectedAccountID), r.ConfigSealed)
	if err != nil {
		return Account{}, fmt.Errorf("open the credentials of account %s: %w", r.ConnectedAccountID, err)
	}
	return Account{ID: r.ConnectedAccountID, WorkspaceID: r.WorkspaceID, Adapter: r.Adapter, DisplayName: r.DisplayName, Config: config,
		Deleted: r.DeletedAt != nil, Failing: r.ErrorCode != nil, Seq: r.WakeSeq}, nil
}
