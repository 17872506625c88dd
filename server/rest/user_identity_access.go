package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) GrantUserIdentityAccessToDevice(
	ctx context.Context, r openapi.GrantUserIdentityAccessToDeviceRequestObject,
) (openapi.GrantUserIdentityAccessToDeviceResponseObject, error) {
	if err := h.acs.GrantDevice(ctx, principal(ctx), r.Body.UserIdentityID, r.Body.DeviceID); err != nil {
		return nil, err
	}
	return openapi.GrantUserIdentityAccessToDevice200JSONResponse{Ok: true}, nil
}

func (h *handlers) RevokeUserIdentityAccessToDevice(
	ctx context.Context, r openapi.RevokeUserIdentityAccessToDeviceRequestObject,
) (openapi.RevokeUserIdentityAccessToDeviceResponseObject, error) {
	if err := h.acs.RevokeDevice(ctx, principal(ctx), r.Body.UserIdentityID, r.Body.DeviceID); err != nil {
		return nil, err
	}
	return openapi.RevokeUserIdentityAccessToDevice200JSONResponse{Ok: true}, nil
}

func (h *handlers) ListDevicesOfUserIdentity(
	ctx context.Context, r openapi.ListDevicesOfUserIdentityRequestObject,
) (openapi.ListDevicesOfUserIdentityResponseObject, error) {
	list, err := h.acs.DevicesOf(ctx, principal(ctx), r.Body.UserIdentityID)
	if err != nil {
		return nil, err
	}
	shown := each(list, toDevice)
	return openapi.ListDevicesOfUserIdentity200JSONResponse{Ok: true, Devices: shown, AccessibleDevices: shown}, nil
}

func (h *handlers) ListEntrancesOfUserIdentity(
	ctx context.Context, r openapi.ListEntrancesOfUserIdentityRequestObject,
) (openapi.ListEntrancesOfUserIdentityResponseObject, error) {
	list, err := h.acs.EntrancesOf(ctx, principal(ctx), r.Body.UserIdentityID)
	if err != nil {
		return nil, err
	}
	return openapi.ListEntrancesOfUserIdentity200JSONResponse{
		Ok:           true,
		AcsEntrances: each(list, toAcsEntrance),
	}, nil
}

func (h *handlers) MergeUserIdentities(
	ctx context.Context, r openapi.MergeUserIdentitiesRequestObject,
) (openapi.MergeUserIdentitiesResponseObject, error) {
	err := h.acs.MergeIdentities(ctx, principal(ctx), acs.Merge{
		ID:   r.Body.UserIdentityID,
		Key:  r.Body.UserIdentityKey,
		IDs:  r.Body.MergedUserIdentityIds,
		Keys: r.Body.MergedUserIdentityKeys,
	})
	if err != nil {
		return nil, err
	}
	return openapi.MergeUserIdentities200JSONResponse{Ok: true}, nil
}

// All user identities are created with the API, so none is unmanaged.

func (h *handlers) GetUnmanagedUserIdentity(
	_ context.Context, r openapi.GetUnmanagedUserIdentityRequestObject,
) (openapi.GetUnmanagedUserIdentityResponseObject, error) {
	return nil, acs.NoUnmanagedIdentity(r.Body.UserIdentityID)
}

func (h *handlers) ListUnmanagedUserIdentities(
	ctx context.Context, r openapi.ListUnmanagedUserIdentitiesRequestObject,
) (openapi.ListUnmanagedUserIdentitiesResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	return openapi.ListUnmanagedUserIdentities200JSONResponse{
		Ok:             true,
		UserIdentities: []api.UnmanagedUserIdentity{},
		Pagination:     page.pagination(false, domain.Position{}),
	}, nil
}

func (h *handlers) UpdateUnmanagedUserIdentity(
	_ context.Context, r openapi.UpdateUnmanagedUserIdentityRequestObject,
) (openapi.UpdateUnmanagedUserIdentityResponseObject, error) {
	if !r.Body.IsManaged {
		return nil, domain.Invalidf("is_managed", "Must be true")
	}
	return nil, acs.NoUnmanagedIdentity(r.Body.UserIdentityID)
}
