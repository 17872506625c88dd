package nuki

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
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
				Kind:         "password",
				Help:         "Create a token at web.nuki.io under API, with the rights of smart locks.",
				Autocomplete: "off",
			}},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				return &Connection{base: base, Token: strings.TrimSpace(entered["api_token"])}, nil
			},
			SecretField: "api_token",
			Refused:     "Nuki rejects this API token. Make one at web.nuki.io under API, and copy all of it.",
			OAuth: &adapter.OAuth{
				AuthorizeURL: base + "/oauth/authorize",
				TokenURL:     base + "/oauth/token",
				Scopes: []string{
					"smartlock", "smartlock.auth", "smartlock.action", "smartlock.config", "smartlock.log",
					"webhook.decentral",
				},
				Connect: func(tokens adapter.Tokens) (adapter.Connection, error) {
					return &Connection{base: base, OAuth: true, tokens: tokens}, nil
				},
			},
		},
		New:          func() adapter.Connection { return &Connection{base: base} },
		Pace:         adapter.Pace{List: 5 * time.Minute},
		CallsPerHour: callsPerHour,
		Verification: adapter.Verification{Level: adapter.VerifiedDocumentation, Date: "2026-11"},
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
		config.PushURLs = c.reachable(env.PushURLs)
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
		config.Tokens = &adapter.TokenSource{Secrets: env.Secrets, Refresh: c.refresh(env, config.HTTP)}
	}
	return config
}

// reachable omits the URLs that Nuki cannot reach: it accepts only https. Then the adapter polls.
func (c *Connection) reachable(
	urls func(context.Context) ([]string, error),
) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		all, err := urls(ctx)
		if err != nil || len(all) == 0 || strings.HasPrefix(all[0], "https://") ||
			strings.HasPrefix(c.base, "http://") {
			return all, err
		}
		return nil, nil
	}
}

// refresh returns the function that requests new tokens (RFC 6749, section 6).
func (c *Connection) refresh(
	env adapter.Env, via *http.Client,
) func(context.Context, adapter.Tokens) (adapter.Tokens, error) {
	log := env.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	client := &vendorhttp.Client{
		Adapter: Name,
		Base:    c.base,
		HTTP:    via,
		Log:     log,
		Words:   []string{"oauth", "token"},
		Secret:  env.Client.Secret,
	}
	return func(ctx context.Context, old adapter.Tokens) (tokens adapter.Tokens, err error) {
		switch {
		case old.Refresh == "":
			return tokens, adapter.Errorf(adapter.AuthRevoked, "the login has ended. Log in again on a connect page.")
		case env.Client.ID == "":
			return tokens, adapter.Errorf(
				adapter.GatewayDown,
				"the operator's client of Nuki is not set on this server",
			)
		}
		var got struct {
			Access    string  `json:"access_token"`
			Refresh   string  `json:"refresh_token"`
			ExpiresIn float64 `json:"expires_in"` // seconds
		}
		call := vendorhttp.Call{
			Method: http.MethodPost,
			Path:   "/oauth/token",
			Form: url.Values{
				"grant_type":    {"refresh_token"},
				"client_id":     {env.Client.ID},
				"client_secret": {env.Client.Secret},
				"refresh_token": {old.Refresh},
			},
			Write: true,
		}
		err = client.DoJSON(ctx, call, &got, func(r vendorhttp.Response) error {
			return refusedTokens(client, call, r)
		})
		switch {
		case err != nil && adapter.ClassOf(err) == adapter.Unconfirmed: // it is no write of the caller
			return tokens, adapter.Errorf(adapter.GatewayDown, "no tokens: %s", adapter.AsError(err).Message)
		case err != nil:
			return tokens, err
		case got.Access == "":
			return tokens, adapter.Errorf(adapter.Transient, "Nuki's answer has no token")
		}
		tokens = adapter.Tokens{Access: got.Access, Refresh: got.Refresh}
		if got.ExpiresIn > 0 {
			tokens.ExpiresAt = time.Now().Add(adapter.Seconds(min(got.ExpiresIn, (24 * 365 * time.Hour).Seconds())))
		}
		return tokens, nil
	}
}

// refusedTokens returns the error of a request for tokens (RFC 6749, section 5.2).
func refusedTokens(client *vendorhttp.Client, call vendorhttp.Call, r vendorhttp.Response) error {
	var body struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(r.Data, &body) // it may be a page of a proxy
	switch {
	case body.Error == "invalid_grant":
		return adapter.Errorf(adapter.AuthRevoked, "Nuki has ended the login. Log in again on a connect page.")
	case body.Error == "invalid_client", body.Error == "unauthorized_client", r.Status == http.StatusUnauthorized:
		return adapter.Errorf(adapter.GatewayDown, "Nuki rejects the operator's client: check its id and secret")
	}
	return client.Refusal(call, r, "")
}
