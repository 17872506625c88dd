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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// Connection says how a vendor or a gateway is reached. As JSON it is what an account is kept as.
type Connection interface {
	// Adapter is the protocol, such as "zigbee2mqtt".
	Adapter() string
	// Address is what is reached, without any credential, such as "mqtts://broker:8883 zigbee2mqtt".
	Address() string
	// Check reaches it once, and says which gateway it is by what that says itself, whatever its address; empty: it is none.
	// Its error says what to do.
	Check(ctx context.Context) (gateway string, err error)
}

// connections make an empty Connection for each protocol that an account can be connected with.
var connections = map[string]func() Connection{
	"devicecloud": func() Connection { return &DeviceCloud{} },
	"zwavejs":     func() Connection { return &ZWaveJS{} },
	"zigbee2mqtt": func() Connection { return &Zigbee2MQTT{} },
	"accesscloud": func() Connection { return &AccessCloud{} },
}

// DeviceCloud is a vendor's cloud that follows the contract in package sandbox.
type DeviceCloud struct {
	BaseURL  string `json:"base_url"`
	Token    string `json:"token"`
	Provider string `json:"provider,omitempty"`
}

func (DeviceCloud) Adapter() string   { return "devicecloud" }
func (c DeviceCloud) Address() string { return c.BaseURL }

func (c DeviceCloud) Check(ctx context.Context) (string, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return "", adapter.Errorf(adapter.Invalid, "the cloud's URL must look like https://locks.example.com/api, and hold no credential")
	}
	a := devicecloud.New(devicecloud.Config{BaseURL: c.BaseURL, Token: c.Token})
	defer a.Close() //nolint:errcheck // nothing was opened
	_, err = a.Devices(ctx)
	return "", err
}

// AccessCloud is the cloud of a vendor of access systems that follows the contract in package sandbox.
type AccessCloud struct {
	BaseURL string `json:"base_url"`
	Token   string `json:"token"`
}

func (AccessCloud) Adapter() string   { return "accesscloud" }
func (c AccessCloud) Address() string { return c.BaseURL }

// Takes says what is taken from the account.
func (AccessCloud) Takes() []string { return []string{access.AccessControl} }

func (c AccessCloud) Check(ctx context.Context) (string, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return "", adapter.Errorf(adapter.Invalid, "the cloud's URL must look like https://access.example.com/api, and hold no credential")
	}
	a := accesscloud.New(accesscloud.Config{BaseURL: c.BaseURL, Token: c.Token})
	defer a.Close() //nolint:errcheck // nothing was opened
	_, err = a.Systems(ctx)
	return "", err
}

// control judges an address before it is dialled, as of net.Dialer.
type control = func(network, address string, c syscall.RawConn) error

// ZWaveJS is a zwave-js-server.
type ZWaveJS struct {
	zwavejs.Config
	guarded
}

func (ZWaveJS) Adapter() string { return "zwavejs" }

// dialWithin has guard judge the addresses of what somebody has entered on a page, and says whether that is so.
func (c *ZWaveJS) dialWithin(guard control) (entered bool) {
	if c.FromWebview {
		c.Control = guard
	}
	return c.FromWebview
}

func (c ZWaveJS) Check(ctx context.Context) (gateway string, err error) {
	c.Met = noted(&gateway)
	err = zwavejs.Check(ctx, c.Config)
	return gateway, err
}

// noted is a Met that takes any gateway, and says which it was.
func noted(which *string) func(context.Context, string) error {
	return func(_ context.Context, gateway string) error {
		*which = gateway
		return nil
	}
}

// Address leaves out the user and the password of a proxy. A path stays: behind one proxy there may be several gateways.
func (c ZWaveJS) Address() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	host := adapter.Host(u.Hostname())
	switch port := u.Port(); {
	case port != "" && port != map[string]string{"ws": "80", "wss": "443"}[u.Scheme]:
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + strings.TrimRight(u.Path, "/")
}

// Zigbee2MQTT is a Zigbee2MQTT behind an MQTT broker.
type Zigbee2MQTT struct {
	zigbee2mqtt.Config
	guarded
}

func (Zigbee2MQTT) Adapter() string   { return "zigbee2mqtt" }
func (c Zigbee2MQTT) Address() string { return c.Config.Address() }

func (c *Zigbee2MQTT) dialWithin(guard control) (entered bool) {
	if c.FromWebview {
		c.Control = guard
	}
	return c.FromWebview
}

