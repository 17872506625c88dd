package ttlock

import (
	"context"
	"crypto/md5" //nolint:gosec // the vendor's API demands it
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// Name is the name of the adapter, and the account type of its accounts.
const Name = "ttlock"

// URLs of TTLock's clouds.
const (
	// DefaultURL serves accounts outside of China.
	DefaultURL = "https://euapi.ttlock.com"
	// ChinaURL serves accounts in China.
	ChinaURL = "https://cnapi.ttlock.com"
)

// callsPerHour limits the calls of an account. TTLock publishes no number. It meters the calls of an application by
// month.
const callsPerHour = 600

// Vendor describes TTLock.
func Vendor() adapter.Vendor { return VendorAt(DefaultURL) }

// VendorAt is Vendor with another cloud as the default.
func VendorAt(base string) adapter.Vendor {
	return adapter.Vendor{
		Adapter:     Name,
		Name:        Name,
		DisplayName: "TTLock",
		Usage:       "connect an account of the TTLock app, or of another app of the same cloud",
		NeedsClient: true,
		Categories:  []string{adapter.CategoryBeta, adapter.CategorySmartlocks},
		Accepts:     []string{adapter.Locks},
		Can: capability.Set{
			Lock:         true,
			Unlock:       true,
			AutoLock:     true,
			OnlineCodes:  true,
			OfflineCodes: true,
		},
		Settings: []adapter.Setting{
			{Name: "url", Default: base, Usage: "connect to the cloud at `URL`; that of China is " + ChinaURL},
			{Name: "username", Required: true, Usage: "log in as `NAME`, the app's email address or phone number"},
			{Name: "password", Kind: adapter.SecretSetting, Usage: "password of the app's account"},
		},
		Login: &adapter.Login{
			Fields: []login.Field{
				{
					Name:         "username",
					Label:        "Email address or phone number of the TTLock app",
					Prompt:       "Enter the email address or phone number of the TTLock app.",
					Kind:         "text",
					Help:         "A phone number begins with + and the country code.",
					Autocomplete: "username",
				},
				{
					Name:         "password",
					Label:        "Password of the TTLock app",
					Prompt:       "Enter the password of the TTLock app.",
					Kind:         "password",
					Autocomplete: "current-password",
				},
			},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				c := &Connection{BaseURL: base, Username: strings.TrimSpace(entered["username"])}
				c.setPassword(entered["password"])
				return c, nil
			},
			SecretField: "password",
			Refused:     "TTLock rejects this user name or password. Enter those of the TTLock app.",
		},
		AppPush:      readPush,
		New:          func() adapter.Connection { return &Connection{BaseURL: base} },
		Pace:         adapter.Pace{List: time.Hour, Read: 6 * time.Hour},
		CallsPerHour: callsPerHour,
		Verification: adapter.Verification{Level: adapter.VerifiedDocumentation, Date: "2026"},
	}
}

// Connection connects to one account of the app. The password is never stored: the account keeps the tokens of the
// login.
type Connection struct {
	// BaseURL is the URL of the cloud.
	BaseURL string `json:"base_url"`
	// Username is the email address or phone number of the account.
	Username string `json:"username"`
	// UserID is the vendor's number of the account, which Check finds.
	UserID string `json:"user_id,omitempty"`

	// passwordMD5 is what TTLock receives instead of the password.
	passwordMD5 string
}

func (c *Connection) setPassword(password string) {
	if password == "" {
		return
	}
	sum := md5.Sum([]byte(password)) //nolint:gosec // the vendor's API demands it
	c.passwordMD5 = hex.EncodeToString(sum[:])
}

// Adapter implements adapter.Connection.
func (Connection) Adapter() string { return Name }

// Address implements adapter.Connection.
func (c Connection) Address() string {
	if c.UserID == "" {
		return c.BaseURL + " " + c.Username
	}
	return c.BaseURL + " user " + c.UserID
}

