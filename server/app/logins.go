package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/connectpage"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// Connecting says what people can connect on connect pages in addition to simulated vendors.
type Connecting struct {
	// Gateways lets people connect their own gateways in workspaces that are not sandboxes.
	Gateways bool
	// AllowPrefixes are the networks of such gateways in addition to public addresses.
	AllowPrefixes []netip.Prefix
}

// guard rejects addresses that are neither public nor allowed, so that the URL of a webview gives no access to the
// server's own network.
func (c Connecting) guard(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if (webhook.Options{AllowPrefixes: c.AllowPrefixes}).Refuses(at.Addr()) {
		return errNotAllowed
	}
	return nil
}

var errNotAllowed = adapter.Errorf(adapter.Invalid, "this server connects to no gateway at that address")

// logins implements connectpage.Vendors: the vendors that people can log in to.
type logins struct {
	Connecting
	sandbox *Sandbox
	cloud   string // where the simulated cloud is
	http    *http.Client
}

func newLogins(s *Sandbox, url string, c Connecting) *logins {
	return &logins{
		Connecting: c,
		sandbox:    s,
		cloud:      s.cloudURL(url),
		http:       &http.Client{Timeout: 10 * time.Second},
	}
}

// providers returns what people can log in to in a workspace: simulated vendors in a sandbox, else gateways.
func (c Connecting) providers(w account.Workspace) (out []account.Provider) {
	add := func(capabilities []string, names ...string) {
		for _, name := range names {
			_, categories := rest.Provider(name)
			out = append(out, account.Provider{Name: name, Categories: categories, Capabilities: capabilities})
		}
	}
	switch {
	case w.IsSandbox:
		add([]string{"lock"}, append(sandbox.Profiles(), sandbox.Everything)...)
		add([]string{"thermostat"}, sandbox.ThermostatProfiles()...)
		add([]string{"noise_sensor"}, sandbox.NoiseProfiles()...)
		add([]string{account.AccessControl}, sandbox.AccessSystems)
	case c.Gateways:
		add(gatewayKinds, "zigbee2mqtt", "zwave_js")
	}
	return out
}

// Vendor returns the login form of a vendor, and whether the vendor is known.
func (l *logins) Vendor(name string) (connectpage.Vendor, bool) {
	display, _ := rest.Provider(name)
	v := connectpage.Vendor{Name: name, DisplayName: display}
	switch {
	case name == "zwave_js":
		v.Fields = []connectpage.Field{
			{
				Name:        "url",
				Label:       "Address of the zwave-js-server",
				Kind:        "url",
				Placeholder: "wss://gateway.example.com",
				Help:        "Z-Wave JS UI and Home Assistant run one. The address starts with ws:// or wss://.",
			},
			{
				Name:         "username",
				Label:        "User at the proxy in front of the server",
				Kind:         "text",
				Autocomplete: "username",
				Optional:     true,
			},
			{
				Name:         "password",
				Label:        "Password",
				Kind:         "password",
				Autocomplete: "current-password",
				Optional:     true,
			},
		}
	case name == "zigbee2mqtt":
		v.Fields = []connectpage.Field{
			{
				Name:        "broker",
				Label:       "Address of the MQTT broker",
				Kind:        "url",
				Placeholder: "mqtts://broker.example.com:8883",
				Help:        "The address starts with mqtts://, mqtt://, wss://, or ws://. The broker must support MQTT 5.",
			},
			{
				Name:  "topic",
				Label: "Topic of Zigbee2MQTT",
				Kind:  "text",
				Value: zigbee2mqtt.DefaultTopic,
				Help:  "The base_topic in its configuration.",
			},
			{
				Name:         "username",
				Label:        "User at the broker",
				Kind:         "text",
				Autocomplete: "username",
				Optional:     true,
			},
			{
				Name:         "password",
				Label:        "Password",
				Kind:         "password",
				Autocomplete: "current-password",
				Optional:     true,
			},
		}
	case name == sandbox.Everything || name == sandbox.AccessSystems || sandbox.HasProfile(name):
		switch {
		case name == sandbox.AccessSystems:
			v.Products = "access systems"
		case slices.Contains(sandbox.ThermostatProfiles(), name):
			v.Products = "thermostats"
		case slices.Contains(sandbox.NoiseProfiles(), name):
			v.Products = "noise sensors"
		}
		v.Fields = []connectpage.Field{
			{
				Name:         "email",
				Label:        "Email address",
				Kind:         "email",
				Autocomplete: "username",
			},
			{
				Name:         "password",
				Label:        "Password",
				Kind:         "password",
				Autocomplete: "current-password",
			},
		}
		v.Samples = []connectpage.Sample{
			{Label: "Email address", Value: sandbox.People[0]},
			{Label: "Password", Value: sandbox.Password},
		}
	default:
		return v, false
	}
	return v, true
}

