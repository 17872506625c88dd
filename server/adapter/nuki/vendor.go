package nuki

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/oauth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/subscription"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// Name is the name of the adapter, and the account type of its accounts.
const Name = "nuki"

// defaultURL is the URL of the Nuki Web API.
const defaultURL = "https://api.nuki.io"

// callsPerHour is chosen by this package, because Nuki publishes no limit.
const callsPerHour = 3600

// Vendor describes the Nuki Web API.
func Vendor() adapter.Vendor { return VendorAt(defaultURL) }

// VendorAt is Vendor for another URL of the API, for tests.
func VendorAt(base string) adapter.Vendor {
	return adapter.Vendor{
		Adapter:     Name,
		Name:        Name,
		DisplayName: "Nuki",
		Usage:       "connect a Nuki Web account",
		Categories:  []string{adapter.CategoryBeta, adapter.CategorySmartlocks},
		Accepts:     []string{adapter.Locks},
		Can:         capability.Set{Lock: true, Unlock: true, AutoLock: true, OnlineCodes: true},
		Settings: []adapter.Setting{
			{Name: "api-token", Kind: adapter.SecretSetting, Usage: "API token of Nuki Web"},
		},
		Login: &adapter.Login{
			Fields: []login.Field{{
				Name:         "api_token",
				Label:        "API token of Nuki Web",
				Prompt:       "Enter the API token of Nuki Web.",
				Kind:         "password",
				Help:         "Create a token at web.nuki.io under API, with the rights of smart locks.",
				Autocomplete: "off",
			}},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				return &Connection{base: base, Token: strings.TrimSpace(entered["api_token"])}, nil
			},
			SecretField: "api_token",
			Refused:     "Nuki rejects this API token. Create one at web.nuki.io under API, and copy all of it.",
			OAuth:       oauthAt(base),
		},
		New:          func() adapter.Connection { return &Connection{base: base} },
		Pace:         adapter.Pace{List: 5 * time.Minute},
		CallsPerHour: callsPerHour,
		Verification: adapter.Verification{Level: adapter.VerifiedDocumentation, Date: "2026-11"},
	}
}

// oauthAt returns the login on Nuki's pages.
func oauthAt(base string) *adapter.OAuth {
	return &adapter.OAuth{
		AuthorizeURL: base + "/oauth/authorize",
		TokenURL:     base + "/oauth/token",
		Scopes: []string{
			"smartlock", "smartlock.auth", "smartlock.action", "smartlock.config", "smartlock.log", "webhook.decentral",
		},
		Connect: func(tokens adapter.Tokens) (adapter.Connection, error) {
			return &Connection{base: base, OAuth: true, tokens: tokens}, nil
		},
	}
}

// Connection connects to one Nuki Web account.
type Connection struct {
	base   string
	tokens adapter.Tokens // of a login that is being checked

	// Timing is for tests.
	Timing Timing `json:"-"`

	// Token is an API token; empty with OAuth. All fields are always stored, because a login replaces a former one.
	Token string `json:"token"`
	// OAuth means that the account was connected by a login on Nuki's pages.
	OAuth bool `json:"oauth"`
	// AccountID is the account of the token, which Check finds.
	AccountID int64 `json:"account_id"`
}

// Adapter implements adapter.Connection.
func (Connection) Adapter() string { return Name }

// Address implements adapter.Connection.
func (c Connection) Address() string {
	if c.AccountID == 0 {
		return c.base
	}
	return c.base + " account " + strconv.FormatInt(c.AccountID, 10)
}

// Apply implements adapter.Connection.
func (c *Connection) Apply(set adapter.Settings) error {
	was := c.Token
	set.Set("api-token", &c.Token)
	if c.Token = strings.TrimSpace(c.Token); c.Token != was {
		c.OAuth, c.AccountID = false, 0 // Check finds the account
	}
	if c.Token == "" && !c.OAuth {
		return errors.New(
			"the account needs an API token of Nuki Web: set --api-token-file or DEVICEACCESS_GATEWAY_API_TOKEN",
		)
	}
	return nil
}

// Check implements adapter.Connection. Its call lists the locks, which name the account.
func (c *Connection) Check(ctx context.Context, env adapter.Env) (found adapter.Checked, err error) {
	config := c.config(env)
	switch {
	case c.OAuth && c.tokens.Access != "":
		config.Token, config.Tokens = c.tokens.Access, nil
		if found.Credentials, err = json.Marshal(c.tokens); err != nil {
			return found, adapter.Errorf(adapter.Transient, "the tokens cannot be stored")
		}
	case c.OAuth && env.Secrets == nil:
		return found, adapter.Errorf(adapter.AuthRevoked, "log in again on a connect page")
	}
	a := New(config)
	defer a.Close() //nolint:errcheck // nothing was opened
	list, err := a.listLocks(ctx)
	if err != nil {
		return adapter.Checked{}, err
	}
	if len(list) == 0 {
		return adapter.Checked{}, adapter.Errorf(adapter.Invalid, "the account has no lock in Nuki Web: activate Nuki "+
			"Web for the lock in the Nuki app, then connect again")
	}
	c.AccountID = slices.MinFunc(
		list,
		func(a, b wireLock) int { return cmp.Compare(a.AccountID, b.AccountID) },
	).AccountID
	if c.AccountID <= 0 {
		return adapter.Checked{}, adapter.Errorf(adapter.Transient, "Nuki does not name the account of the locks")
	}
	found.Username = strconv.FormatInt(c.AccountID, 10)
	found.DisplayName = "Nuki account " + found.Username
	found.Provider = Name
	return found, nil
}

// Open implements adapter.DeviceConnection. Pushes need Nuki's Advanced API, which only logins on its pages have.
func (c *Connection) Open(_ context.Context, env adapter.Env) (adapter.Adapter, error) {
	config := c.config(env)
	if c.OAuth && env.PushURLs != nil {
		config.PushURLs = subscription.Reachable(c.base, env.PushURLs)
	}
	a := New(config)
	a.Listen()
	return a, nil
}

func (c *Connection) config(env adapter.Env) Config {
	config := Config{
		BaseURL: c.base,
		Token:   c.Token,
		HTTP:    vendorhttp.New(env),
		Budget:  env.Budget,
		Secrets: env.Secrets,
		Log:     env.Log,
		Timing:  c.Timing,
	}
	if c.OAuth {
		config.Token = ""
		config.Tokens = &adapter.TokenSource{Secrets: env.Secrets, Refresh: oauth.Refresh(oauthAt(c.base), env)}
	}
	return config
}
