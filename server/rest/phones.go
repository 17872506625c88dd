package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// ListPhones returns an empty list, because no adapter has phones.
func (h *handlers) ListPhones(
	context.Context, openapi.ListPhonesRequestObject,
) (openapi.ListPhonesResponseObject, error) {
	return openapi.ListPhones200JSONResponse{Ok: true, Phones: []api.Phone{}}, nil
}

// GetPhone returns an error of kind NotFound.
func (h *handlers) GetPhone(
	_ context.Context, r openapi.GetPhoneRequestObject,
) (openapi.GetPhoneResponseObject, error) {
	return nil, &domain.Error{
		Kind:    domain.NotFound,
		Type:    "phone_not_found",
		Message: "Could not find a phone with this device_id.",
		Data:    map[string]any{"device_id": r.Body.DeviceID},
	}
}
