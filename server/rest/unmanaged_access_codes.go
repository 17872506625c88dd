package rest

import (
	"cmp"
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) ListUnmanagedAccessCodes(
	ctx context.Context, r openapi.ListUnmanagedAccessCodesRequestObject,
) (openapi.ListUnmanagedAccessCodesResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	p, err := h.access.Auth.AsSeenBy(ctx, principal(ctx), r.Body.UserIdentifierKey)
	if err != nil {
		return nil, err
	}
	list, err := streamRows(
		ctx,
		page.Page,
		h.recheckAccess,
		func(ctx context.Context, part domain.Page) ([]device.Code, bool, error) {
			return h.access.Devices.ListCodes(
				ctx,
				p,
				device.CodeFilter{DeviceID: r.Body.DeviceID, Search: r.Body.Search},
				part,
			)
		},
		codePosition,
		toUnmanagedAccessCode,
		"access_codes",
	)
	return longPage{list, page}, err
}

func (h *handlers) GetUnmanagedAccessCode(
	ctx context.Context, r openapi.GetUnmanagedAccessCodeRequestObject,
) (openapi.GetUnmanagedAccessCodeResponseObject, error) {
	p := principal(ctx)
	if err := authorizePIN(p, r.Body.Code); err != nil {
		return nil, err
	}
	c, err := h.access.Devices.GetCode(ctx, p, false, r.Body.AccessCodeID, r.Body.DeviceID, r.Body.Code)
	if err != nil {
		return nil, err
	}
	return openapi.GetUnmanagedAccessCode200JSONResponse{Ok: true, AccessCode: toUnmanagedAccessCode(c)}, nil
}

func (h *handlers) UpdateUnmanagedAccessCode(
	ctx context.Context, r openapi.UpdateUnmanagedAccessCodeRequestObject,
) (openapi.UpdateUnmanagedAccessCodeResponseObject, error) {
	if !r.Body.IsManaged {
		return nil, invalid([]issue{{
			path:    []string{"is_managed"},
			message: "Must be true: an unmanaged code can only be converted",
		}})
	}
	external := cmp.Or(r.Body.IsExternalModificationAllowed, r.Body.AllowExternalModification)
	attempt, err := h.access.Devices.ConvertCode(ctx, principal(ctx), r.Body.AccessCodeID, external)
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	return openapi.UpdateUnmanagedAccessCode200JSONResponse(answer), nil
}

func (h *handlers) ConvertUnmanagedAccessCode(
	ctx context.Context, r openapi.ConvertUnmanagedAccessCodeRequestObject,
) (openapi.ConvertUnmanagedAccessCodeResponseObject, error) {
	external := cmp.Or(r.Body.IsExternalModificationAllowed, r.Body.AllowExternalModification)
	attempt, err := h.access.Devices.ConvertCode(ctx, principal(ctx), r.Body.AccessCodeID, external)
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	return openapi.ConvertUnmanagedAccessCode200JSONResponse(answer), nil
}

func (h *handlers) DeleteUnmanagedAccessCode(
	ctx context.Context, r openapi.DeleteUnmanagedAccessCodeRequestObject,
) (openapi.DeleteUnmanagedAccessCodeResponseObject, error) {
	attempt, err := h.access.Devices.DeleteUnmanagedCode(ctx, principal(ctx), r.Body.AccessCodeID)
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	return openapi.DeleteUnmanagedAccessCode200JSONResponse(answer), nil
}

func (h *handlers) SimulateCreateUnmanagedAccessCode(
	ctx context.Context, r openapi.SimulateCreateUnmanagedAccessCodeRequestObject,
) (openapi.SimulateCreateUnmanagedAccessCodeResponseObject, error) {
	var c device.Code
	err := h.simulatedUpon(ctx, r.Body.DeviceID, func(p domain.Principal) (err error) {
		c, err = h.simulator.AddUnmanagedCode(ctx, p, r.Body.DeviceID, r.Body.Name, r.Body.Code)
		return err
	})
	if err != nil {
		return nil, err
	}
	return openapi.SimulateCreateUnmanagedAccessCode200JSONResponse{Ok: true, AccessCode: toUnmanagedAccessCode(c)}, nil
}

func toUnmanagedAccessCode(c device.Code) api.UnmanagedAccessCode {
	return api.UnmanagedAccessCode{
		AccessCodeID:                    c.ID.String(),
		DeviceID:                        c.DeviceID.String(),
		WorkspaceID:                     c.WorkspaceID.String(),
		Name:                            c.Name,
		Code:                            c.PIN,
		CreatedAt:                       c.CreatedAt,
		Type:                            typeOfCode(c),
		Status:                          statusOfUnmanaged(c),
		StartsAt:                        c.StartsAt,
		EndsAt:                          c.EndsAt,
		CannotBeManaged:                 c.CannotBeManaged,
		CannotDeleteUnmanagedAccessCode: c.CannotBeDeleted,
		UpstreamAccessCodeID:            upstreamID(c.VendorRef),
		Errors:                          toErrors(c.Errors),
		Warnings:                        toWarnings(c.Warnings),
	}
}

// statusOfUnmanaged returns `set` also for a code that is being removed, because it is on its device until the
// removal is confirmed.
func statusOfUnmanaged(c device.Code) string {
	if c.Status == device.StatusUnset {
		return string(device.StatusUnset)
	}
	return string(device.StatusSet)
}
