package rest

import (
	"cmp"
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) GetWorkspace(
	ctx context.Context, _ openapi.GetWorkspaceRequestObject,
) (openapi.GetWorkspaceResponseObject, error) {
	w, err := h.access.Accounts.GetWorkspace(ctx, principal(ctx).WorkspaceID)
	if err != nil {
		return nil, err
	}
	return openapi.GetWorkspace200JSONResponse{Ok: true, Workspace: toWorkspace(w)}, nil
}

func (h *handlers) ListWorkspaces(
	ctx context.Context, _ openapi.ListWorkspacesRequestObject,
) (openapi.ListWorkspacesResponseObject, error) {
	list, err := h.access.Accounts.ListWorkspaces(ctx, principal(ctx))
	if err != nil {
		return nil, err
	}
	return openapi.ListWorkspaces200JSONResponse{Ok: true, Workspaces: each(list, toWorkspace)}, nil
}

func (h *handlers) CreateWorkspace(
	ctx context.Context, r openapi.CreateWorkspaceRequestObject,
) (openapi.CreateWorkspaceResponseObject, error) {
	if r.Body.OrganizationID != "" {
		return nil, noOrganizations()
	}
	look := account.WebviewLook(r.Body.ConnectWebviewCustomization)
	n := account.NewWorkspace{
		Name:               r.Body.Name,
		CompanyName:        r.Body.CompanyName,
		ConnectPartnerName: r.Body.ConnectPartnerName,
		Sandbox:            r.Body.IsSandbox,
		Webviews: account.WebviewLook{
			LogoShape:              cmp.Or(look.LogoShape, r.Body.WebviewLogoShape),
			PrimaryButtonColor:     cmp.Or(look.PrimaryButtonColor, r.Body.WebviewPrimaryButtonColor),
			PrimaryButtonTextColor: cmp.Or(look.PrimaryButtonTextColor, r.Body.WebviewPrimaryButtonTextColor),
			SuccessMessage:         cmp.Or(look.SuccessMessage, r.Body.WebviewSuccessMessage),
		},
	}
	if n.Sandbox {
		n.Account = h.simulator.NewAccount
	}
	w, err := h.access.Accounts.AddWorkspace(ctx, principal(ctx), n)
	if err != nil {
		return nil, err
	}
	return openapi.CreateWorkspace200JSONResponse{Ok: true, Workspace: toWorkspace(w)}, nil
}

func (h *handlers) UpdateWorkspace(
	ctx context.Context, r openapi.UpdateWorkspaceRequestObject,
) (openapi.UpdateWorkspaceResponseObject, error) {
	if r.Body.OrganizationID != "" {
		return nil, noOrganizations()
	}
	err := h.access.Accounts.UpdateWorkspace(ctx, principal(ctx), account.WorkspaceChange{
		Name:               r.Body.Name,
		ConnectPartnerName: r.Body.ConnectPartnerName,
		Webviews:           account.WebviewLook(r.Body.ConnectWebviewCustomization),
		PublishableKeys:    r.Body.IsPublishableKeyAuthEnabled,
		Suspended:          r.Body.IsSuspended,
	})
	if err != nil {
		return nil, err
	}
	return openapi.UpdateWorkspace200JSONResponse{Ok: true}, nil
}

func noOrganizations() error {
	return invalid([]issue{{
		path:    []string{"organization_id"},
		message: "Not available; this server has no organizations",
	}})
}

func (h *handlers) ResetSandbox(
	ctx context.Context, _ openapi.ResetSandboxRequestObject,
) (openapi.ResetSandboxResponseObject, error) {
	p := principal(ctx)
	account, err := h.simulator.NewAccount(p.WorkspaceID)
	if err != nil {
		return nil, err
	}
	a, err := h.access.Devices.ResetSandbox(ctx, p, account, h.simulator.Forget)
	if err != nil {
		return nil, err
	}
	shown, err := h.toAttempt(ctx, a)
	if err != nil {
		return nil, err
	}
	return openapi.ResetSandbox200JSONResponse{Ok: true, ActionAttempt: shown}, nil
}

func toWorkspace(w account.Workspace) api.Workspace {
	return api.Workspace{
		WorkspaceID:                 w.ID.String(),
		Name:                        w.Name,
		CompanyName:                 w.CompanyName,
		ConnectPartnerName:          w.ConnectPartnerName,
		IsSandbox:                   w.IsSandbox,
		IsSuspended:                 w.IsSuspended,
		IsPublishableKeyAuthEnabled: w.PublishableKeys,
		PublishableKey:              w.PublishableKey,
		ConnectWebviewCustomization: api.ConnectWebviewCustomization(w.Webviews),
	}
}
