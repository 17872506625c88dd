package rest

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) CreateAccessCode(
	ctx context.Context, r openapi.CreateAccessCodeRequestObject,
) (openapi.CreateAccessCodeResponseObject, error) {
	external := cmp.Or(r.Body.IsExternalModificationAllowed, r.Body.AllowExternalModification)
	p := principal(ctx)
	code, attempt, err := h.access.Devices.CreateCode(ctx, p, device.NewCode{
		DeviceID:                    r.Body.DeviceID,
		Name:                        optional(r.Body.Name),
		PIN:                         r.Body.Code,
		PreferredLength:             r.Body.PreferredCodeLength,
		StartsAt:                    r.Body.StartsAt,
		EndsAt:                      r.Body.EndsAt,
		CommonCodeKey:               r.Body.CommonCodeKey,
		BackupPool:                  r.Body.UseBackupAccessCodePool,
		Offline:                     r.Body.IsOfflineAccessCode || r.Body.UseOfflineAccessCode,
		OneTime:                     r.Body.IsOneTimeUse,
		Rounding:                    string(r.Body.MaxTimeRounding),
		ExternalModificationAllowed: external != nil && *external,
		NativeScheduling:            *r.Body.PreferNativeScheduling,
		EvenIfOffline:               *r.Body.AttemptForOfflineDevice,
	})
	if err != nil {
		return nil, err
	}
	if r.Body.Sync {
		if attempt, err = h.awaitAttempt(ctx, attempt); err != nil {
			return nil, err
		}
		if code, err = h.access.Devices.GetCode(ctx, p, true, code.ID.String(), "", ""); err != nil {
			return nil, err
		}
	}
	made := toAccessCode(code)
	return openapi.CreateAccessCode200JSONResponse{
		Ok:            true,
		AccessCode:    made,
		ActionAttempt: showAttempt(attempt, &made),
	}, nil
}

func (h *handlers) GetAccessCode(
	ctx context.Context, r openapi.GetAccessCodeRequestObject,
) (openapi.GetAccessCodeResponseObject, error) {
	p := principal(ctx)
	if err := authorizePIN(p, r.Body.Code); err != nil {
		return nil, err
	}
	c, err := h.access.Devices.GetCode(ctx, p, true, r.Body.AccessCodeID, r.Body.DeviceID, r.Body.Code)
	if err != nil {
		return nil, err
	}
	return openapi.GetAccessCode200JSONResponse{Ok: true, AccessCode: toAccessCode(c)}, nil
}

func (h *handlers) ListAccessCodes(
	ctx context.Context, r openapi.ListAccessCodesRequestObject,
) (openapi.ListAccessCodesResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	p, err := h.access.Auth.AsSeenBy(ctx, principal(ctx), r.Body.UserIdentifierKey)
	if err != nil {
		return nil, err
	}
	filter := device.CodeFilter{
		Managed:     true,
		DeviceID:    r.Body.DeviceID,
		IDs:         r.Body.AccessCodeIds,
		CustomerKey: r.Body.CustomerKey,
		Search:      r.Body.Search,
		// The server has no grants or methods, so no code matches.
		Nothing: r.Body.AccessGrantID+r.Body.AccessGrantKey+r.Body.AccessMethodID != "",
	}
	list, err := streamRows(
		ctx,
		page.Page,
		h.recheckAccess,
		func(ctx context.Context, part domain.Page) ([]device.Code, bool, error) {
			return h.access.Devices.ListCodes(ctx, p, filter, part)
		},
		codePosition,
		toAccessCode,
		"access_codes",
	)
	return longPage{list, page}, err
}

func codePosition(c device.Code) (time.Time, uuid.UUID) { return c.CreatedAt, c.ID }

func (h *handlers) UpdateAccessCode(
	ctx context.Context, r openapi.UpdateAccessCodeRequestObject,
) (openapi.UpdateAccessCodeResponseObject, error) {
	attempt, err := h.access.Devices.UpdateCode(ctx, principal(ctx), device.CodeChange{
		ID:                          r.Body.AccessCodeID,
		DeviceID:                    r.Body.DeviceID,
		Name:                        r.Body.Name,
		PIN:                         r.Body.Code,
		Type:                        string(r.Body.Type),
		StartsAt:                    r.Body.StartsAt,
		EndsAt:                      r.Body.EndsAt,
		Managed:                     r.Body.IsManaged,
		ExternalModificationAllowed: cmp.Or(r.Body.IsExternalModificationAllowed, r.Body.AllowExternalModification),
		EvenIfOffline:               *r.Body.AttemptForOfflineDevice,
	})
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	return openapi.UpdateAccessCode200JSONResponse(answer), nil
}

