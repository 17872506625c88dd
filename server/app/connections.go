package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// Connection is the address and the credentials of a vendor or a gateway. Its JSON is the configuration of an account.
type Connection interface {
	// Adapter returns the name of the adapter, such as "zigbee2mqtt".
	Adapter() string
	// Address returns the address without credentials, such as "mqtts://broker:8883 zigbee2mqtt".
	Address() string
	// Check connects once. It returns the identity that the gateway reports, which does not depend on its address, or
	// "" for a cloud. Its error is an *adapter.Error that says what to do.
	Check(ctx context.Context) (gateway string, err error)
}

// connections has a constructor of an empty Connection for each adapter that commands can connect.
var connections = map[string]func() Connection{
	"devicecloud": func() Connection { return &DeviceCloud{} },
	"zwavejs":     func() Connection { return &ZWaveJS{} },
	"zigbee2mqtt": func() Connection { return &Zigbee2MQTT{} },
	"accesscloud": func() Connection { return &AccessCloud{} },
}

// DeviceCloud connects to a vendor's cloud that implements the device API of package sandbox.
type DeviceCloud struct {
	// BaseURL is the URL of the API.
	BaseURL string `json:"base_url"`
	// Token is the bearer token of the account.
	Token string `json:"token"`
	// Provider is the device_provider_name of locks that do not report one.
	Provider string `json:"provider,omitempty"`
}

// Adapter implements Connection.
func (DeviceCloud) Adapter() string { return "devicecloud" }

// Address implements Connection.
func (c DeviceCloud) Address() string { return c.BaseURL }

// Takes returns the capabilities that the account accepts.
func (DeviceCloud) Takes() []string { return []string{"lock", "thermostat"} }

// Check implements Connection.
func (c DeviceCloud) Check(ctx context.Context) (string, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return "", adapter.Errorf(
			adapter.Invalid,
			"the cloud's URL must look like https://locks.example.com/api and have no credentials",
		)
	}
	a := devicecloud.New(devicecloud.Config{BaseURL: c.BaseURL, Token: c.Token})
	defer a.Close() //nolint:errcheck // nothing was opened
	_, err = a.Devices(ctx)
	return "", err
}

// AccessCloud connects to a vendor's cloud that implements the access system API of package sandbox.
type AccessCloud struct {
	// BaseURL is the URL of the API.
	BaseURL string `json:"base_url"`
	// Token is the bearer token of the account.
	Token string `json:"token"`
}

// Adapter implements Connection.
func (AccessCloud) Adapter() string { return "accesscloud" }

// Address implements Connection.
func (c AccessCloud) Address() string { return c.BaseURL }

// Takes returns the capabilities that the account accepts.
func (AccessCloud) Takes() []string { return []string{account.AccessControl} }

// Check implements Connection.
func (c AccessCloud) Check(ctx context.Context) (string, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return "", adapter.Errorf(
			adapter.Invalid,
			"the cloud's URL must look like https://access.example.com/api and have no credentials",
		)
	}
	a := accesscloud.New(accesscloud.Config{BaseURL: c.BaseURL, Token: c.Token})
	defer a.Close() //nolint:errcheck // nothing was opened
	_, err = a.Systems(ctx)
	return "", err
}

// control accepts or rejects an address before it is dialed, like Control of net.Dialer.
type control = func(network, address string, c syscall.RawConn) error

// ZWaveJS connects to a zwave-js-server.
type ZWaveJS struct {
	zwavejs.Config
	pageConnection
}

// gatewayKinds are the kinds of devices that are taken from a gateway.
var gatewayKinds = []string{"lock", "thermostat"}

// Adapter implements Connection.
func (ZWaveJS) Adapter() string { return "zwavejs" }

// Takes returns the capabilities that the account accepts.
func (ZWaveJS) Takes() []string { return gatewayKinds }

// dialWithin applies guard to an address from a connect page, and reports whether the address is from one.
func (c *ZWaveJS) dialWithin(guard control) (entered bool) {
	if c.FromWebview {
		c.Control = guard
	}
	return c.FromWebview
}

