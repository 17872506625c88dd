package tedee

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// Name is the name of the adapter, and the account type of its accounts.
const Name = "tedee"

const (
	// APIVersion is the version of the API. It works for twelve months after the next breaking version, and for another
	// six months with a lower limit of calls.
	APIVersion = "v37"
	// DocumentationDate is the date of the documentation that the adapter follows.
	DocumentationDate = "2026-05"
	// APIVersionEnds is the earliest end of APIVersion: 18 months after DocumentationDate, if the next version came then.
	APIVersionEnds = "2027-11"

	host = "https://api.tedee.com"
	// DefaultURL is the URL of the API.
	DefaultURL = host + "/api/" + APIVersion

	// CallsPerHour is the limit of all keys and applications of one user (tedee-api-doc, API rate limit).
	CallsPerHour = 700
)

// Sign-in pages of Tedee, and the prefix of the names of scopes (tedee-api-doc, how to authenticate).
const (
	signIn      = "https://tedee.b2clogin.com/tedee.onmicrosoft.com/B2C_1A_Signup_Signin_With_Kmsi"
	oauthPath   = "/oauth2/v2.0"
	scopePrefix = "https://tedee.onmicrosoft.com/api/"
)

// keyField is the field of the login.
const keyField = "personal_key"

// Vendor describes Tedee.
func Vendor() adapter.Vendor { return vendorAt("", signIn) }

// VendorAt describes a server that behaves like Tedee, such as package tedeetest.
func VendorAt(base string) adapter.Vendor { return vendorAt(base+"/api/"+APIVersion, base) }

// vendorAt returns the vendor with the URL of its API, "" for Tedee's, and that of its sign-in.
func vendorAt(api, signIn string) adapter.Vendor {
	tokenURL := signIn + oauthPath + "/token"
	return adapter.Vendor{
		Adapter:     Name,
		Name:        Name,
		DisplayName: "Tedee",
		Usage:       "connect the locks of a Tedee user",
		Categories:  []string{adapter.CategoryBeta, adapter.CategorySmartlocks},
		Accepts:     []string{adapter.Locks},
		Can:         capability.Set{Lock: true, Unlock: true, AutoLock: true, OnlineCodes: true},
		Settings: []adapter.Setting{
			{Name: "url", Default: DefaultURL, Usage: "call the API at `URL`, such as another version"},
			{Name: "personal-key", Kind: adapter.SecretSetting, Usage: "user's personal access key"},
		},
		Login: &adapter.Login{
			Fields: []login.Field{{
				Name:         keyField,
				Label:        "Personal access key",
				Prompt:       "Enter the personal access key.",
				Kind:         "password",
				Autocomplete: "off",
				Help: "Create it in the Tedee portal, with the scopes Device.ReadWrite, Lock.Operate, " +
					"DeviceActivity.Read, and Account.Read.",
			}},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				key := strings.TrimSpace(entered[keyField])
				if key == "" {
					return nil, &login.Refusal{Field: keyField, Message: "Enter the personal access key."}
				}
				return &Connection{URL: api, Key: key, tokenURL: tokenURL}, nil
			},
			SecretField: keyField,
			Refused: "Tedee rejects this key. The key may have expired, or it lacks scopes. Create another one in " +
				"the Tedee portal, under Personal access keys.",
			OAuth: &adapter.OAuth{
				AuthorizeURL: signIn + oauthPath + "/authorize",
				TokenURL:     tokenURL,
				Scopes:       scopes,
				Connect: func(tokens adapter.Tokens) (adapter.Connection, error) {
					return &Connection{URL: api, OAuth: true, tokens: tokens, tokenURL: tokenURL}, nil
				},
			},
		},
		New:          func() adapter.Connection { return &Connection{tokenURL: tokenURL} },
		Pace:         adapter.Pace{List: 5 * time.Minute, Read: time.Hour},
		CallsPerHour: CallsPerHour,
		Verification: adapter.Verification{Level: adapter.VerifiedDocumentation, Date: DocumentationDate},
	}
}

var scopes = []string{
	"offline_access",
	scopePrefix + "user_impersonation",
	scopePrefix + "Device.ReadWrite",
	scopePrefix + "Lock.Operate",
	scopePrefix + "DeviceActivity.Read",
}

// Connection connects to the account of one user. The fields of a login are always stored, because a login replaces a
// former one.
type Connection struct {
	// URL is the URL of the API; empty: DefaultURL of this program.
	URL string `json:"url,omitempty"`
	// Key is the personal access key; empty with OAuth.
	Key string `json:"personal_key"`
	// KeyEnds is when the key ends, which Check finds if the key may read it.
	KeyEnds time.Time `json:"key_ends"`
	// OAuth means that the account's tokens are secrets of the account.
	OAuth bool `json:"oauth"`
	// UserID identifies the user, which Check finds.
	UserID string `json:"user_id"`

	tokens   adapter.Tokens // of a login that is being checked
	tokenURL string
}

// Adapter implements adapter.Connection.
func (Connection) Adapter() string { return Name }

// Address implements adapter.Connection. It does not contain the version of the API.
func (c Connection) Address() string {
	at := host
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		at = u.Scheme + "://" + u.Host
	}
	if c.UserID == "" {
		return at
	}
	return at + " user " + c.UserID
}

