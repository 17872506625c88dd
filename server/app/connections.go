package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// entered is implemented by connections whose address may come from a connect page (adapter.PageOrigin).
type entered interface {
	MarkEntered()
	IsEntered() bool
}

// isEntered reports whether the address of a connection comes from a connect page.
func isEntered(c adapter.Connection) bool {
	e, ok := c.(entered)
	return ok && e.IsEntered()
}

// ConnectedAccount is an account and its connection.
type ConnectedAccount struct {
	account.Summary
	// Connection is nil for simulated accounts.
	Connection adapter.Connection
	// CallsLeft is how many calls the vendor's limit leaves now, or a waiting time; empty without a limit.
	CallsLeft string
}

// Accounts returns the accounts of all workspaces.
func (a *Admin) Accounts(ctx context.Context) ([]ConnectedAccount, error) {
	rows, err := a.Access.Accounts.ListAllAccounts(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]ConnectedAccount, len(rows))
	for i, r := range rows {
		out[i].Summary = r
		if out[i].Connection, err = a.Connecting.connection(r.Account); err != nil {
			return nil, err
		}
		if out[i].CallsLeft, err = a.callsLeft(ctx, r.Account); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// callsLeft returns ConnectedAccount.CallsLeft.
func (a *Admin) callsLeft(ctx context.Context, account account.Account) (string, error) {
	v, ok := a.Connecting.vendorOf(account.Adapter)
	if !ok || v.CallsPerHour == 0 {
		return "", nil
	}
	left, err := a.Access.Accounts.CallsLeft(ctx, account.ID, bucketOf(v))
	if err != nil {
		return "", err
	}
	if left.Blocked > 0 {
		return "in " + left.Blocked.Round(time.Second).String(), nil
	}
	return strconv.Itoa(max(0, int(left.Calls))), nil
}

// connection returns the connection of an account, or nil for a simulated account.
func (c Connecting) connection(account account.Account) (adapter.Connection, error) {
	v, ok := c.vendorOf(account.Adapter)
	if !ok {
		return nil, nil
	}
	return readConnection(v, account)
}

// readConnection decodes the connection of an account.
func readConnection(v adapter.Vendor, account account.Account) (adapter.Connection, error) {
	c := v.New()
	if err := json.Unmarshal(account.Config, c); err != nil {
		return nil, fmt.Errorf("read the connection of account %s: its stored configuration is invalid", account.ID)
	}
	return c, nil
}

// secretsOf returns the secrets that a login starts. Credentials of an earlier login must not survive another way to log
// in.
func secretsOf(found adapter.Checked) map[string][]byte {
	if found.KeepCredentials {
		return nil
	}
	return map[string][]byte{adapter.CredentialsSecret: found.Credentials}
}

// newAccount returns the account of a checked connection.
func newAccount(
	v adapter.Vendor,
	workspace uuid.UUID,
	c adapter.Connection,
	found adapter.Checked,
) (account.NewAccount, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return account.NewAccount{}, fmt.Errorf("encode the connection of the account: %w", err)
	}
	return account.NewAccount{
		WorkspaceID:  workspace,
		Adapter:      c.Adapter(),
		Provider:     found.Provider,
		DisplayName:  cmp.Or(found.DisplayName, c.Adapter()+" at "+c.Address()),
		Address:      c.Address(),
		Gateway:      found.Gateway,
		Config:       config,
		User:         account.UserIdentifier{Email: found.Email, Username: found.Username},
		Capabilities: v.Accepts,
		Secrets:      secretsOf(found),
		Unmanaged:    startsReadOnly(v),
	}, nil
}

