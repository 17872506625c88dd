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

// SandboxAdapter is the adapter of accounts whose devices are simulated.
const SandboxAdapter = "sandbox"

// SandboxAccessAdapter is the adapter of accounts whose access systems are simulated.
const SandboxAccessAdapter = "sandbox_access"

// AccessControl is the only kind of device that is taken from accounts with access systems.
const AccessControl = "access_control"

// Account is a connected account: the way to a vendor's devices.
type Account struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	Adapter     string // the protocol, such as "devicecloud", or SandboxAdapter
	DisplayName string
	// Config holds the address and the credentials in the adapter's format. It is a secret.
	Config  json.RawMessage
	Deleted bool  // disconnected; Config is empty
	Failing bool  // the last contact failed
	Seq     int64 // increases with each wake-up
}

func accountPlace(id uuid.UUID) string { return "connected_accounts.config/" + id.String() }

// NewAccount is a request to connect an account, with what its workspace stores about it.
type NewAccount struct {
	WorkspaceID uuid.UUID
	Adapter     string
	// Provider is the device_provider_name of the vendor that the person logged in to. Empty means several, or unknown.
	Provider    string
	DisplayName string
	// Address is the vendor's endpoint without credentials, such as a gateway's URL. Each address can be
	// connected once. Empty means that addresses are not compared.
	Address string
	// Gateway identifies the gateway by what it reports about itself, regardless of its address. Empty means
	// none or unknown.
	Gateway   string
	Config    json.RawMessage // as for Account
	User      UserIdentifier
	Unmanaged bool // new devices start out unmanaged
	// WritesAllowed lets the server write to the devices of an account although its adapter never met the vendor
	// (Options.Unverified). Only the operator may set it.
	WritesAllowed bool
	Capabilities  []string // the kinds of devices that are taken from it; nil: locks
	// Secrets start the secrets of the account, by name (RotateSecret).
	Secrets map[string][]byte
	// Unverified means that the login did not prove ownership. A connected account is then left unchanged.
	Unverified bool
}

// ConnectAccount adds an account. Its devices appear automatically. It fails with Invalid, and with Conflict
// where the address is already connected.
func (s *Service) ConnectAccount(ctx context.Context, n NewAccount) (uuid.UUID, error) {
	if err := domain.CheckText("display_name", n.DisplayName); err != nil {
		return uuid.Nil, err
	}
	id := domain.NewID()
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.HoldWorkspace(ctx, n.WorkspaceID); err != nil {
			return err
		}
		if err := s.holdGateway(ctx, tx, n.Adapter, n.Gateway); err != nil {
			return err
		}
		return s.Connect(ctx, tx, id, n)
	})
	if store.Violates(err, addressIndex) {
		return id, s.AddressConnected(ctx, n.Adapter, n.Address, uuid.Nil)
	}
	if err != nil {
		return id, fmt.Errorf("connect the account %q: %w", n.DisplayName, err)
	}
	return id, nil
}

// Connect adds an account in a transaction, and announces it.
func (s *Service) Connect(ctx context.Context, tx store.Tx, id uuid.UUID, n NewAccount) error {
	if err := s.insertAccount(ctx, tx, id, n); err != nil {
		return err
	}
	return s.emitConnected(ctx, tx, n.WorkspaceID, id, nil)
}

// user returns the login name, or the gateway's address where there was no login.
func (n NewAccount) user() UserIdentifier {
	if n.User == (UserIdentifier{}) {
		return UserIdentifier{APIURL: n.Address}
	}
	return n.User
}

func (s *Service) insertAccount(ctx context.Context, tx store.Tx, id uuid.UUID, n NewAccount) error {
	if n.Capabilities == nil {
		n.Capabilities = []string{"lock"}
	}
	err := tx.InsertAccount(ctx, dbsqlc.InsertAccountParams{
		ConnectedAccountID:   id,
		WorkspaceID:          n.WorkspaceID,
		Adapter:              n.Adapter,
		Provider:             n.Provider,
		DisplayName:          n.DisplayName,
		ConfigSealed:         s.keys.Seal(accountPlace(id), n.Config),
		AddressMac:           s.addressMAC(n.Adapter, n.Address),
		GatewayMac:           s.gatewayMAC(n.Adapter, n.Gateway),
		UserIdentifier:       domain.MustJSON(n.user()),
		ManageNewDevices:     !n.Unmanaged,
		WritesAllowed:        n.WritesAllowed,
		AcceptedCapabilities: n.Capabilities,
	})
	if err == nil {
		err = s.putSecrets(ctx, tx, id, n.Secrets)
	}
	if err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, domain.AccountLane, id)
}

// emitConnected announces a new account and the webview of its login. A nil webview means that there was none;
// the event then carries the nil identifier.
func (s *Service) emitConnected(ctx context.Context, tx store.Tx, workspace, id uuid.UUID, webview *uuid.UUID) error {
	created := event.About{Workspace: workspace, Account: id}
	connected := created
	if webview != nil {
		connected = connected.With("connect_webview_id", *webview)
		created = connected
	} else {
		created = created.With("connect_webview_id", uuid.Nil)
	}
	if err := s.events.Emit(ctx, tx, "connected_account.created", created); err != nil {
		return err
	}
	return s.events.Emit(ctx, tx, "connected_account.connected", connected)
}

// GetAccount reads an account with its credentials. An erased account is returned as deleted. For adapters
// only.
func (s *Service) GetAccount(ctx context.Context, id uuid.UUID) (Account, error) {
	r, err := s.db.GetAccount(ctx, id)
	if store.IsNoRows(err) {
		return Account{ID: id, Deleted: true}, nil
	}
	if err != nil {
		return Account{}, fmt.Errorf("read the account %s: %w", id, err)
	}
	return s.ToAccount(r)
}

// ListAccounts lists the accounts of one adapter in all workspaces. For administration and start-up only.
func (s *Service) ListAccounts(ctx context.Context, adapter string) ([]Account, error) {
	rows, err := s.db.ListAccountsOfAdapter(ctx, adapter)
	if err != nil {
		return nil, fmt.Errorf("list the accounts: %w", err)
	}
	out := make([]Account, len(rows))
	for i, r := range rows {
		if out[i], err = s.ToAccount(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ToAccount converts a row, and decrypts its configuration.
func (s *Service) ToAccount(r dbsqlc.ConnectedAccount) (Account, error) {
	config, err := s.keys.Open(accountPlace(r.ConnectedAccountID), r.ConfigSealed)
	if err != nil {
		return Account{}, fmt.Errorf("open the credentials of account %s: %w", r.ConnectedAccountID, err)
	}
	return Account{
		ID:          r.ConnectedAccountID,
		WorkspaceID: r.WorkspaceID,
		Adapter:     r.Adapter,
		DisplayName: r.DisplayName,
		Config:      config,
		Deleted:     r.DeletedAt != nil,
		Failing:     r.ErrorCode != nil,
		Seq:         r.WakeSeq,
	}, nil
}