// Apply implements adapter.Connection.
func (c *Connection) Apply(set adapter.Settings) error {
	was := *c
	set.Set("url", &c.URL)
	set.Set("personal-key", &c.Key)
	c.Key = strings.TrimSpace(c.Key)
	if strings.TrimRight(c.URL, "/") == DefaultURL {
		c.URL = "" // that of the program, so that updates change the version
	}
	if c.URL != "" {
		base, err := vendorhttp.BaseURL(c.URL)
		if err != nil {
			return fmt.Errorf("--url: %w", err)
		}
		c.URL = base
	}
	if c.Key == "" && !c.OAuth {
		return errors.New(
			"the user needs a personal access key: set --personal-key-file or DEVICEACCESS_GATEWAY_PERSONAL_KEY")
	}
	if strings.ContainsAny(c.Key, "\r\n\x00") {
		return errors.New("the personal access key must be one line")
	}
	if c.Key != was.Key {
		c.OAuth, c.tokens = false, adapter.Tokens{}
	}
	if c.Key != was.Key || c.URL != was.URL && !c.OAuth {
		c.UserID, c.KeyEnds = "", time.Time{} // Check finds them
	}
	return nil
}

// config returns the configuration of an adapter.
func (c *Connection) config(env adapter.Env) Config {
	config := Config{
		URL:     c.URL,
		Key:     c.Key,
		KeyEnds: c.KeyEnds,
		Secrets: env.Secrets,
		Budget:  env.Budget,
		HTTP:    vendorhttp.New(env),
		Log:     env.Log,
	}
	if c.OAuth {
		refresher := refresher{url: c.tokenURL, client: env.Client, http: config.HTTP, log: env.Log}
		config.Tokens = &adapter.TokenSource{Secrets: env.Secrets, Refresh: refresher.refresh}
	}
	return config
}

// Check implements adapter.Connection.
func (c *Connection) Check(ctx context.Context, env adapter.Env) (found adapter.Checked, err error) {
	config := c.config(env)
	if c.OAuth && c.tokens.Access != "" {
		config.Tokens.Secrets = loginSecrets{tokens: &c.tokens}
	} else if c.OAuth { // only the open account has its tokens
		return adapter.Checked{KeepCredentials: true}, nil
	}
	a := New(config)
	defer a.Close() //nolint:errcheck // nothing was opened
	locks, err := a.listLocks(ctx)
	if err != nil {
		return found, err
	}
	found.Provider = Name
	if c.OAuth {
		user := claimsOf(c.tokens.Access)
		if user.ID == "" {
			return found, adapter.Errorf(adapter.Transient, "Tedee's token does not name the user")
		}
		c.UserID = user.ID
		found.Credentials, err = json.Marshal(c.tokens)
		found.Email, found.DisplayName = user.Email, "Tedee account"
		return found, err
	}
	c.UserID = a.userOfKey(locks)
	c.KeyEnds = a.endOfKey(ctx)
	found.Username, found.DisplayName = c.UserID, "Tedee account"
	return found, nil
}

// Open implements adapter.DeviceConnection.
func (c *Connection) Open(_ context.Context, env adapter.Env) (adapter.Adapter, error) {
	a := New(c.config(env))
	a.Listen()
	return a, nil
}

// keyPrefix returns the public part of the personal access key, which the portal shows.
func (a *Adapter) keyPrefix() string {
	prefix, _, found := strings.Cut(a.key, ".")
	if !found || len(prefix) > 16 {
		return ""
	}
	return prefix
}

// userOfKey returns the id of the user. Only a lock that the user owns shows it.
func (a *Adapter) userOfKey(locks []wireLock) string {
	const owner, maxID = 2, 64
	for _, l := range locks {
		if l.AccessLevel == owner && l.UserIdentity != "" && len(l.UserIdentity) <= maxID {
			return l.UserIdentity
		}
	}
	return "with key " + a.keyPrefix()
}

// endOfKey returns when the key ends, or zero if the key may not read it.
func (a *Adapter) endOfKey(ctx context.Context) time.Time {
	var keys adapter.List[struct {
		Prefix string `json:"prefix"`
		Ends   string `json:"validTo"`
	}]
	if err := a.do(ctx, vendorhttp.Call{Path: "/my/personalaccesskey"}, &keys); err != nil {
		return time.Time{}
	}
	for _, k := range keys {
		if k.Prefix != "" && k.Prefix == a.keyPrefix() {
			at, _ := parseTime(k.Ends)
			return at
		}
	}
	return time.Time{}
}

// keyEnd warns before the end of a personal access key.
type keyEnd struct {
	at time.Time

	mu   sync.Mutex
	last time.Time
}

// keyWarning is how long before its end a key is reported.
const keyWarning = 14 * 24 * time.Hour

// warn logs once a day that the key ends soon.
func (k *keyEnd) warn(ctx context.Context, log *slog.Logger, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at.IsZero() || now.Before(k.at.Add(-keyWarning)) || now.Sub(k.last) < 24*time.Hour {
		return
	}
	k.last = now
	log.WarnContext(ctx, "the personal access key of Tedee ends soon; create another one in the Tedee portal",
		"ends", k.at.Format(time.DateOnly))
}

// claims are the fields of an access token that name the user.
type claims struct {
	ID    string `json:"oid"`
	Email string `json:"email"`
}

// claimsOf reads an access token, which comes from Tedee itself, so that its signature needs no check.
func claimsOf(token string) (c claims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(data, &c) != nil || len(c.ID) > 64 {
		return claims{}
	}
	return c
}