// Connect checks a connection and creates an account with it. The server then discovers its devices. Connect returns an
// *adapter.Error if the check fails, and a *domain.Error if the address or gateway is already connected. Without a name,
// the account is named after the vendor and the address. New devices of a vendor that the adapter never met start out
// unmanaged, unless AllowWrites is set.
func (a *Admin) Connect(
	ctx context.Context,
	workspace uuid.UUID,
	name string,
	c adapter.Connection,
) (uuid.UUID, error) {
	v, ok := a.Connecting.vendorOf(c.Adapter())
	if !ok {
		return uuid.Nil, fmt.Errorf("this program has no adapter %q", c.Adapter())
	}
	if a.Connecting.lacksClient(v) {
		return uuid.Nil, fmt.Errorf(
			"%s needs your registration at the vendor: set --vendor-client %s=ID", v.DisplayName, v.Adapter)
	}
	if err := a.Access.Accounts.AddressConnected(ctx, c.Adapter(), c.Address(), uuid.Nil); err != nil {
		return uuid.Nil, err
	}
	env := a.Connecting.env(v, nil)
	env.Workspace = workspace.String()
	found, err := c.Check(ctx, env)
	if err != nil {
		return uuid.Nil, err
	}
	n, err := newAccount(v, workspace, c, found)
	if err != nil {
		return uuid.Nil, err
	}
	n.DisplayName = cmp.Or(name, n.DisplayName)
	n.Unmanaged, n.WritesAllowed = n.Unmanaged && !a.AllowWrites, a.AllowWrites
	return a.Access.Accounts.ConnectAccount(ctx, n)
}

// ConnectSandboxAccess creates an account with simulated access systems in the oldest sandbox workspace.
func (a *Admin) ConnectSandboxAccess(ctx context.Context, name string, systems int) (uuid.UUID, error) {
	workspaces, err := a.Access.Accounts.ListAllWorkspaces(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	i := slices.IndexFunc(workspaces, func(w account.Workspace) bool { return w.IsSandbox })
	if i < 0 {
		return uuid.Nil, errors.New(
			"there is no sandbox workspace; create one with `deviceaccess-server serve --sandbox`",
		)
	}
	config, err := json.Marshal(sandboxConfig{Key: uuid.NewString(), Systems: systems})
	if err != nil {
		return uuid.Nil, fmt.Errorf("encode the connection of the account: %w", err)
	}
	return a.Access.Accounts.ConnectAccount(ctx, account.NewAccount{
		WorkspaceID:  workspaces[i].ID,
		Adapter:      account.SandboxAccessAdapter,
		DisplayName:  name,
		Capabilities: []string{account.AccessControl},
		User:         account.UserIdentifier{Email: sandbox.People[0]},
		Config:       config,
	})
}

// Reconnect checks a connection and makes it the connection of an account. It returns the errors of Connect. It also
// returns an error if the address is from a connect page and is in a network that Entered does not allow, or is the
// gateway of another account.
func (a *Admin) Reconnect(ctx context.Context, accountID uuid.UUID, name string, c adapter.Connection) error {
	if err := a.Access.Accounts.AddressConnected(ctx, c.Adapter(), c.Address(), accountID); err != nil {
		return err
	}
	v, ok := a.Connecting.vendorOf(c.Adapter())
	if !ok {
		return fmt.Errorf("this program has no adapter %q", c.Adapter())
	}
	var outside atomic.Bool
	var guard adapter.Control
	entered := isEntered(c)
	if entered {
		guard = func(network, address string, conn syscall.RawConn) error {
			err := a.Connecting.guard(network, address, conn)
			outside.Store(outside.Load() || err != nil)
			return err
		}
	}
	was, err := a.Access.Accounts.GetAccount(ctx, accountID)
	if err != nil {
		return err
	}
	env := a.Connecting.env(v, guard)
	if !was.Deleted {
		env.Workspace = was.WorkspaceID.String() // so that Check finds loops
	}
	found, err := c.Check(ctx, env)
	switch {
	case err != nil && outside.Load():
		return adapter.Errorf(
			adapter.Invalid,
			"%s was entered on a connect page and is in a network where such gateways are not allowed: "+
				"allow the network with --allow-gateway-prefix, as for serve, or set another address with --url or --broker",
			c.Address(),
		)
	case err != nil:
		return err
	case entered:
		if err := a.Access.Accounts.RecordGateway(audit.Unasked(ctx), accountID, found.Gateway, true); err != nil {
			return err
		}
	}
	config, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode the connection of the account: %w", err)
	}
	return a.Access.Accounts.ChangeAccount(ctx, accountID, account.Change{
		DisplayName: name,
		Address:     c.Address(),
		Gateway:     found.Gateway,
		Config:      config,
		Secrets:     secretsOf(found),
	})
}
