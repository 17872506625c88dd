package rest

import (
	"cmp"
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) CreateMultipleAccessCodes(
	ctx context.Context, r openapi.CreateMultipleAccessCodesRequestObject,
) (openapi.CreateMultipleAccessCodesResponseObject, error) {
	external := cmp.Or(r.Body.IsExternalModificationAllowed, r.Body.AllowExternalModification)
	codes, err := h.access.Devices.CreateCodes(ctx, principal(ctx), device.NewCodes{
		DeviceIDs: r.Body.DeviceIds, OwnPINs: r.Body.BehaviorWhenCodeCannotBeShared == api.CreateRandomCode,
		NewCode: device.NewCode{
			Name:                        optional(r.Body.Name),
			PIN:                         r.Body.Code,
			PreferredLength:             r.Body.PreferredCodeLength,
			StartsAt:                    r.Body.StartsAt,
			EndsAt:                      r.Body.EndsAt,
			ExternalModificationAllowed: external != nil && *external,
			BackupPool:                  r.Body.UseBackupAccessCodePool,
			NativeScheduling:            *r.Body.PreferNativeScheduling,
			EvenIfOffline:               *r.Body.AttemptForOfflineDevice,
		},
	})
	if err != nil {
		return nil, err
	}
	return openapi.CreateMultipleAccessCodes200JSONResponse{Ok: true, AccessCodes: each(codes, toAccessCode)}, nil
}

func (h *handlers) UpdateMultipleAccessCodes(
	ctx context.Context, r openapi.UpdateMultipleAccessCodesRequestObject,
) (openapi.UpdateMultipleAccessCodesResponseObject, error) {
	err := h.access.Devices.UpdateCodes(ctx, principal(ctx), r.Body.CommonCodeKey, device.CodeChange{
		Name:          r.Body.Name,
		StartsAt:      r.Body.StartsAt,
		EndsAt:        r.Body.EndsAt,
		EvenIfOffline: true,
	})
	if err != nil {
		return nil, err
	}
	return openapi.UpdateMultipleAccessCodes200JSONResponse{Ok: true}, nil
}
