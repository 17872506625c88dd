package operator_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// An operator creates a workspace, and acts there as long as it has a role.
func TestOperator_ActsInWorkspace(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	waker, err := worker.NewWaker(b.db)
	if err != nil {
		t.Fatal(err)
	}
	services := access.New(b.db, b.keys, waker, access.Options{})
	b.create("admin@example.com", domain.RoleAdmin)
	o := b.create("jane@example.com", domain.RoleAdmin)
	_, s := b.signIn("jane@example.com")
	p, _ := b.Principal(s, uuid.Nil)
	w, err := services.Accounts.AddWorkspace(t.Context(), p, account.NewWorkspace{Name: "Home"})
	if err != nil {
		t.Fatal(err)
	}
	p, _ = b.Principal(s, w.ID)
	if listed, err := services.Accounts.ListWorkspaces(t.Context(), p); err != nil || len(listed) != 1 {
		t.Errorf("%v %v", listed, err)
	}
	recheck := func(want domain.Role) {
		t.Helper()
		now, err := services.Auth.Recheck(t.Context(), p)
		if want != "" && (err != nil || now.Role != want) {
			t.Errorf("%+v %v, want %s", now, err, want)
		}
		if want == "" {
			fails(t, "recheck", err, "unauthorized")
		}
	}
	set := func(roles map[uuid.UUID]domain.Role) {
		t.Helper()
		if _, err := b.SetRoles(t.Context(), o.ID, roles); err != nil {
			t.Fatal(err)
		}
	}
	recheck(domain.RoleAdmin)
	set(map[uuid.UUID]domain.Role{w.ID: domain.RoleOperator, uuid.Nil: domain.RoleViewer})
	recheck(domain.RoleOperator)
	set(map[uuid.UUID]domain.Role{uuid.New(): domain.RoleAdmin})
	recheck("")
	set(roles(domain.RoleViewer))
	recheck(domain.RoleViewer)
	suspended := true
	if err := services.Accounts.UpdateWorkspace(
		t.Context(),
		p,
		account.WorkspaceChange{Suspended: &suspended},
	); err != nil {
		t.Fatal(err)
	}
	_, err = services.Auth.Recheck(t.Context(), p)
	fails(t, "suspended workspace", err, "workspace_suspended")
	if _, err := b.SetDisabled(t.Context(), o.ID, true); err != nil {
		t.Fatal(err)
	}
	recheck("")
	if err := b.DeleteOperator(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	recheck("")
}