// LogIn tries a login and returns the account to create. It returns a *connectpage.Refusal if the login fails.
func (l *logins) LogIn(
	ctx context.Context,
	in account.Workspace,
	vendor string,
	entered map[string]string,
) (account.NewAccount, error) {
	switch {
	case in.IsSandbox:
		return l.logInToSandbox(ctx, in, vendor, entered)
	case !l.Gateways:
		return account.NewAccount{}, fmt.Errorf("logins to %s are not enabled", vendor)
	case vendor == "zwave_js" && entered["username"] == "" && entered["password"] != "":
		return account.NewAccount{}, &connectpage.Refusal{
			Field:   "username",
			Message: "Enter the user, too: a password needs a user.",
		}
	case vendor == "zwave_js":
		c := &ZWaveJS{
			Config: zwavejs.Config{
				URL:     withUser(entered["url"], entered["username"], entered["password"]),
				Control: l.guard,
			},
			pageConnection: fromPage,
		}
		var stranger Connection
		if _, password, _ := userOf(c.URL); password != "" {
			stranger = &ZWaveJS{Config: zwavejs.Config{URL: withStranger(c.URL), Control: l.guard}}
		}
		return l.logInToGateway(ctx, in, "url", c, stranger)
	default:
		c := &Zigbee2MQTT{Config: zigbee2mqtt.Config{
			Broker:   entered["broker"],
			Topic:    entered["topic"],
			Username: entered["username"],
			Password: entered["password"],
			Control:  l.guard,
		}, pageConnection: fromPage}
		var stranger Connection
		if c.Password != "" {
			other := &Zigbee2MQTT{Config: c.Config}
			other.Password = rand.Text()
			stranger = other
		}
		return l.logInToGateway(ctx, in, "broker", c, stranger)
	}
}

