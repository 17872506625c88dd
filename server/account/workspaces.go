package account

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Workspace contains resources. Credentials are bound to it.
type Workspace struct {
	ID                 uuid.UUID
	Name               string
	CompanyName        string
	ConnectPartnerName *string
	IsSandbox          bool
	IsSuspended        bool // its resources cannot be read or changed
	PublishableKeys    bool // whether publishable keys are accepted
	PublishableKey     string
	Webviews           WebviewLook
	CreatedAt          time.Time
}

// WebviewLook is the appearance of the pages on which people connect an account. Empty fields are not set.
type WebviewLook struct {
	LogoShape              string `json:"logo_shape,omitempty"`
	PrimaryButtonColor     string `json:"primary_button_color,omitempty"`
	PrimaryButtonTextColor string `json:"primary_button_text_color,omitempty"`
	SuccessMessage         string `json:"success_message,omitempty"`
}

func toWorkspace(r dbsqlc.Workspace, publishable *string) Workspace {
	w := Workspace{
		ID:                 r.WorkspaceID,
		Name:               r.Name,
		CompanyName:        r.CompanyName,
		ConnectPartnerName: r.ConnectPartnerName,
		IsSandbox:          r.IsSandbox,
		IsSuspended:        r.IsSuspended,
		PublishableKeys:    r.IsPublishableKeyAuthEnabled,
		PublishableKey:     domain.Value(publishable),
		CreatedAt:          r.CreatedAt,
	}
	_ = json.Unmarshal(r.ConnectWebviewCustomization, &w.Webviews) // written by this package
	return w
}

// CreateWorkspace creates a workspace that no credential may enter yet. It fails with Invalid. For
// administration only.
func (s *Service) CreateWorkspace(ctx context.Context, name, company string, sandbox bool) (Workspace, error) {
	if err := domain.All(domain.CheckLabel("name", name), domain.CheckText("company_name", company)); err != nil {
		return Workspace{}, err
	}
	w := Workspace{
		ID:          domain.NewID(),
		Name:        name,
		CompanyName: company,
		IsSandbox:   sandbox,
	}
	err := s.db.InsertWorkspace(ctx, dbsqlc.InsertWorkspaceParams{
		WorkspaceID: w.ID,
		Name:        name,
		CompanyName: company,
		IsSandbox:   sandbox,
	})
	if err != nil {
		return Workspace{}, fmt.Errorf("create the workspace %q: %w", name, err)
	}
	return w, nil
}

// GetWorkspace reads a workspace. It fails with NotFound.
func (s *Service) GetWorkspace(ctx context.Context, id uuid.UUID) (Workspace, error) {
	r, err := s.db.GetWorkspace(ctx, id)
	if store.IsNoRows(err) {
		return Workspace{}, &domain.Error{
			Kind:    domain.NotFound,
			Type:    "workspace_not_found",
			Message: "There is no such workspace.",
			Data:    map[string]any{"workspace_id": id},
		}
	}
	if err != nil {
		return Workspace{}, fmt.Errorf("read the workspace %s: %w", id, err)
	}
	return toWorkspace(r.Workspace, r.PublishableKey), nil
}

// ListWorkspaces lists the workspaces that the credential may enter. For an operator, that is the one that it acts in;
// its roles say which others it may enter.
func (s *Service) ListWorkspaces(ctx context.Context, p domain.Principal) ([]Workspace, error) {
	if p.Kind == domain.EndUser || p.Kind == domain.OperatorAccount { // acts in one workspace
		w, err := s.GetWorkspace(ctx, p.WorkspaceID)
		return []Workspace{w}, err
	}
	rows, err := s.db.ListWorkspacesOfCredential(ctx, p.CredentialID)
	if err != nil {
		return nil, fmt.Errorf("list the workspaces: %w", err)
	}
	out := make([]Workspace, 0, len(rows))
	for _, r := range rows {
		if s.auth.IsGranted(p.CredentialID, r.Workspace.WorkspaceID, r.Mac) {
			out = append(out, toWorkspace(r.Workspace, r.PublishableKey))
		}
	}
	return out, nil
}

// WorkspacePage selects a page of workspaces.
type WorkspacePage struct {
	// Everywhere selects all workspaces, otherwise IDs does.
	Everywhere bool
	IDs        []uuid.UUID
	Search     string // in the name and the identifier
	// AfterAt and AfterID are the creation time and the identifier of the workspace before the first one; zero: none.
	AfterAt time.Time
	AfterID uuid.UUID
	Limit   int
}

// ListWorkspacesPage lists a page of workspaces, oldest first.
func (s *Service) ListWorkspacesPage(ctx context.Context, page WorkspacePage) ([]Workspace, error) {
	rows, err := s.db.UnpreparedQueries.ListWorkspacesPage(ctx, dbsqlc.ListWorkspacesPageParams{
		Everywhere:   page.Everywhere,
		WorkspaceIds: page.IDs,
		Pattern:      store.SearchPattern(page.Search),
		AfterAt:      page.AfterAt,
		AfterID:      page.AfterID,
		MaxRows:      int32(page.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list the workspaces: %w", err)
	}
	out := make([]Workspace, len(rows))
	for i, r := range rows {
		out[i] = toWorkspace(r.Workspace, r.PublishableKey)
	}
	return out, nil
}

// ListAllWorkspaces lists every workspace. For administration only.
func (s *Service) ListAllWorkspaces(ctx context.Context) ([]Workspace, error) {
	rows, err := s.db.ListAllWorkspaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the workspaces: %w", err)
	}
	out := make([]Workspace, len(rows))
	for i, r := range rows {
		out[i] = toWorkspace(r.Workspace, r.PublishableKey)
	}
	return out, nil
}
