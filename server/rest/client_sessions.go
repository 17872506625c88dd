package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) CreateClientSession(
	ctx context.Context, r openapi.CreateClientSessionRequestObject,
) (openapi.CreateClientSessionResponseObject, error) {
	if r.Body.CustomerID != "" {
		return nil, invalid([]issue{{
			path:    []string{"customer_id"},
			message: "Not available; name customers by customer_key",
		}})
	}
	taken := auth.RefuseIfTaken
	if exchangeOf(ctx).request.Method == http.MethodPut { // PUT is idempotent
		taken = auth.AnswerIfTaken
	}
	c, err := h.access.Auth.CreateClientSession(ctx, principal(ctx), auth.NewClientSession{
		UserIdentifierKey: r.Body.UserIdentifierKey,
		CustomerKey:       r.Body.CustomerKey,
		ExpiresAt:         r.Body.ExpiresAt,
		ScopeGrant: scopeGrantOf(
			r.Body.ConnectedAccountIds,
			r.Body.ConnectWebviewIds,
			r.Body.UserIdentityID,
			r.Body.UserIdentityIds,
		),
	}, taken)
	if err != nil {
		return nil, err
	}
	return openapi.CreateClientSession200JSONResponse{Ok: true, ClientSession: toClientSession(c)}, nil
}

func (h *handlers) GetOrCreateClientSession(
	ctx context.Context, r openapi.GetOrCreateClientSessionRequestObject,
) (openapi.GetOrCreateClientSessionResponseObject, error) {
	c, err := h.access.Auth.CreateClientSession(ctx, principal(ctx), auth.NewClientSession{
		UserIdentifierKey: r.Body.UserIdentifierKey,
		ExpiresAt:         r.Body.ExpiresAt,
		ScopeGrant: scopeGrantOf(
			r.Body.ConnectedAccountIds,
			r.Body.ConnectWebviewIds,
			r.Body.UserIdentityID,
			r.Body.UserIdentityIds,
		),
	}, auth.GrantIfTaken)
	if err != nil {
		return nil, err
	}
	return openapi.GetOrCreateClientSession200JSONResponse{Ok: true, ClientSession: toClientSession(c)}, nil
}

func (h *handlers) GetClientSession(
	ctx context.Context, r openapi.GetClientSessionRequestObject,
) (openapi.GetClientSessionResponseObject, error) {
	c, err := h.access.Auth.GetClientSession(ctx, principal(ctx), r.Body.ClientSessionID, r.Body.UserIdentifierKey)
	if err != nil {
		return nil, err
	}
	return openapi.GetClientSession200JSONResponse{Ok: true, ClientSession: toClientSession(c)}, nil
}

func (h *handlers) ListClientSessions(
	ctx context.Context, r openapi.ListClientSessionsRequestObject,
) (openapi.ListClientSessionsResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	list, more, err := h.access.Auth.ListClientSessions(ctx, principal(ctx), auth.SessionFilter{
		ID:                r.Body.ClientSessionID,
		UserIdentifierKey: r.Body.UserIdentifierKey,
		WebviewID:         r.Body.ConnectWebviewID,
		UserIdentityID:    r.Body.UserIdentityID,
		WithoutKey:        r.Body.WithoutUserIdentifierKey,
	}, page.Page)
	if err != nil {
		return nil, err
	}
	last := lastPosition(list, func(c auth.ClientSession) (time.Time, uuid.UUID) { return c.CreatedAt, c.ID })
	return openapi.ListClientSessions200JSONResponse{
		Ok:             true,
		ClientSessions: each(list, toClientSession),
		Pagination:     page.pagination(more, last),
	}, nil
}

func (h *handlers) GrantAccessToClientSession(
	ctx context.Context, r openapi.GrantAccessToClientSessionRequestObject,
) (openapi.GrantAccessToClientSessionResponseObject, error) {
	c, err := h.access.Auth.GrantAccess(
		ctx,
		principal(ctx),
		r.Body.ClientSessionID,
		r.Body.UserIdentifierKey,
		scopeGrantOf(
			r.Body.ConnectedAccountIds,
			r.Body.ConnectWebviewIds,
			r.Body.UserIdentityID,
			r.Body.UserIdentityIds,
		),
	)
	if err != nil {
		return nil, err
	}
	return openapi.GrantAccessToClientSession200JSONResponse{Ok: true, ClientSession: toClientSession(c)}, nil
}

func (h *handlers) RevokeClientSession(
	ctx context.Context, r openapi.RevokeClientSessionRequestObject,
) (openapi.RevokeClientSessionResponseObject, error) {
	if err := h.access.Auth.RevokeClientSession(ctx, principal(ctx), r.Body.ClientSessionID); err != nil {
		return nil, err
	}
	return openapi.RevokeClientSession200JSONResponse{Ok: true}, nil
}

func (h *handlers) DeleteClientSession(
	ctx context.Context, r openapi.DeleteClientSessionRequestObject,
) (openapi.DeleteClientSessionResponseObject, error) {
	if err := h.access.Auth.DeleteClientSession(ctx, principal(ctx), r.Body.ClientSessionID); err != nil {
		return nil, err
	}
	return openapi.DeleteClientSession200JSONResponse{Ok: true}, nil
}

func scopeGrantOf(accounts, webviews []string, identity string, identities []string) auth.ScopeGrant {
	if identity != "" {
		identities = append(identities, identity)
	}
	return auth.ScopeGrant{AccountIDs: accounts, WebviewIDs: webviews, UserIdentityIDs: identities}
}

func toClientSession(c auth.ClientSession) api.ClientSession {
	out := api.ClientSession{
		ClientSessionID:     c.ID.String(),
		WorkspaceID:         c.WorkspaceID.String(),
		Token:               c.Token,
		UserIdentifierKey:   c.UserIdentifierKey,
		ConnectedAccountIds: each(c.AccountIDs, uuid.UUID.String),
		ConnectWebviewIds:   each(c.WebviewIDs, uuid.UUID.String),
		UserIdentityIds:     []string{},
		DeviceCount:         c.Devices,
		CreatedAt:           c.CreatedAt,
		ExpiresAt:           c.ExpiresAt,
	}
	if c.CustomerKey != nil {
		out.CustomerKey = *c.CustomerKey
	}
	if c.UserIdentityID != nil {
		out.UserIdentityID = c.UserIdentityID.String()
		out.UserIdentityIds = []string{out.UserIdentityID}
	}
	return out
}
