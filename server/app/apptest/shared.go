package apptest

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// pool is a server that the tests of a package share. It starts with the first user and stops after the last one.
type pool struct {
	start func(t testing.TB) *Server

	mu     sync.Mutex
	users  int
	server *Server
	span   *sharedT
}

var shared = pool{start: func(t testing.TB) *Server {
	return Start(t, WithProfiles("august"), func(c *app.Config) { c.MaxConns = 30 + app.ConnsOutsidePool })
}}

// Shared returns a Sandbox in a server that the tests of a package share. Use Start for tests that need server options,
// read Rows, block tables, stop servers, or assert the state of the whole server.
func Shared(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return shared.join(t).Sandbox(t, opts...)
}

func (p *pool) join(t testing.TB) *Server {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == 0 {
		p.span = newSpan(t)
		p.server = p.start(p.span)
	}
	p.users++
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.users--; p.users == 0 {
			p.span.end(t)
		}
	})
	return p.server
}

// Sandbox returns the server as seen by a client of a new sandbox workspace with its own API key and simulated locks.
// It accepts the options WithProfiles and WithLocks.
func (s *Server) Sandbox(t testing.TB, opts ...Option) *Server {
	t.Helper()
	var c app.Config
	for _, o := range opts {
		o(&c)
	}
	profiles, n := c.Sandboxing.Profiles, max(c.Sandboxing.LocksPerProfile, 1)
	c.Sandboxing.Profiles, c.Sandboxing.LocksPerProfile = nil, 0
	if !reflect.ValueOf(c).IsZero() {
		t.Fatal("a server that runs takes WithProfiles and WithLocks only; use apptest.Start")
	}
	if len(profiles) == 0 {
		profiles = sandbox.Profiles()
	}
	w, err := s.App.Access.Accounts.AddWorkspace(t.Context(), domain.Principal{}, account.NewWorkspace{
		Name:        "Sandbox",
		CompanyName: "Device Access",
		Sandbox:     true,
		Account: func(id uuid.UUID) (account.NewAccount, error) {
			config, err := json.Marshal(
				map[string]any{"key": id.String(), "profiles": profiles, "locks_per_profile": n},
			)
			return account.NewAccount{
				WorkspaceID:  id,
				Adapter:      account.SandboxAdapter,
				DisplayName:  "Simulated devices",
				Address:      id.String(),
				User:         account.UserIdentifier{Email: sandbox.People[0]},
				Config:       config,
				Capabilities: app.SimulatedKinds,
			}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	own := &Server{
		t:           t,
		URL:         s.URL,
		WorkspaceID: w.ID.String(),
		App:         s.App,
		config:      s.config,
		cloud:       s.cloud,
		host:        s,
		devices:     map[string]string{},
	}
	own.APIKey, _ = own.Credential(t, auth.NewCredential{Kind: domain.APIKey, Name: "sandbox", Sandbox: true})
	own.await(len(profiles) * n)
	return own
}

// DatabaseURL returns the URL of the server's database.
func (s *Server) DatabaseURL() string { return s.config.DatabaseURL }

// sharedT is a testing.TB for several tests. Its cleanups run and its context ends with the last test.
type sharedT struct {
	testing.TB // the current test
	ctx        context.Context
	cancel     context.CancelFunc
	cleanups   []func()
}

func newSpan(t testing.TB) *sharedT {
	ctx, cancel := context.WithCancel(context.Background())
	return &sharedT{TB: t, ctx: ctx, cancel: cancel}
}

func (p *sharedT) Context() context.Context { return p.ctx }

func (p *sharedT) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *sharedT) TempDir() string {
	p.Helper()
	dir, err := os.MkdirTemp("", "deviceaccess-test-")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			p.Error(err)
		}
	})
	return dir
}

// end runs the cleanups and reports their errors to t.
func (p *sharedT) end(t testing.TB) {
	p.TB = t
	p.cancel()
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}
