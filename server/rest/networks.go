package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// ListNetworks answers /networks/list.
func (h *handlers) ListNetworks(
	ctx context.Context, _ openapi.ListNetworksRequestObject,
) (openapi.ListNetworksResponseObject, error) {
	all, err := h.access.Accounts.ListNetworks(ctx, principal(ctx))
	if err != nil {
		return nil, err
	}
	return openapi.ListNetworks200JSONResponse{Ok: true, Networks: each(all, toNetwork)}, nil
}

// GetNetwork answers /networks/get.
func (h *handlers) GetNetwork(
	ctx context.Context, r openapi.GetNetworkRequestObject,
) (openapi.GetNetworkResponseObject, error) {
	n, err := h.access.Accounts.GetNetwork(ctx, principal(ctx), r.Body.NetworkID)
	if err != nil {
		return nil, err
	}
	return openapi.GetNetwork200JSONResponse{Ok: true, Network: toNetwork(n)}, nil
}

func toNetwork(n account.Network) api.Network {
	return api.Network{
		NetworkID:   n.ID.String(),
		WorkspaceID: n.WorkspaceID.String(),
		DisplayName: n.Name,
		CreatedAt:   n.CreatedAt.UTC(),
	}
}
