package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

func (h *handlers) GetWorkspace(ctx context.Context, _ GetWorkspaceRequestObject) (GetWorkspaceResponseObject, error) {
	w, err := h.access.GetWorkspace(ctx, principal(ctx).WorkspaceID)
	if err != nil {
		return nil, err
	}
	return GetWorkspace200JSONResponse{Ok: true, Workspace: toWorkspace(w)}, nil
}

func (h *handlers) ListWorkspaces(ctx context.Context, _ ListWorkspacesRequestObject) (ListWorkspacesResponseObject, error) {
	list, err := h.access.ListWorkspaces(ctx, principal(ctx))
	if err != nil {
		return nil, err
	}
	return ListWorkspaces200JSONResponse{Ok: true, Workspaces: each(list, toWorkspace)}, nil
}

func toWorkspace(w access.Workspace) api.Workspace {
	return api.Workspace{
		WorkspaceID: w.ID.String(), Name: w.Name, CompanyName: w.CompanyName,
		ConnectPartnerName: w.ConnectPartnerName, IsSandbox: w.IsSandbox,
	}
}
