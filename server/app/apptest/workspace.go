package apptest

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Workspace returns the server as seen by a client of another workspace, a new sandbox without devices.
func (s *Server) Workspace(t testing.TB, name string) *Server {
	t.Helper()
	w, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), name, "", true)
	if err != nil {
		t.Fatal(err)
	}
	other := &Server{
		t:           s.t,
		URL:         s.URL,
		WorkspaceID: w.ID.String(),
		App:         s.App,
		config:      s.config,
		cloud:       s.cloud,
		devices:     map[string]string{},
	}
	other.APIKey, _ = s.Credential(t, auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{w.ID}})
	return other
}

// Credential issues a credential, by default for the workspace of s.
func (s *Server) Credential(t testing.TB, n auth.NewCredential) (token string, c auth.Credential) {
	t.Helper()
	if n.WorkspaceIDs == nil {
		n.WorkspaceIDs = []uuid.UUID{uuid.MustParse(s.WorkspaceID)}
	}
	token, c, err := s.App.Access.Auth.IssueCredential(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return token, c
}

// RealWorkspace creates a workspace for real devices, and an API key for it.
func (s *Server) RealWorkspace(t testing.TB) (id uuid.UUID, key string) {
	t.Helper()
	w, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _ = s.Credential(t, auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{w.ID}})
	return w.ID, key
}

// AllowWrites does what an operator does with `accounts allow-writes`, for all accounts that are not simulated.
func (s *Server) AllowWrites(t testing.TB) {
	t.Helper()
	admin := app.Admin{Access: s.App.Access}
	all, err := s.App.Access.Accounts.ListAllAccounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Adapter == account.SandboxAdapter || a.Adapter == account.SandboxAccessAdapter {
			continue
		}
		if _, err := admin.ManageDevices(t.Context(), a.Account); err != nil {
			t.Fatal(err)
		}
	}
}

// NeedPrograms skips the test, or fails it with REQUIRE_ALL=1, if a program is missing.
func NeedPrograms(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			storetest.Missing(t, "%s", program)
		}
	}
}

// NewKey issues another API key for the workspace of s.
func (s *Server) NewKey(t testing.TB, name string) (key string, revoke func()) {
	t.Helper()
	key, c := s.Credential(t, auth.NewCredential{Kind: domain.APIKey, Name: name, Sandbox: true})
	return key, func() {
		if err := s.App.Access.Auth.RevokeCredential(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// Row is a row of the database: its columns as JSON.
type Row map[string]any

// Rows reads the whole database by table, for tests that check that nothing else has changed.
func (s *Server) Rows(t testing.TB) map[string][]Row {
	t.Helper()
	conn := s.connect(t)
	names, err := conn.Query(
		t.Context(),
		"select table_name::text from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
	)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(names, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]Row{}
	for _, table := range tables {
		found, err := conn.Query(
			t.Context(),
			fmt.Sprintf("select to_jsonb(t)::text from %s t order by 1", pgx.Identifier{table}.Sanitize()),
		)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("read %s: %v", table, err)
		}
		for _, text := range texts {
			row := Row{}
			if err := json.Unmarshal([]byte(text), &row); err != nil {
				t.Fatal(err)
			}
			out[table] = append(out[table], row)
		}
	}
	return out
}
