package app

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// sandboxPath is where the simulated cloud listens, as a vendor's would elsewhere.
const sandboxPath = "/sandbox/cloud/"

// Sandboxing says what simulated devices there are. The zero value is one lock of each profile.
type Sandboxing struct {
	Profiles        []string // empty: all
	LocksPerProfile int      // 0: 1
	Speed           float64  // divides their latency; 0: 1
	Dir             string   // empty: below the data directory; "memory": forgotten with the process
}

// Sandbox is the simulated cloud of this server and the workspaces whose devices are in it.
type Sandbox struct {
	WorkspaceID uuid.UUID // of the sandbox workspace, where there is one
	APIKey      string    // of the sandbox workspace, when it has just been made

	opt    Sandboxing
	cloud  *sandbox.Sandbox
	access *access.Service
	seed   uint64
	log    *slog.Logger
}

// sandboxConfig is the configuration of a simulated account.
type sandboxConfig struct {
	Key             string   `json:"key"`               // names it in the cloud
	Systems         int      `json:"systems,omitempty"` // of accounts with access systems
	Profiles        []string `json:"profiles,omitempty"`
	LocksPerProfile int      `json:"locks_per_profile,omitempty"`
}

func newSandbox(ctx context.Context, a *access.Service, opt Sandboxing, dir string, log *slog.Logger) (*Sandbox, error) {
	key, err := a.ServerKey(ctx, "sandbox_seed")
	if err != nil {
		return nil, err
	}
	if opt.Dir != "" {
		dir = opt.Dir
	}
	if opt.Dir == "memory" {
		dir = ""
	}
	s := &Sandbox{opt: opt, access: a, log: log, seed: binary.BigEndian.Uint64(key)}
	s.cloud = sandbox.New(sandbox.Options{Dir: dir, Seed: s.seed, Speed: opt.Speed, Log: log})
	var accounts []access.Account
	for _, adapter := range []string{access.SandboxAdapter, access.SandboxAccessAdapter} {
		some, err := a.ListAccounts(ctx, adapter)
		if err != nil {
			return s, err
		}
		accounts = append(accounts, some...)
	}
	workspaces, err := a.ListAllWorkspaces(ctx)
	if err != nil {
		return s, err
	}
	if i := slices.IndexFunc(workspaces, func(w access.Workspace) bool { return w.IsSandbox }); i >= 0 { // the oldest; its account may be gone
		s.WorkspaceID = workspaces[i].ID
	}
	for _, account := range accounts {
		if _, err := s.Token(account); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Handler serves the simulated cloud.
func (s *Sandbox) Handler() http.Handler { return s.cloud.Handler() }

func (s *Sandbox) close() { s.cloud.Close() }

// Token is the credential of a simulated account, whose locks or access systems are there from then on.
func (s *Sandbox) Token(account access.Account) (string, error) {
	return accountToken(s.cloud, account)
}

func accountToken(cloud *sandbox.Sandbox, account access.Account) (string, error) {
	var c sandboxConfig
	if err := json.Unmarshal(account.Config, &c); err != nil {
		return "", fmt.Errorf("read the simulated account %s: it is not as it was written", account.ID)
	}
	if account.Adapter == access.SandboxAccessAdapter {
		got, err := cloud.EnsureAccessAccount(sandbox.AccessSpec{Key: c.Key, Systems: c.Systems})
		if err != nil {
			return "", fmt.Errorf("make the simulated account %s: %w", account.ID, err)
		}
		return got.Token, nil
	}
	got, err := cloud.EnsureAccount(sandbox.AccountSpec{Key: c.Key, Profiles: c.Profiles, LocksPerProfile: c.LocksPerProfile})
	if err != nil {
		return "", fmt.Errorf("make the simulated account %s: %w", account.ID, err)
	}
	return got.Token, nil
}

// ensureWorkspace makes the sandbox workspace, its account and its key, unless there is one.
func (s *Sandbox) ensureWorkspace(ctx context.Context) error {
	if s.WorkspaceID != uuid.Nil {
		return nil
	}
	w, err := s.access.CreateWorkspace(ctx, "Sandbox", "Device Access", true)
	if err != nil {
		return err
	}
	account, err := s.account(w.ID, w.ID.String())
	if err != nil {
		return err
	}
	if _, err := s.access.ConnectAccount(ctx, account); err != nil {
		return err
	}
	s.WorkspaceID = w.ID
	s.APIKey, err = s.NewKey(ctx, "sandbox")
	return err
}

func (s *Sandbox) account(workspace uuid.UUID, key string) (access.NewAccount, error) {
	config, err := json.Marshal(sandboxConfig{Key: key, Profiles: s.opt.Profiles, LocksPerProfile: s.opt.LocksPerProfile})
	return access.NewAccount{WorkspaceID: workspace, Adapter: access.SandboxAdapter, DisplayName: "Simulated locks",
		Address: key, User: access.UserIdentifier{Email: sandbox.People[0]}, Config: config}, err
}

// NewAccount is an account with locks that nobody has seen yet.
func (s *Sandbox) NewAccount(workspace uuid.UUID) (access.NewAccount, error) {
	return s.account(workspace, sandbox.Anew(workspace.String()))
}

// Forget forgets the locks of simulated accounts that are gone. What is on its way to them comes to nothing.
func (s *Sandbox) Forget(accounts []access.Account) {
	for _, a := range accounts {
		var c sandboxConfig
		if a.Adapter != access.SandboxAdapter && a.Adapter != access.SandboxAccessAdapter || json.Unmarshal(a.Config, &c) != nil || c.Key == "" {
			continue
		}
		if err := s.cloud.Forget(c.Key); err != nil {
			s.log.Warn("the files of simulated locks and access systems that are gone could not be removed", "account", a.ID, "error", err)
		}
	}
}

// simulator is the simulated devices and what may be done to them by hand.
type simulator struct {
	*reconcile.Reconciler
	*Sandbox
}

// NewKey issues a key of the sandbox workspace.
func (s *Sandbox) NewKey(ctx context.Context, name string) (string, error) {
	token, _, err := s.access.IssueCredential(ctx, access.NewCredential{Kind: access.APIKey, Name: name, WorkspaceIDs: []uuid.UUID{s.WorkspaceID}, Sandbox: true})
	return token, err
}

// HasWorkspace says whether there is a sandbox workspace.
func (s *Sandbox) HasWorkspace() bool { return s.WorkspaceID != uuid.Nil }

// RenewKey issues a key of the sandbox workspace in place of those of the same name, which end.
func (s *Sandbox) RenewKey(ctx context.Context, name string) (string, error) {
	all, err := s.access.ListCredentials(ctx)
	if err != nil {
		return "", err
	}
	for _, c := range all {
		if c.Name == name && c.RevokedAt == nil && slices.Equal(c.WorkspaceIDs, []uuid.UUID{s.WorkspaceID}) {
			if err := s.access.RevokeCredential(ctx, c.ID); err != nil {
				return "", err
			}
		}
	}
	return s.NewKey(ctx, name)
}