// logInToSandbox logs in to the simulated cloud like to a vendor's cloud.
func (l *logins) logInToSandbox(
	ctx context.Context,
	in account.Workspace,
	vendor string,
	entered map[string]string,
) (n account.NewAccount, err error) {
	partner := in.ID.String()
	body, err := json.Marshal(
		map[string]string{
			"partner":  partner,
			"provider": vendor,
			"email":    entered["email"],
			"password": entered["password"],
		},
	)
	if err != nil {
		return n, fmt.Errorf("encode the login: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.cloud+"/login", bytes.NewReader(body))
	if err != nil {
		return n, fmt.Errorf("ask the simulated cloud: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+l.sandbox.tokens.Partner(partner))
	res, err := l.http.Do(req)
	if err != nil {
		return n, fmt.Errorf("ask the simulated cloud: %w", err)
	}
	defer res.Body.Close()
	var out struct {
		Account string `json:"account"`
		Email   string `json:"email"`
		Code    string `json:"error_code"`
		Message string `json:"message"`
	}
	err = json.NewDecoder(res.Body).Decode(&out)
	switch {
	case err != nil:
		return n, fmt.Errorf("read the response of the simulated cloud: %w", err)
	case out.Code == "LOGIN_REFUSED":
		return n, &connectpage.Refusal{Field: "password", Message: out.Message}
	case res.StatusCode != http.StatusOK:
		return n, fmt.Errorf("the simulated cloud answers %s: %s", res.Status, out.Message)
	}
	display, _ := rest.Provider(vendor)
	n = account.NewAccount{
		WorkspaceID: in.ID,
		Adapter:     account.SandboxAdapter,
		DisplayName: display + " of " + domain.CleanName(out.Email),
		Address:     out.Account,
		User:        account.UserIdentifier{Email: out.Email},
	}
	c := sandboxConfig{Key: out.Account}
	switch vendor {
	case sandbox.AccessSystems:
		n.Adapter, n.Capabilities = account.SandboxAccessAdapter, []string{account.AccessControl}
	case sandbox.Everything:
		c.Profiles, c.LocksPerProfile = l.sandbox.opt.Profiles, l.sandbox.opt.LocksPerProfile
	default:
		n.Provider, c.Profiles = vendor, []string{vendor}
	}
	if n.Config, err = json.Marshal(c); err != nil {
		return n, fmt.Errorf("encode the connection of the account: %w", err)
	}
	return n, nil
}

// pageConnection marks a connection from a connect page. The server dials its address with Connecting.guard until an operator
// sets another address.
type pageConnection struct {
	FromWebview bool `json:"from_webview,omitempty"`
}

var fromPage = pageConnection{FromWebview: true}

// logInToGateway connects to the gateway once. field is the form field of its address. stranger is the same connection
// with a wrong password, or nil if no password was entered. The login proves control of the gateway only if the gateway
// rejects stranger. A login without a password proves nothing, since many gateways accept connections without a user.
func (l *logins) logInToGateway(
	ctx context.Context,
	in account.Workspace,
	field string,
	c, stranger Connection,
) (n account.NewAccount, err error) {
	gateway, err := c.Check(ctx)
	e := adapter.AsError(err)
	switch {
	case err == nil:
	case e != nil && e.Class == adapter.AuthRevoked:
		return n, &connectpage.Refusal{Field: "password", Message: "The gateway rejects this user and password."}
	case e != nil && e.Class == adapter.Invalid:
		return n, &connectpage.Refusal{Field: field, Message: sentence(e.Message)}
	default: // details would reveal what else is at the address
		return n, &connectpage.Refusal{
			Field:   field,
			Message: "No gateway answers at this address. Check the address, and whether it can be reached from outside.",
		}
	}
	config, err := json.Marshal(c)
	if err != nil {
		return n, fmt.Errorf("encode the connection of the account: %w", err)
	}
	return account.NewAccount{
		WorkspaceID: in.ID,
		Adapter:     c.Adapter(),
		DisplayName: c.Adapter() + " at " + c.Address(),
		Address:     c.Address(),
		Gateway:     gateway,
		Config:      config,
		Unverified:  stranger == nil || !refuses(ctx, stranger),
	}, nil
}

func refuses(ctx context.Context, c Connection) bool {
	_, err := c.Check(ctx)
	e := adapter.AsError(err)
	return e != nil && e.Class == adapter.AuthRevoked
}

// withUser adds a user and password to a URL. It returns text unchanged if it is not a URL.
func withUser(text, user, password string) string {
	u, err := url.Parse(text)
	if err != nil || user == "" {
		return text
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// userOf returns the user and password in a URL, and whether it has a user.
func userOf(text string) (user, password string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return "", "", false
	}
	password, _ = u.User.Password()
	return u.User.Username(), password, true
}

// withStranger replaces the password in a URL with a random one.
func withStranger(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	u.User = url.UserPassword(u.User.Username(), rand.Text())
	return u.String()
}

// sentence makes a sentence of an error message.
func sentence(message string) string {
	return strings.ToUpper(message[:1]) + message[1:] + "."
}
