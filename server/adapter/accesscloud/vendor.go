package accesscloud

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Vendor describes the clouds of access systems that implement the API of package sandbox.
func Vendor() adapter.Vendor {
	return adapter.Vendor{
		Adapter:     "accesscloud",
		Name:        "access_cloud",
		DisplayName: "Access system",
		Usage:       "connect a vendor's cloud of access systems that implements the API of the simulated one",
		Protocol:    true,
		Categories:  []string{adapter.CategoryStable, adapter.CategoryAccessSystems},
		Accepts:     []string{adapter.AccessControl},
		Settings: []adapter.Setting{
			{Name: "url", Required: true, Usage: "connect to the cloud at `URL`"},
			{Name: "token", Kind: adapter.SecretSetting, Usage: "account's token"},
		},
		New: func() adapter.Connection { return &Connection{} },
		Verification: adapter.Verification{
			Level: adapter.VerifiedSimulation,
			With:  "the simulated access systems of this server",
		},
	}
}

// Connection connects to a vendor's cloud that implements the access system API of package sandbox.
type Connection struct {
	// BaseURL is the URL of the API.
	BaseURL string `json:"base_url"`
	// Token is the bearer token of the account.
	Token string `json:"token"`
}

// Adapter implements adapter.Connection.
func (Connection) Adapter() string { return "accesscloud" }

// Address implements adapter.Connection.
func (c Connection) Address() string { return c.BaseURL }

// Apply implements adapter.Connection.
func (c *Connection) Apply(set adapter.Settings) error {
	set.Set("url", &c.BaseURL)
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
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
			"the cloud's URL must look like https://access.example.com/api and have no credentials",
		)
	}
	a := New(Config{BaseURL: c.BaseURL, Token: c.Token, Transport: env.Transport})
	defer a.Close() //nolint:errcheck // nothing was opened
	_, err = a.Systems(ctx)
	return adapter.Checked{}, err
}

// OpenSystems implements adapter.SystemConnection.
func (c Connection) OpenSystems(_ context.Context, env adapter.Env) (adapter.AccessSystems, error) {
	return New(Config{BaseURL: c.BaseURL, Token: c.Token, Transport: env.Transport, Log: env.Log}), nil
}
