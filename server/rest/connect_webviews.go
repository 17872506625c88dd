package rest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// ConnectPath is the path of login pages. The token of a page follows it.
const ConnectPath = "/connect/"

func (h *handlers) CreateConnectWebview(
	ctx context.Context, r openapi.CreateConnectWebviewRequestObject,
) (openapi.CreateConnectWebviewResponseObject, error) {
	n := account.NewWebview{
		Providers:        r.Body.AcceptedProviders,
		Excluded:         r.Body.ExcludedProviders,
		Category:         r.Body.ProviderCategory,
		ManageNewDevices: r.Body.AutomaticallyManageNewDevices == nil || *r.Body.AutomaticallyManageNewDevices,
		WaitForDevices:   r.Body.WaitForDeviceCreation,
		SelectionMode:    r.Body.DeviceSelectionMode,
		RedirectURL:      r.Body.CustomRedirectURL,
		FailureURL:       r.Body.CustomRedirectFailureURL,
		CustomerKey:      r.Body.CustomerKey,
		Metadata:         r.Body.CustomMetadata,
	}
	if kinds := r.Body.AcceptedCapabilities; kinds != nil {
		n.Capabilities = new(each(*kinds, func(k api.AccountCapability) string { return string(k) }))
	}
	w, err := h.access.Accounts.CreateWebview(ctx, principal(ctx), n)
	if err != nil {
		return nil, err
	}
	h.warnPlainLink(ctx)
	return openapi.CreateConnectWebview200JSONResponse{Ok: true, ConnectWebview: h.toConnectWebview(ctx, w)}, nil
}

func (h *handlers) GetConnectWebview(
	ctx context.Context, r openapi.GetConnectWebviewRequestObject,
) (openapi.GetConnectWebviewResponseObject, error) {
	w, err := h.access.Accounts.GetWebview(ctx, principal(ctx), r.Body.ConnectWebviewID)
	if err != nil {
		return nil, err
	}
	return openapi.GetConnectWebview200JSONResponse{Ok: true, ConnectWebview: h.toConnectWebview(ctx, w)}, nil
}

func (h *handlers) ListConnectWebviews(
	ctx context.Context, r openapi.ListConnectWebviewsRequestObject,
) (openapi.ListConnectWebviewsResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	list, more, err := h.access.Accounts.ListWebviews(ctx, principal(ctx), account.WebviewFilter{
		CustomerKey: r.Body.CustomerKey,
		Metadata:    r.Body.CustomMetadataHas,
		Search:      r.Body.Search,
		UserKey:     r.Body.UserIdentifierKey,
	}, page.Page)
	if err != nil {
		return nil, err
	}
	last := lastPosition(list, func(w account.Webview) (time.Time, uuid.UUID) { return w.CreatedAt, w.ID })
	shown := each(list, func(w account.Webview) api.ConnectWebview { return h.toConnectWebview(ctx, w) })
	return openapi.ListConnectWebviews200JSONResponse{
		Ok:              true,
		ConnectWebviews: shown,
		Pagination:      page.pagination(more, last),
	}, nil
}

func (h *handlers) DeleteConnectWebview(
	ctx context.Context, r openapi.DeleteConnectWebviewRequestObject,
) (openapi.DeleteConnectWebviewResponseObject, error) {
	if err := h.access.Accounts.DeleteWebview(ctx, principal(ctx), r.Body.ConnectWebviewID); err != nil {
		return nil, err
	}
	return openapi.DeleteConnectWebview200JSONResponse{Ok: true}, nil
}

func (h *handlers) toConnectWebview(ctx context.Context, w account.Webview) api.ConnectWebview {
	out := api.ConnectWebview{
		ConnectWebviewID: w.ID.String(),
		WorkspaceID:      w.WorkspaceID.String(),
		URL:              h.pager.base(exchangeOf(ctx).request).JoinPath(ConnectPath, w.Token).String(),
		Status:           api.ConnectWebviewStatus(w.Status),
		LoginSuccessful:  w.Status == account.WebviewAuthorized,
		SelectedProvider: w.SelectedProvider,
		AuthorizedAt:     w.AuthorizedAt,
		CreatedAt:        w.CreatedAt,
		AcceptedCapabilities: each(
			w.Capabilities,
			func(k string) api.AccountCapability { return api.AccountCapability(k) },
		),
		AcceptedProviders:             []string{},
		AnyProviderAllowed:            w.Providers == nil,
		AcceptedDevices:               []string{},
		AnyDeviceAllowed:              true,
		AutomaticallyManageNewDevices: w.ManageNewDevices,
		WaitForDeviceCreation:         w.WaitForDevices,
		DeviceSelectionMode:           api.None,
		CustomMetadata:                w.Metadata,
		CustomRedirectURL:             optional(w.RedirectURL),
		CustomRedirectFailureURL:      optional(w.FailureURL),
		CustomerKey:                   w.CustomerKey,
	}
	if w.Providers != nil {
		out.AcceptedProviders = *w.Providers
	}
	if w.AccountID != nil {
		out.ConnectedAccountID = new(w.AccountID.String())
	}
	return out
}
