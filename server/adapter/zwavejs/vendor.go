package zwavejs

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// Vendor describes Z-Wave JS.
func Vendor() adapter.Vendor {
	return adapter.Vendor{
		Adapter:       "zwavejs",
		Name:          "zwave_js",
		DisplayName:   "Z-Wave JS",
		Usage:         "connect a zwave-js-server, such as that of Z-Wave JS UI or Home Assistant",
		EntersAddress: true,
		Categories:    []string{adapter.CategoryStable, adapter.CategorySmartlocks},
		Accepts:       []string{adapter.Locks, adapter.Thermostats},
		Can:           capability.Set{OnlineCodes: true, Lock: true, Unlock: true},
		Settings: []adapter.Setting{
			{Name: "url", Required: true, Usage: "connect to `URL`, such as ws://host:3000"},
			{Name: "username", Usage: "log in as `USER` at the proxy in front of the server"},
			{Name: "password", Kind: adapter.SecretSetting, Usage: "password"},
			{Name: "ca", Kind: adapter.FileSetting, Usage: adapter.CAUsage},
			{
				Name: "time-zone",
				Usage: "interpret the locks' clocks in the time zone `NAME`, such as Europe/Berlin; required for time " +
					"frames that locks keep themselves",
			},
		},
		Login: &adapter.Login{
			Fields:       fields(),
			Connect:      connect,
			AddressField: "url",
			SecretField:  "password",
			Refused:      "The gateway rejects this user and password.",
		},
		New: func() adapter.Connection { return &Connection{} },
		Verification: adapter.Verification{
			Level: adapter.VerifiedProgram,
			With:  "zwave-js-server with simulated locks",
		},
	}
}

func fields() []login.Field {
	return []login.Field{
		{
			Name:        "url",
			Label:       "Address of the zwave-js-server",
			Prompt:      "Enter the address of the zwave-js-server.",
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
}

// connect returns the connection that was entered on a page.
func connect(entered map[string]string) (adapter.Connection, error) {
	if entered["username"] == "" && entered["password"] != "" {
		return nil, &login.Refusal{Field: "username", Message: "Enter the user, too. A password needs a user."}
	}
	return &Connection{
		Config: Config{URL: withUser(entered["url"], entered["username"], entered["password"])},
	}, nil
}

// Connection connects to a zwave-js-server.
type Connection struct {
	Config
	adapter.PageOrigin
}

// Adapter implements adapter.Connection.
func (Connection) Adapter() string { return "zwavejs" }

// Address implements adapter.Connection. It leaves out the user and password of a proxy. It keeps the path, since one
// proxy may have several gateways.
func (c Connection) Address() string {
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

// Apply implements adapter.Connection.
func (c *Connection) Apply(set adapter.Settings) error {
	text, isSet := set["url"]
	if !isSet {
		text = c.URL
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("--url: not a URL such as ws://host:3000")
	case isSet && u.User != nil:
		return errors.New("--url: other users can see a process's flags; set the user with --username and the " +
			"password with --password-file")
	case isSet:
		c.FromWebview = false
	}
	user, password, _ := userOf(c.URL)
	if set.Set("username", &user); user == "" {
		password = ""
	}
	if set.Set("password", &password); user == "" && password != "" {
		return errors.New("a password needs a user: set --username")
	}
	u.User = nil
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	c.URL = u.String()
	set.Set("time-zone", &c.TimeZone)
	set.Set("ca", &c.CA)
	return nil
}

// Check implements adapter.Connection.
func (c Connection) Check(ctx context.Context, env adapter.Env) (found adapter.Checked, err error) {
	c.Control = env.Guard
	c.CheckGateway = found.RecordGateway
	err = Check(ctx, c.Config)
	return found, err
}

// Open implements adapter.DeviceConnection.
func (c Connection) Open(_ context.Context, env adapter.Env) (adapter.Adapter, error) {
	c.Log, c.Control, c.CheckGateway = env.Log, env.Guard, env.CheckGateway
	return New(c.Config)
}

// Stranger implements adapter.Stranger.
func (c Connection) Stranger() adapter.Connection {
	if _, password, _ := userOf(c.URL); password == "" {
		return nil
	}
	c.URL = withStranger(c.URL)
	return &c
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
