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
	URL             string   // of the server that has the simulated cloud, where several share one; empty: this one has it
}

// Sandbox is the simulated cloud, of this server or shared with others, and the workspaces whose devices are in it.
type Sandbox struct {
	WorkspaceID uuid.UUID // of the sandbox workspace, where there is one
	APIKey      string    // of the sandbox workspace, when it has just been made

	opt    Sandboxing
	own    *sandbox.Sandbox // nil: it is elsewhere
	cloud  cloud
	tokens sandbox.Tokens
	access *access.Service
	log    *slog.Logger
}

// cloud makes and ends the accounts of a simulated cloud.
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
	seed := binary.BigEndian.Uint64(key)
	s := &Sandbox{opt: opt, access: a, log: log, tokens: sandbox.Tokens(seed)}
	workspaces, err := a.ListAllWorkspaces(ctx)
	if err != nil {
		return s, err
	}
	if i := slices.IndexFunc(workspaces, func(w access.Workspace) bool { return w.IsSandbox }); i >= 0 { // the oldest; its account may be gone
		s.WorkspaceID = workspaces[i].ID
	}
	if opt.URL != "" { // its server has the accounts already, or gets them when they are used
		s.cloud = sandbox.Remote{URL: cloudAt(opt.URL), Seed: seed}
		return s, nil
	}
	s.own = sandbox.New(sandbox.Options{Dir: dir, Seed: seed, Speed: opt.Speed, Log: log})
	s.cloud = ownCloud{s.own}
	for _, adapter := range []string{access.SandboxAdapter, access.SandboxAccessAdapter} {
		accounts, err := a.ListAccounts(ctx, adapter)
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

// cloudAt is where the simulated cloud of a server is.
func cloudAt(server string) string {
	return strings.TrimRight(server, "/") + strings.TrimSuffix(sandboxPath, "/")
}

// cloudURL is where the simulated cloud is, for the server at url.
func (s *Sandbox) cloudURL(url string) string { return cloudAt(cmp.Or(s.opt.URL, url)) }

// Handler serves the simulated cloud, where it is this server's.
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

// Token is the credential of a simulated account, whose locks or access systems are there from then on.
func (s *Sandbox) Token(ctx context.Context, account access.Account) (string, error) {
	c, err := simulated(account)
	if err != nil {
		return "", err
	}
	if account.Adapter == access.SandboxAccessAdapter {
		err = s.cloud.EnsureAccessAccount(ctx, sandbox.AccessSpec{Key: c.Key, Systems: c.Systems})
	} else {
		err = s.cloud.EnsureAccount(ctx, sandbox.AccountSpec{Key: c.Key, Profiles: c.Profiles, LocksPerProfile: c.LocksPerProfile})
	}
	if err != nil {
		return "", fmt.Errorf("make the simulated account %s: %w", account.ID, err)
	}
	return s.tokens.Account(c.Key), nil
}

func simulated(account access.Account) (c sandboxConfig, err error) {
	if err := json.Unmarshal(account.Config, &c); err != nil {
		return c, fmt.Errorf("read the simulated account %s: it is not as it was written", account.ID)
	}
	return c, nil
}

// ensureWorkspace makes the sandbox workspace with its account, unless there is one, and its key, unless it has ever
// had one: the server may have been killed in between.
func (s *Sandbox) ensureWorkspace(ctx context.Context) error {
	if s.WorkspaceID == uuid.Nil {
		w, err := s.access.AddWorkspace(ctx, access.Principal{}, access.NewWorkspace{Name: "Sandbox", CompanyName: "Device Access", Sandbox: true,
			Account: func(id uuid.UUID) (access.NewAccount, error) { return s.account(id, id.String()) }})
		if err != nil {
			return err
		}
		s.WorkspaceID = w.ID
	}
	all, err := s.access.ListCredentials(ctx)
	if err != nil || slices.ContainsFunc(all, func(c access.Credential) bool { return slices.Contains(c.WorkspaceIDs, s.WorkspaceID) }) {
		return err
	}
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
func (s *Sandbox) Forget(ctx context.Context, accounts []access.Account) {
	for _, a := range accounts {
		var c sandboxConfig
		if a.Adapter != access.SandboxAdapter && a.Adapter != access.SandboxAccessAdapter || json.Unmarshal(a.Config, &c) != nil || c.Key == "" {
			continue
		}
		if err := s.cloud.Forget(ctx, c.Key); err != nil {
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
			err := s.access.RevokeCredential(ctx, c.ID)
			if e, ok := errors.AsType[*access.Error](err); err != nil && (!ok || e.Kind != access.NotFound) { // another server was quicker
				return "", err
			}
		}
	}
	return s.NewKey(ctx, name)
}
