package app

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// sandboxPath is the path of the simulated cloud's API.
const sandboxPath = "/sandbox/cloud/"

// SimulatedKinds are the kinds of devices that are taken from an account with simulated devices of all kinds.
var SimulatedKinds = []string{"lock", "thermostat", "noise_sensor"}

// Sandboxing configures the simulated devices. The zero value is one device of each of sandbox.DefaultProfiles.
type Sandboxing struct {
	// Profiles are the profiles of the devices of a new sandbox workspace. The default is sandbox.DefaultProfiles.
	Profiles []string
	// LocksPerProfile is the number of devices of each profile. The default is 1.
	LocksPerProfile int
	// Speed divides the latency of the locks. The default is 1.
	Speed float64
	// Dir is the directory of the state of the locks. The default is in the data directory. "memory" keeps no state.
	Dir string
	// URL is the URL of a simulated cloud that several servers share. If empty, this server has its own.
	URL string
}

// Sandbox is the simulated cloud of this server, or one that it shares with others, and the sandbox workspace.
type Sandbox struct {
	// WorkspaceID is the sandbox workspace, or uuid.Nil if there is none.
	WorkspaceID uuid.UUID
	// APIKey is the key of the sandbox workspace if the server has just created it.
	APIKey string

	opt    Sandboxing
	own    *sandbox.Sandbox // nil if the cloud is shared
	cloud  cloud
	tokens sandbox.Tokens
	access *access.Services
	log    *slog.Logger
}

// cloud creates and removes the accounts of a simulated cloud.
type cloud interface {
	EnsureAccount(context.Context, sandbox.AccountSpec) error
	EnsureAccessAccount(context.Context, sandbox.AccessSpec) error
	Forget(ctx context.Context, key string) error
}

// ownCloud is the cloud in this process.
type ownCloud struct{ box *sandbox.Sandbox }

func (c ownCloud) EnsureAccount(_ context.Context, spec sandbox.AccountSpec) error {
	_, err := c.box.EnsureAccount(spec)
	return err
}

func (c ownCloud) EnsureAccessAccount(_ context.Context, spec sandbox.AccessSpec) error {
	_, err := c.box.EnsureAccessAccount(spec)
	return err
}

func (c ownCloud) Forget(_ context.Context, key string) error { return c.box.Forget(key) }

// sandboxConfig is the stored configuration of a simulated account.
type sandboxConfig struct {
	Key             string   `json:"key"`               // its name in the cloud
	Systems         int      `json:"systems,omitempty"` // number of access systems
	Profiles        []string `json:"profiles,omitempty"`
	LocksPerProfile int      `json:"locks_per_profile,omitempty"`
}