func (h *handlers) DeleteAccessCode(
	ctx context.Context, r openapi.DeleteAccessCodeRequestObject,
) (openapi.DeleteAccessCodeResponseObject, error) {
	attempt, err := h.access.Devices.DeleteCode(ctx, principal(ctx), r.Body.AccessCodeID, r.Body.DeviceID)
	answer, err := h.attemptResponse(ctx, attempt, err, r.Body.Sync)
	if err != nil {
		return nil, err
	}
	return openapi.DeleteAccessCode200JSONResponse(answer), nil
}

func (h *handlers) GenerateAccessCode(
	ctx context.Context, r openapi.GenerateAccessCodeRequestObject,
) (openapi.GenerateAccessCodeResponseObject, error) {
	d, pin, err := h.access.Devices.GenerateCode(ctx, principal(ctx), r.Body.DeviceID)
	if err != nil {
		return nil, err
	}
	return openapi.GenerateAccessCode200JSONResponse{
		Ok:            true,
		GeneratedCode: api.GeneratedCode{DeviceID: d.ID.String(), Code: pin},
	}, nil
}

func toAccessCode(c device.Code) api.AccessCode {
	return api.AccessCode{
		AccessCodeID:                  c.ID.String(),
		DeviceID:                      c.DeviceID.String(),
		WorkspaceID:                   c.WorkspaceID.String(),
		Name:                          c.Name,
		Appearance:                    api.AccessCodeAppearance{Name: c.VendorName},
		Code:                          c.PIN,
		CommonCodeKey:                 c.CommonCodeKey,
		CreatedAt:                     c.CreatedAt,
		Type:                          typeOfCode(c),
		Status:                        api.AccessCodeStatus(c.Status),
		StartsAt:                      c.StartsAt,
		EndsAt:                        c.EndsAt,
		IsManaged:                     true,
		IsExternalModificationAllowed: c.ExternalModificationAllowed,
		IsScheduledOnDevice:           c.TimeBound() && c.OnDevice,
		IsWaitingForCodeAssignment:    c.WaitingForPIN,
		IsOfflineAccessCode:           c.OfflineKind != "",
		IsOneTimeUse:                  c.OfflineKind == device.OfflineOneTime,
		IsBackup:                      c.Backup,
		IsBackupAccessCodeAvailable:   c.BackupAvailable,
		PulledBackupAccessCodeID:      identifier(c.PulledBackup),
		UpstreamAccessCodeID:          upstreamID(c.VendorRef),
		Errors:                        toErrors(c.Errors),
		Warnings:                      toWarnings(c.Warnings),
		PendingMutations:              each(c.Mutations, toMutation),
	}
}

func typeOfCode(c device.Code) api.AccessCodeType {
	if c.TimeBound() {
		return api.TimeBound
	}
	return api.Ongoing
}

func toMutation(m device.Mutation) api.PendingMutation {
	return api.PendingMutation{
		CreatedAt:    m.At,
		Message:      m.Message,
		MutationCode: m.Code,
		ScheduledAt:  m.ScheduledAt,
		From:         m.From,
		To:           m.To,
	}
}

func (h *handlers) PullBackupAccessCode(
	ctx context.Context, r openapi.PullBackupAccessCodeRequestObject,
) (openapi.PullBackupAccessCodeResponseObject, error) {
	c, err := h.access.Devices.PullBackupCode(ctx, principal(ctx), r.Body.AccessCodeID)
	if err != nil {
		return nil, err
	}
	shown := toAccessCode(c)
	return openapi.PullBackupAccessCode200JSONResponse{Ok: true, AccessCode: shown, BackupAccessCode: shown}, nil
}

func (h *handlers) ReportDeviceConstraints(
	ctx context.Context, r openapi.ReportDeviceConstraintsRequestObject,
) (openapi.ReportDeviceConstraintsResponseObject, error) {
	err := h.access.Devices.ReportCodeLengths(
		ctx,
		principal(ctx),
		r.Body.DeviceID,
		r.Body.SupportedCodeLengths,
		r.Body.MinCodeLength,
		r.Body.MaxCodeLength,
	)
	if err != nil {
		return nil, err
	}
	return openapi.ReportDeviceConstraints200JSONResponse{Ok: true}, nil
}
