package rest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/phone"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// ListPhones lists all matching phones in one response, because the contract has no pages for this list.
func (h *handlers) ListPhones(
	ctx context.Context, r openapi.ListPhonesRequestObject,
) (openapi.ListPhonesResponseObject, error) {
	p := principal(ctx)
	filter := phone.Filter{
		IdentityID: r.Body.OwnerUserIdentityID,
		// The server has no credentials, so no phone has one.
		Nothing: r.Body.AcsCredentialID != "",
	}
	list, err := streamRows(
		ctx,
		domain.Page{Limit: 1 << 29},
		h.recheckAccess,
		func(ctx context.Context, part domain.Page) ([]phone.Phone, bool, error) {
			return h.access.Phones.ListPhones(ctx, p, filter, part)
		},
		func(one phone.Phone) (time.Time, uuid.UUID) { return one.CreatedAt, one.ID },
		toPhone,
		"phones",
	)
	return phoneList{list}, err
}

// phoneList is the response of the list of phones.
type phoneList struct{ rows }

func (l phoneList) VisitListPhonesResponse(w http.ResponseWriter) error {
	return l.answer(w, func(part) any { return map[string]bool{"ok": true} })
}

func (h *handlers) GetPhone(
	ctx context.Context, r openapi.GetPhoneRequestObject,
) (openapi.GetPhoneResponseObject, error) {
	one, err := h.access.Phones.GetPhone(ctx, principal(ctx), r.Body.DeviceID)
	if err != nil {
		return nil, err
	}
	return openapi.GetPhone200JSONResponse{Ok: true, Phone: toPhone(one)}, nil
}

func (h *handlers) DeactivatePhone(
	ctx context.Context, r openapi.DeactivatePhoneRequestObject,
) (openapi.DeactivatePhoneResponseObject, error) {
	if err := h.access.Phones.Deactivate(ctx, principal(ctx), r.Body.DeviceID); err != nil {
		return nil, err
	}
	return openapi.DeactivatePhone200JSONResponse{Ok: true}, nil
}

func (h *handlers) SimulateCreateSandboxPhone(
	ctx context.Context, r openapi.SimulateCreateSandboxPhoneRequestObject,
) (openapi.SimulateCreateSandboxPhoneResponseObject, error) {
	one, err := h.access.Phones.CreatePhone(ctx, principal(ctx), phone.NewPhone{
		IdentityID:      r.Body.UserIdentityID,
		InstallationID:  r.Body.CustomSdkInstallationID,
		OperatingSystem: r.Body.PhoneMetadata.OperatingSystem,
		Model:           r.Body.PhoneMetadata.DeviceModel,
		EndpointID:      r.Body.AssaAbloyMetadata.SeosTsmEndpointID,
	})
	if err != nil {
		return nil, err
	}
	return openapi.SimulateCreateSandboxPhone200JSONResponse{Ok: true, Phone: toPhone(one)}, nil
}

func toPhone(p phone.Phone) api.Phone {
	return api.Phone{
		DeviceID:       p.ID.String(),
		WorkspaceID:    p.WorkspaceID.String(),
		DeviceType:     p.OperatingSystem + "_phone",
		DisplayName:    p.Model,
		CreatedAt:      p.CreatedAt,
		CustomMetadata: api.Metadata{},
		Errors:         []api.Problem{},
		Warnings:       []api.Problem{},
		Properties: api.PhoneProperties{
			AssaAbloyCredentialServiceMetadata: api.AssaAbloyPhone{
				Endpoints: []api.AssaAbloyEndpoint{{
					EndpointID: strconv.FormatFloat(p.EndpointID, 'f', -1, 64),
					IsActive:   true,
				}},
				HasActiveEndpoint: true,
			},
		},
	}
}