// Apply implements adapter.Connection.
func (c *Connection) Apply(set adapter.Settings) error {
	was := *c
	password := ""
	set.Set("url", &c.BaseURL)
	set.Set("username", &c.Username)
	set.Set("password", &password)
	c.setPassword(password)
	c.Username = strings.TrimSpace(c.Username)
	base, err := vendorhttp.BaseURL(c.BaseURL)
	switch {
	case err != nil:
		return fmt.Errorf("--url: %w", err)
	case c.Username == "":
		return errors.New("--username: enter the email address or phone number of the TTLock app")
	}
	c.BaseURL = base
	if c.BaseURL != was.BaseURL || c.Username != was.Username {
		c.UserID = "" // Check finds it
	}
	return nil
}

// Check implements adapter.Connection. It logs in once and lists the locks.
func (c *Connection) Check(ctx context.Context, env adapter.Env) (found adapter.Checked, err error) {
	switch {
	case env.Client.ID == "" || env.Client.Secret == "":
		e := adapter.Errorf(adapter.Invalid,
			"this server has no TTLock application; set --vendor-client and --vendor-client-secret-file")
		e.ForPerson = wrongSetup
		return found, e
	case c.passwordMD5 == "":
		e := adapter.Errorf(adapter.Invalid,
			"TTLock needs the password for each login; set --password-file or DEVICEACCESS_GATEWAY_PASSWORD")
		e.ForPerson = "Enter the password of the TTLock app."
		return found, e
	}
	tokens := &loginTokens{}
	a := New(Config{
		BaseURL: c.BaseURL,
		Client:  env.Client,
		Secrets: tokens,
		HTTP:    vendorhttp.New(env),
		Log:     env.Log,
	})
	defer a.Close() //nolint:errcheck // nothing was opened
	got, err := a.logIn(ctx, c.Username, c.passwordMD5)
	if err != nil {
		return found, forPerson(err)
	}
	if got.UID < 1 {
		return found, adapter.Errorf(adapter.Transient, "TTLock's answer has no user id")
	}
	if found.Credentials, err = json.Marshal(got.tokens(a.now())); err != nil {
		return found, adapter.Errorf(adapter.Transient, "the tokens cannot be stored")
	}
	tokens.stored = found.Credentials
	if _, err := a.listLocks(ctx); err != nil {
		return found, forPerson(err)
	}
	c.UserID = strconv.FormatInt(int64(got.UID), 10)
	if strings.Contains(c.Username, "@") {
		found.Email = c.Username
	} else {
		found.Username = c.Username
	}
	found.DisplayName = "TTLock account of " + c.Username
	found.Provider = Name
	return found, nil
}

// forPerson makes an errcode that a retry does not help against an error that the connect page shows.
func forPerson(err error) error {
	e := adapter.AsError(err)
	if codeOf(err) != 0 && e != nil && e.Class != adapter.AuthRevoked {
		e.Class, e.ForPerson = adapter.Invalid, personWords[codeOf(err)]
	}
	return err
}

const wrongSetup = "This server is not set up correctly for TTLock. Please tell its operator."

// personWords says what a person can do about errcodes that the operator must act on.
var personWords = map[int]string{
	10000:            wrongSetup,
	10001:            wrongSetup,
	80000:            wrongSetup,
	codeTooManyCalls: "TTLock accepts no more logins for now. Please try again in a few minutes.",
	codeMonthlyLimit: "This server may not call TTLock any more this month. Please tell its operator.",
	30008: "Your account is in a region of TTLock that this page does not serve. Please ask the operator of this server " +
		"to connect it.",
}

// Open implements adapter.DeviceConnection.
func (c *Connection) Open(_ context.Context, env adapter.Env) (adapter.Adapter, error) {
	return New(Config{
		BaseURL: c.BaseURL,
		Client:  env.Client,
		Secrets: env.Secrets,
		Budget:  env.Budget,
		HTTP:    vendorhttp.New(env),
		Log:     env.Log,
	}), nil
}

// loginTokens is an adapter.Secrets during a login, before the account exists.
type loginTokens struct{ stored []byte }

// Load implements adapter.Secrets.
func (t *loginTokens) Load(context.Context, string) ([]byte, error) { return t.stored, nil }

// Store implements adapter.Secrets.
func (t *loginTokens) Store(context.Context, string, []byte) error { return nil }

// Rotate implements adapter.Secrets.
func (t *loginTokens) Rotate(context.Context, string, []byte, adapter.Renew) ([]byte, error) {
	return nil, adapter.Errorf(adapter.AuthRevoked, "TTLock refuses the token that it has just issued")
}