// Check implements Connection.
func (c ZWaveJS) Check(ctx context.Context) (gateway string, err error) {
	c.CheckGateway = recordGateway(&gateway)
	err = zwavejs.Check(ctx, c.Config)
	return gateway, err
}

// recordGateway returns a Met callback that accepts every gateway and stores its identity to *which.
func recordGateway(which *string) func(context.Context, string) error {
	return func(_ context.Context, gateway string) error {
		*which = gateway
		return nil
	}
}

// Address implements Connection. It leaves out the user and password of a proxy. It keeps the path, since one proxy may
// have several gateways.
func (c ZWaveJS) Address() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	host := adapter.NormalizeHost(u.Hostname())
	switch port := u.Port(); {
	case port != "" && port != map[string]string{"ws": "80", "wss": "443"}[u.Scheme]:
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + strings.TrimRight(u.Path, "/")
}

// Zigbee2MQTT connects to Zigbee2MQTT through its MQTT broker.
type Zigbee2MQTT struct {
	zigbee2mqtt.Config
	pageConnection
}

// Adapter implements Connection.
func (Zigbee2MQTT) Adapter() string { return "zigbee2mqtt" }

// Address implements Connection.
func (c Zigbee2MQTT) Address() string { return c.Config.Address() }

// Takes returns the capabilities that the account accepts.
func (Zigbee2MQTT) Takes() []string { return gatewayKinds }

func (c *Zigbee2MQTT) dialWithin(guard control) (entered bool) {
	if c.FromWebview {
		c.Control = guard
	}
	return c.FromWebview
}

// Check implements Connection.
func (c Zigbee2MQTT) Check(ctx context.Context) (gateway string, err error) {
	c.CheckGateway = recordGateway(&gateway)
	err = zigbee2mqtt.Check(ctx, c.Config)
	return gateway, err
}

// ConnectedAccount is an account and its connection.
type ConnectedAccount struct {
	account.Summary
	// Connection is nil for simulated accounts.
	Connection Connection
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
		if out[i].Connection, err = connection(r.Account); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// connection returns the connection of an account, or nil for a simulated account.
func connection(account account.Account) (Connection, error) {
	blank, ok := connections[account.Adapter]
	if !ok {
		return nil, nil
	}
	c := blank()
	if err := json.Unmarshal(account.Config, c); err != nil {
		return nil, fmt.Errorf("read the connection of account %s: its stored configuration is invalid", account.ID)
	}
	return c, nil
}

// Connect checks a connection and creates an account with it. The server then discovers its devices. Connect returns an
// *adapter.Error if the check fails, and a *domain.Error if the address or gateway is already connected.
func (a *Admin) Connect(ctx context.Context, workspace uuid.UUID, name string, c Connection) (uuid.UUID, error) {
	if err := a.Access.Accounts.AddressConnected(ctx, c.Adapter(), c.Address(), uuid.Nil); err != nil {
		return uuid.Nil, err
	}
	gateway, err := c.Check(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return uuid.Nil, fmt.Errorf("encode the connection of the account: %w", err)
	}
	n := account.NewAccount{
		WorkspaceID: workspace,
		Adapter:     c.Adapter(),
		DisplayName: name,
		Address:     c.Address(),
		Gateway:     gateway,
		Config:      config,
	}
	if c, ok := c.(interface{ Takes() []string }); ok {
		n.Capabilities = c.Takes()
	}
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
func (a *Admin) Reconnect(ctx context.Context, accountID uuid.UUID, name string, c Connection) error {
	if err := a.Access.Accounts.AddressConnected(ctx, c.Adapter(), c.Address(), accountID); err != nil {
		return err
	}
	var outside atomic.Bool
	entered := false
	if c, ok := c.(interface{ dialWithin(control) bool }); ok {
		entered = c.dialWithin(func(network, address string, conn syscall.RawConn) error {
			err := a.Connecting.guard(network, address, conn)
			outside.Store(outside.Load() || err != nil)
			return err
		})
	}
	gateway, err := c.Check(ctx)
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
		if err := a.Access.Accounts.RecordGateway(audit.Unasked(ctx), accountID, gateway, true); err != nil {
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
		Gateway:     gateway,
		Config:      config,
	})
}
