package rest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) GetConnectedAccount(
	ctx context.Context, r openapi.GetConnectedAccountRequestObject,
) (openapi.GetConnectedAccountResponseObject, error) {
	a, err := h.access.Accounts.GetConnectedAccount(ctx, principal(ctx), r.Body.ConnectedAccountID, r.Body.Email)
	if err != nil {
		return nil, err
	}
	return openapi.GetConnectedAccount200JSONResponse{Ok: true, ConnectedAccount: h.toConnectedAccount(a)}, nil
}

func (h *handlers) ListConnectedAccounts(
	ctx context.Context, r openapi.ListConnectedAccountsRequestObject,
) (openapi.ListConnectedAccountsResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	p, err := h.access.Auth.AsSeenBy(ctx, principal(ctx), r.Body.UserIdentifierKey)
	if err != nil {
		return nil, err
	}
	list, more, err := h.access.Accounts.ListConnectedAccounts(ctx, p, account.Filter{
		CustomerKey: r.Body.CustomerKey,
		Metadata:    r.Body.CustomMetadataHas,
		Search:      r.Body.Search,
		// The server has no spaces, so no account matches.
		Nothing: r.Body.SpaceID != "",
	}, page.Page)
	if err != nil {
		return nil, err
	}
	last := lastPosition(list, func(a account.ConnectedAccount) (time.Time, uuid.UUID) { return a.CreatedAt, a.ID })
	return openapi.ListConnectedAccounts200JSONResponse{
		Ok:                true,
		ConnectedAccounts: each(list, h.toConnectedAccount),
		Pagination:        page.pagination(more, last),
	}, nil
}

func (h *handlers) UpdateConnectedAccount(
	ctx context.Context, r openapi.UpdateConnectedAccountRequestObject,
) (openapi.UpdateConnectedAccountResponseObject, error) {
	u := account.Update{
		DisplayName:      r.Body.DisplayName,
		CustomerKey:      r.Body.CustomerKey,
		ManageNewDevices: r.Body.AutomaticallyManageNewDevices,
		Metadata:         r.Body.CustomMetadata,
	}
	if kinds := r.Body.AcceptedCapabilities; kinds != nil {
		u.Capabilities = new(each(*kinds, func(k api.AccountCapability) string { return string(k) }))
	}
	a, err := h.access.Accounts.UpdateConnectedAccount(ctx, principal(ctx), r.Body.ConnectedAccountID, u)
	if err != nil {
		return nil, err
	}
	return openapi.UpdateConnectedAccount200JSONResponse{Ok: true, ConnectedAccount: h.toConnectedAccount(a)}, nil
}

func (h *handlers) DeleteConnectedAccount(
	ctx context.Context, r openapi.DeleteConnectedAccountRequestObject,
) (openapi.DeleteConnectedAccountResponseObject, error) {
	if err := h.access.Accounts.DeleteConnectedAccount(ctx, principal(ctx), r.Body.ConnectedAccountID); err != nil {
		return nil, err
	}
	return openapi.DeleteConnectedAccount200JSONResponse{Ok: true}, nil
}

func (h *handlers) SyncConnectedAccount(
	ctx context.Context, r openapi.SyncConnectedAccountRequestObject,
) (openapi.SyncConnectedAccountResponseObject, error) {
	if err := h.access.Accounts.SyncConnectedAccount(ctx, principal(ctx), r.Body.ConnectedAccountID); err != nil {
		return nil, err
	}
	return openapi.SyncConnectedAccount200JSONResponse{Ok: true}, nil
}

func (h *handlers) SimulateDisconnectConnectedAccount(
	ctx context.Context, r openapi.SimulateDisconnectConnectedAccountRequestObject,
) (openapi.SimulateDisconnectConnectedAccountResponseObject, error) {
	err := h.simulated(ctx, func(p domain.Principal) error {
		return h.simulator.DisconnectAccount(ctx, p, r.Body.ConnectedAccountID)
	}, func(now domain.Principal) error {
		_, err := h.access.Accounts.GetConnectedAccount(ctx, now, r.Body.ConnectedAccountID, "")
		return err
	})
	if err != nil {
		return nil, err
	}
	return openapi.SimulateDisconnectConnectedAccount200JSONResponse{Ok: true}, nil
}

// accountTypes are the account types of simulated accounts, by adapter.
var accountTypes = map[string]struct{ name, display string }{
	account.SandboxAdapter:       {"sandbox", "Simulated devices"},
	account.SandboxAccessAdapter: {"sandbox_access_system", "Sandbox Access"},
}

func (h *handlers) toConnectedAccount(a account.ConnectedAccount) api.ConnectedAccount {
	name, display := h.accountType(a)
	return api.ConnectedAccount{
		ConnectedAccountID:     a.ID.String(),
		AccountType:            name,
		AccountTypeDisplayName: display,
		AcceptedCapabilities: each(
			a.Capabilities,
			func(k string) api.AccountCapability { return api.AccountCapability(k) },
		),
		AutomaticallyManageNewDevices: a.ManageNewDevices,
		CreatedAt:                     a.CreatedAt,
		CustomMetadata:                a.Metadata,
		CustomerKey:                   a.CustomerKey,
		DisplayName:                   a.DisplayName,
		Errors:                        toErrors(a.Errors),
		Warnings:                      h.accountWarnings(a),
		UserIdentifier: api.UserIdentifier{
			APIURL:   a.User.APIURL,
			Email:    a.User.Email,
			Username: a.User.Username,
		},
	}
}
