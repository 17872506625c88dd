package spec_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A credential can create workspaces until it has access to the maximum, including those it was given. Existing access
// stays, a rejected request leaves nothing behind, and other credentials are not affected.
func TestWorkspaces_LimitPerCredential(t *testing.T) {
	t.Parallel()
	const most = 3 // including that of the server
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.MaxWorkspaces = most }),
	)
	list := func(token string) int {
		var out api.WorkspacesResponse
		s.PostAs(t, token, "/workspaces/list", params{}, &out)
		return len(out.Workspaces)
	}
	for _, kind := range []domain.CredentialKind{domain.PAT, domain.ConsoleSession} {
		token := issue(t, s, kind)
		for i := 1; i < most; i++ {
			if status := s.PostAs(
				t,
				token,
				"/workspaces/create",
				params{"name": "New", "is_sandbox": i == 1},
				nil,
			); status != http.StatusOK {
				t.Fatalf("%s: workspace %d: %d", kind, i, status)
			}
		}
		all, err := s.App.Access.Accounts.ListAllWorkspaces(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, sandbox := range []bool{true, false} {
			var f failure
			status := s.PostAs(t, token, "/workspaces/create", params{"name": "New", "is_sandbox": sandbox}, &f)
			if status != http.StatusBadRequest || f.Error.Type != "invalid_input" ||
				!strings.Contains(f.Error.Message, "it may enter 3") ||
				!strings.Contains(f.Error.Message, "/workspaces/list") {
				t.Errorf("%s: one too many: %d %+v", kind, status, f)
			}
		}
		now, err := s.App.Access.Accounts.ListAllWorkspaces(t.Context())
		if n := list(token); err != nil || n != most || len(now) != len(all) {
			t.Errorf(
				"%s: %v; there are %d workspaces and were %d, and it may enter %d",
				kind,
				err,
				len(now),
				len(all),
				n,
			)
		}
	}
	given := make([]uuid.UUID, most+1)
	for i := range given {
		w, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), fmt.Sprint("Given ", i), "", false)
		if err != nil {
			t.Fatal(err)
		}
		given[i] = w.ID
	}
	token, _ := s.Credential(t, auth.NewCredential{Kind: domain.PAT, WorkspaceIDs: given})
	if got := refused(
		t,
		s,
		token,
		"/workspaces/create",
		params{"name": "New"},
	); got != "400 invalid_input" ||
		list(token) != most+1 {
		t.Errorf("a credential with more creates one: %s, and has access to %d", got, list(token))
	}
}

// Work for a workspace counts for the credential that created the workspace.
func TestWorkspaces_WorkCountsForCreator(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	given := uuid.MustParse(s.WorkspaceID)
	token, credential, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.PAT, WorkspaceIDs: []uuid.UUID{given}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var made api.WorkspaceResponse
	if status := s.PostAs(
		t,
		token,
		"/workspaces/create",
		params{"name": "New", "is_sandbox": true},
		&made,
	); status != http.StatusOK {
		t.Fatalf("create a workspace: %d", status)
	}
	id := uuid.MustParse(made.Workspace.WorkspaceID)
	owners, err := s.App.Access.Webhooks.OutboxOwners(t.Context(), []uuid.UUID{given, id})
	if err != nil || owners[id].Creator != credential.ID || owners[given].Creator != uuid.Nil {
		t.Errorf("the creators are %v, want %s for one and none for the other; %v", owners, credential.ID, err)
	}
}