func (c Zigbee2MQTT) Check(ctx context.Context) (gateway string, err error) {
	c.Met = noted(&gateway)
	err = zigbee2mqtt.Check(ctx, c.Config)
	return gateway, err
}

// ConnectedAccount is an account and how it is reached; Connection is nil for simulated ones.
type ConnectedAccount struct {
	access.AccountSummary
	Connection Connection
}

// Accounts lists the accounts of all workspaces.
func (a *Admin) Accounts(ctx context.Context) ([]ConnectedAccount, error) {
	rows, err := a.Access.ListAllAccounts(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]ConnectedAccount, len(rows))
	for i, r := range rows {
		out[i].AccountSummary = r
		if out[i].Connection, err = connection(r.Account); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// connection is how the account is reached, nil for those that no command makes.
func connection(account access.Account) (Connection, error) {
	blank, ok := connections[account.Adapter]
	if !ok {
		return nil, nil
	}
	c := blank()
	if err := json.Unmarshal(account.Config, c); err != nil {
		return nil, fmt.Errorf("read how account %s is reached: it is not as it was written", account.ID)
	}
	return c, nil
}

// Connect checks a connection and makes an account of it, whose devices appear by themselves.
// It fails with an *adapter.Error where it does not work, and with an *access.Error where it is connected already.
func (a *Admin) Connect(ctx context.Context, workspace uuid.UUID, name string, c Connection) (uuid.UUID, error) {
	if err := a.Access.AddressConnected(ctx, c.Adapter(), c.Address(), uuid.Nil); err != nil {
		return uuid.Nil, err
	}
	gateway, err := c.Check(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return uuid.Nil, fmt.Errorf("write how the account is reached: %w", err)
	}
	n := access.NewAccount{WorkspaceID: workspace, Adapter: c.Adapter(), DisplayName: name, Address: c.Address(), Gateway: gateway, Config: config}
	if c, ok := c.(interface{ Takes() []string }); ok {
		n.Takes = c.Takes()
	}
	return a.Access.ConnectAccount(ctx, n)
}

// ConnectSandboxAccess makes an account at the simulated vendor of access systems, in the oldest sandbox workspace.
func (a *Admin) ConnectSandboxAccess(ctx context.Context, name string, systems int) (uuid.UUID, error) {
	workspaces, err := a.Access.ListAllWorkspaces(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	i := slices.IndexFunc(workspaces, func(w access.Workspace) bool { return w.IsSandbox })
	if i < 0 {
		return uuid.Nil, errors.New("there is no sandbox workspace; `deviceaccess-server serve` makes one unless it is told not to")
	}
	config, err := json.Marshal(sandboxConfig{Key: uuid.NewString(), Systems: systems})
	if err != nil {
		return uuid.Nil, fmt.Errorf("write how the account is reached: %w", err)
	}
	return a.Access.ConnectAccount(ctx, access.NewAccount{WorkspaceID: workspaces[i].ID, Adapter: access.SandboxAccessAdapter, DisplayName: name,
		Takes: []string{access.AccessControl}, User: access.UserIdentifier{Email: sandbox.People[0]}, Config: config})
}

// Reconnect checks a connection and has the account be reached by it from now on. It fails like Connect, and where somebody
// has entered the address on a page and it leads elsewhere than Entered allows, or to the gateway of another account.
func (a *Admin) Reconnect(ctx context.Context, account uuid.UUID, name string, c Connection) error {
	if err := a.Access.AddressConnected(ctx, c.Adapter(), c.Address(), account); err != nil {
		return err
	}
	var outside atomic.Bool
	entered := false
	if c, ok := c.(interface{ dialWithin(control) bool }); ok {
		entered = c.dialWithin(func(network, address string, conn syscall.RawConn) error {
			err := a.Entered.guard(network, address, conn)
			outside.Store(outside.Load() || err != nil)
			return err
		})
	}
	gateway, err := c.Check(ctx)
	switch {
	case err != nil && outside.Load():
		return adapter.Errorf(adapter.Invalid, "somebody has entered %s on a connect page, and it leads to a network where such gateways may not be: "+
			"name that with --allow-gateway-prefix, as serve does, or give an address of your own with --url or --broker", c.Address())
	case err != nil:
		return err
	case entered:
		if err := a.Access.MeetGateway(access.Unasked(ctx), account, gateway, true); err != nil {
			return err
		}
	}
	config, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write how the account is reached: %w", err)
	}
	return a.Access.ChangeAccount(ctx, account, access.AccountChange{DisplayName: name, Address: c.Address(), Gateway: gateway, Config: config})
}
