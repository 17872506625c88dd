package devicecloud

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Vendor describes the clouds that implement the device API of package sandbox.
func Vendor() adapter.Vendor {
	return adapter.Vendor{
		Adapter:     "devicecloud",
		Name:        "device_cloud",
		DisplayName: "Device cloud",
		Usage:       "connect a vendor's cloud that implements the device-cloud API",
		Protocol:    true,
		Categories:  []string{adapter.CategoryStable, adapter.CategorySmartlocks},
		Accepts:     []string{adapter.Locks, adapter.Thermostats},
		Settings: []adapter.Setting{
			{Name: "url", Required: true, Usage: "connect to the cloud at `URL`"},
			{Name: "token", Kind: adapter.SecretSetting, Usage: "account's token"},
			{Name: "provider", Usage: "use `NAME` as the device_provider_name of locks that do not report one"},
		},
		New: func() adapter.Connection { return &Connection{} },
		Verification: adapter.Verification{
			Level: adapter.VerifiedSimulation,
			With:  "the simulated clouds of this server",
		},
	}
}

// Connection connects to a vendor's cloud that implements the device API of package sandbox.
type Connection struct {
	// BaseURL is the URL of the API.
	BaseURL string `json:"base_url"`
	// Token is the bearer token of the account.
	Token string `json:"token"`
	// Provider is the device_provider_name of locks that do not report one.
	Provider string `json:"provider,omitempty"`
}

// Adapter implements adapter.Connection.
func (Connection) Adapter() string { return "devicecloud" }

// Address implements adapter.Connection.
func (c Connection) Address() string { return c.BaseURL }

// Apply implements adapter.Connection.
func (c *Connection) Apply(set adapter.Settings) error {
	set.Set("url", &c.BaseURL)
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	set.Set("provider", &c.Provider)
	if set.Set("token", &c.Token); c.Token == "" {
		return errors.New("the cloud needs a token: set --token-file or DEVICEACCESS_GATEWAY_TOKEN")
	}
	return nil
}

// Check implements adapter.Connection.
func (c Connection) Check(ctx context.Context, env adapter.Env) (adapter.Checked, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return adapter.Checked{}, adapter.Errorf(
			adapter.Invalid,
			"the cloud's URL must look like https://locks.example.com/api and have no credentials",
		)
	}
	a := New(Config{BaseURL: c.BaseURL, Token: c.Token, Transport: env.Transport})
	defer a.Close() //nolint:errcheck // nothing was opened
	_, err = a.Devices(ctx)
	return adapter.Checked{}, err
}

// Open implements adapter.DeviceConnection. Until the adapter is subscribed, the server polls the devices.
func (c Connection) Open(ctx context.Context, env adapter.Env) (adapter.Adapter, error) {
	config := Config{
		BaseURL:   c.BaseURL,
		Token:     c.Token,
		Provider:  c.Provider,
		Transport: env.Transport,
		Log:       env.Log,
	}
	if env.PushURLs == nil {
		return New(config), nil
	}
	urls, err := env.PushURLs(ctx)
	if err != nil {
		return nil, err
	}
	config.PushURL, config.OtherPushURLs = urls[0], urls[1:]
	config.Outdated = func() bool {
		now, err := env.PushURLs(context.Background())
		return err == nil && now[0] != urls[0]
	}
	a := New(config)
	go a.StaySubscribed(context.Background()) // it ends with Close
	return a, nil
}