func newSandbox(
	ctx context.Context,
	a *access.Services,
	opt Sandboxing,
	dir string,
	log *slog.Logger,
) (*Sandbox, error) {
	key, err := a.ServerKeys.ServerKey(ctx, keyrotation.SandboxSeed)
	if err != nil {
		return nil, err
	}
	if opt.Dir != "" {
		dir = opt.Dir
	}
	if opt.Dir == "memory" {
		dir = ""
	}
	seed := binary.BigEndian.Uint64(key)
	s := &Sandbox{
		opt:    opt,
		access: a,
		log:    log,
		tokens: sandbox.Tokens(seed),
	}
	workspaces, err := a.Accounts.ListAllWorkspaces(ctx)
	if err != nil {
		return s, err
	}
	// The oldest sandbox workspace; its account may have been deleted.
	if i := slices.IndexFunc(workspaces, func(w account.Workspace) bool { return w.IsSandbox }); i >= 0 {
		s.WorkspaceID = workspaces[i].ID
	}
	if opt.URL != "" { // the shared cloud has the accounts, or creates them at their first use
		s.cloud = sandbox.Remote{URL: cloudAt(opt.URL), Seed: seed}
		return s, nil
	}
	s.own = sandbox.New(sandbox.Options{
		Dir:   dir,
		Seed:  seed,
		Speed: opt.Speed,
		Log:   log,
	})
	s.cloud = ownCloud{s.own}
	for _, adapter := range []string{account.SandboxAdapter, account.SandboxAccessAdapter} {
		accounts, err := a.Accounts.ListAccounts(ctx, adapter)
		if err != nil {
			return s, err
		}
		for _, account := range accounts {
			if _, err := s.Token(ctx, account); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// cloudAt returns the URL of the simulated cloud of a server.
func cloudAt(server string) string {
	return strings.TrimRight(server, "/") + strings.TrimSuffix(sandboxPath, "/")
}

// cloudURL returns the URL of the simulated cloud for the server at url.
func (s *Sandbox) cloudURL(url string) string { return cloudAt(cmp.Or(s.opt.URL, url)) }

// Handler serves the simulated cloud of this server. With a shared cloud, it answers 404.
func (s *Sandbox) Handler() http.Handler {
	if s.own == nil {
		return http.NotFoundHandler()
	}
	return s.own.Handler()
}

func (s *Sandbox) close() {
	if s.own != nil {
		s.own.Close()
	}
}

// Token returns the token of a simulated account. It creates the locks or access systems of the account if needed.
func (s *Sandbox) Token(ctx context.Context, acct account.Account) (string, error) {
	c, err := simulated(acct)
	if err != nil {
		return "", err
	}
	return s.token(ctx, acct.ID.String(), acct.Adapter, c)
}

// token is Token for a configuration.
func (s *Sandbox) token(ctx context.Context, id, adapterName string, c sandboxConfig) (string, error) {
	var err error
	if adapterName == account.SandboxAccessAdapter {
		err = s.cloud.EnsureAccessAccount(ctx, sandbox.AccessSpec{Key: c.Key, Systems: c.Systems})
	} else {
		err = s.cloud.EnsureAccount(
			ctx,
			sandbox.AccountSpec{Key: c.Key, Profiles: c.Profiles, LocksPerProfile: c.LocksPerProfile},
		)
	}
	if err != nil {
		return "", fmt.Errorf("create the simulated account %s: %w", id, err)
	}
	return s.tokens.Account(c.Key), nil
}

func simulated(account account.Account) (c sandboxConfig, err error) {
	if err := json.Unmarshal(account.Config, &c); err != nil {
		return c, fmt.Errorf("read the simulated account %s: its stored configuration is invalid", account.ID)
	}
	return c, nil
}

// ensureWorkspace creates the sandbox workspace with its account if there is none, and a key for the workspace if it
// never had one. The two steps are separate, since the server may have been killed between them.
func (s *Sandbox) ensureWorkspace(ctx context.Context) error {
	if s.WorkspaceID == uuid.Nil {
		w, err := s.access.Accounts.AddWorkspace(ctx, domain.Principal{}, account.NewWorkspace{
			Name:        "Sandbox",
			CompanyName: "Device Access",
			Sandbox:     true,
			Account:     func(id uuid.UUID) (account.NewAccount, error) { return s.account(id, id.String()) },
		})
		if err != nil {
			return err
		}
		s.WorkspaceID = w.ID
	}
	all, err := s.access.Auth.ListCredentials(ctx)
	if err != nil ||
		slices.ContainsFunc(
			all,
			func(c auth.Credential) bool { return slices.Contains(c.WorkspaceIDs, s.WorkspaceID) },
		) {
		return err
	}
	s.APIKey, err = s.NewKey(ctx, "sandbox")
	return err
}

func (s *Sandbox) account(workspace uuid.UUID, key string) (account.NewAccount, error) {
	config, err := json.Marshal(
		sandboxConfig{Key: key, Profiles: s.opt.Profiles, LocksPerProfile: s.opt.LocksPerProfile},
	)
	return account.NewAccount{
		WorkspaceID:  workspace,
		Adapter:      account.SandboxAdapter,
		DisplayName:  "Simulated devices",
		Address:      key,
		User:         account.UserIdentifier{Email: sandbox.People[0]},
		Config:       config,
		Capabilities: SimulatedKinds,
	}, err
}

// NewAccount returns an account with new locks for a workspace.
func (s *Sandbox) NewAccount(workspace uuid.UUID) (account.NewAccount, error) {
	return s.account(workspace, sandbox.FreshKey(workspace.String()))
}

// Forget removes the locks of deleted simulated accounts. Pending writes to these locks are lost.
func (s *Sandbox) Forget(ctx context.Context, accounts []account.Account) {
	for _, a := range accounts {
		var c sandboxConfig
		if a.Adapter != account.SandboxAdapter && a.Adapter != account.SandboxAccessAdapter ||
			json.Unmarshal(a.Config, &c) != nil ||
			c.Key == "" {
			continue
		}
		if err := s.cloud.Forget(ctx, c.Key); err != nil {
			s.log.Warn(
				"failed to remove the files of deleted simulated locks and access systems",
				"connected_account_id",
				a.ID,
				"error",
				err,
			)
		}
	}
}

// Reset erases the sandbox workspace of p and connects a new simulated account, as /workspaces/reset_sandbox does. It
// fails with Invalid for another workspace.
func (s *Sandbox) Reset(ctx context.Context, p domain.Principal) error {
	fresh, err := s.NewAccount(p.WorkspaceID)
	if err != nil {
		return err
	}
	_, err = s.access.Devices.ResetSandbox(ctx, p, fresh, s.Forget)
	return err
}

// simulator implements the simulation endpoints of the API.
type simulator struct {
	*reconcile.Reconciler
	*Sandbox
}

// NewKey issues an API key for the sandbox workspace.
func (s *Sandbox) NewKey(ctx context.Context, name string) (string, error) {
	token, _, err := s.access.Auth.IssueCredential(ctx, auth.NewCredential{
		Kind:         domain.APIKey,
		Name:         name,
		WorkspaceIDs: []uuid.UUID{s.WorkspaceID},
		Sandbox:      true,
	})
	return token, err
}

// HasWorkspace reports whether there is a sandbox workspace.
func (s *Sandbox) HasWorkspace() bool { return s.WorkspaceID != uuid.Nil }

// RenewKey revokes the keys of the sandbox workspace with a name, and issues a new one.
func (s *Sandbox) RenewKey(ctx context.Context, name string) (string, error) {
	all, err := s.access.Auth.ListCredentials(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range all {
		if c.Name == name && c.RevokedAt == nil && slices.Equal(c.WorkspaceIDs, []uuid.UUID{s.WorkspaceID}) {
			err := s.access.Auth.RevokeCredential(ctx, c.ID)
			if e, ok := errors.AsType[*domain.Error](
				err,
			); err != nil &&
				(!ok || e.Kind != domain.NotFound) { // another server may revoke it concurrently
				return "", err
			}
		}
	}
	return s.NewKey(ctx, name)
}
