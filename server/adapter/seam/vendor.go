package seam

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/subscription"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// Name is the name of the adapter, and the account type of its accounts.
const Name = "seam"

// DefaultURL is the URL of Seam's hosted API.
const DefaultURL = "https://connect.getseam.com"

// Vendor describes servers of Seam's API.
func Vendor() adapter.Vendor {
	return adapter.Vendor{
		Adapter:     Name,
		Name:        Name,
		DisplayName: "Seam",
		Usage:       "connect a workspace of Seam, or of another server of its API",
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
			{Name: "url", Default: DefaultURL, Usage: "connect to the server at `URL`"},
			{Name: "api-key", Kind: adapter.SecretSetting, Usage: "workspace's API key"},
		},
		Login: &adapter.Login{
			Fields: []login.Field{{
				Name:         "api_key",
				Label:        "API key of the Seam workspace",
				Prompt:       "Enter the API key of the Seam workspace.",
				Kind:         "password",
				Autocomplete: "off",
			}},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				return &Connection{BaseURL: DefaultURL, APIKey: strings.TrimSpace(entered["api_key"])}, nil
			},
			SecretField: "api_key",
			Refused:     "Seam rejects this API key. Copy it again from the workspace's settings.",
		},
		New:  func() adapter.Connection { return &Connection{BaseURL: DefaultURL} },
		Pace: adapter.Pace{List: 5 * time.Minute, Read: 15 * time.Minute},
		Verification: adapter.Verification{
			Level: adapter.VerifiedSchema,
			With:  "npm @seamapi/types 1.977.0 and @seamapi/fake-seam-connect 1.86.0",
		},
	}
}

// Connection connects to one workspace of a server.
type Connection struct {
	// BaseURL is the URL of the API.
	BaseURL string `json:"base_url"`
	// APIKey is the key of the workspace.
	APIKey string `json:"api_key"`
	// WorkspaceID is the workspace of the key, which Check finds.
	WorkspaceID string `json:"workspace_id,omitempty"`
}

// Adapter implements adapter.Connection.
func (Connection) Adapter() string { return Name }

// Address implements adapter.Connection.
func (c Connection) Address() string {
	if c.WorkspaceID == "" {
		return c.BaseURL
	}
	return c.BaseURL + " workspace " + c.WorkspaceID
}

// Apply implements adapter.Connection.
func (c *Connection) Apply(set adapter.Settings) error {
	was := *c
	set.Set("url", &c.BaseURL)
	set.Set("api-key", &c.APIKey)
	c.APIKey = strings.TrimSpace(c.APIKey)
	base, err := vendorhttp.BaseURL(c.BaseURL)
	switch {
	case err != nil:
		return fmt.Errorf("--url: %w", err)
	case c.APIKey == "":
		return errors.New("the workspace needs an API key: set --api-key-file or DEVICEACCESS_GATEWAY_API_KEY")
	}
	c.BaseURL = base
	if c.BaseURL != was.BaseURL || c.APIKey != was.APIKey {
		c.WorkspaceID = "" // Check finds it
	}
	return nil
}

// Check implements adapter.Connection. It refuses loops: a workspace cannot be its own upstream, nor that of its own
// upstream.
func (c *Connection) Check(ctx context.Context, env adapter.Env) (found adapter.Checked, err error) {
	a := New(Config{
		BaseURL: c.BaseURL,
		APIKey:  c.APIKey,
		HTTP:    vendorhttp.New(env),
		Log:     env.Log,
	})
	defer a.Close() //nolint:errcheck // nothing was opened
	workspace, err := a.checkWorkspace(ctx, env.Workspace)
	if err != nil {
		return found, err
	}
	if _, err := a.Devices(ctx); err != nil {
		return found, err
	}
	c.WorkspaceID = workspace.ID
	found.Username = workspace.ID
	found.DisplayName = "Seam workspace " + adapter.SafeMessage(workspace.Name, c.APIKey)
	return found, nil
}

// Open implements adapter.DeviceConnection.
func (c *Connection) Open(_ context.Context, env adapter.Env) (adapter.Adapter, error) {
	config := Config{
		BaseURL:   c.BaseURL,
		APIKey:    c.APIKey,
		Workspace: env.Workspace,
		Secrets:   env.Secrets,
		HTTP:      vendorhttp.New(env),
		Log:       env.Log,
	}
	if env.PushURLs != nil {
		config.PushURLs = subscription.Reachable(c.BaseURL, env.PushURLs)
	}
	a := New(config)
	a.Listen()
	return a, nil
}

// wireWorkspace is a workspace in a response.
type wireWorkspace struct {
	ID   string `json:"workspace_id"`
	Name string `json:"name"`
}

// checkWorkspace returns the upstream workspace. It fails with Invalid for a loop with the workspace own.
func (a *Adapter) checkWorkspace(ctx context.Context, own string) (wireWorkspace, error) {
	var got struct {
		Workspace wireWorkspace `json:"workspace"`
	}
	if err := a.read(ctx, "/workspaces/get", map[string]any{}, &got); err != nil {
		if adapter.ClassOf(err) == adapter.NotFound {
			err = adapter.Errorf(adapter.AuthRevoked, "the server has no workspace for this API key")
		}
		return got.Workspace, err
	}
	switch {
	case !isID(got.Workspace.ID):
		return got.Workspace, adapter.Errorf(adapter.Transient, "the server does not name the workspace of the API key")
	case got.Workspace.ID == own:
		return got.Workspace, adapter.Errorf(adapter.Invalid, "a workspace cannot be its own upstream")
	}
	var accounts struct {
		List adapter.List[struct {
			Type string `json:"account_type"`
			User struct {
				Username string `json:"username"`
			} `json:"user_identifier"`
		}] `json:"connected_accounts"`
	}
	if err := a.read(ctx, "/connected_accounts/list", map[string]any{}, &accounts); err != nil {
		return got.Workspace, err
	}
	for _, account := range accounts.List {
		if account.Type == Name && own != "" && account.User.Username == own {
			return got.Workspace, adapter.Errorf(
				adapter.Invalid,
				"the upstream workspace has this workspace as its own upstream",
			)
		}
	}
	return got.Workspace, nil
}
