package rest

import (
	"cmp"
	"context"
	"net/http"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// ListLocks answers /locks/list.
func (h *handlers) ListLocks(
	ctx context.Context, r openapi.ListLocksRequestObject,
) (openapi.ListLocksResponseObject, error) {
	return h.listKind(ctx, *r.Body, "lock", "locks")
}

// ListNoiseSensors answers /noise_sensors/list.
func (h *handlers) ListNoiseSensors(
	ctx context.Context, r openapi.ListNoiseSensorsRequestObject,
) (openapi.ListNoiseSensorsResponseObject, error) {
	return h.listKind(ctx, api.ListLocksRequest(*r.Body), "noise_detection", "noise_sensors")
}

// ListThermostats answers /thermostats/list.
func (h *handlers) ListThermostats(
	ctx context.Context, r openapi.ListThermostatsRequestObject,
) (openapi.ListThermostatsResponseObject, error) {
	return h.listKind(ctx, api.ListLocksRequest(*r.Body), "thermostat", "thermostats")
}

// listKind lists all matching devices of a kind in one response, because the contract has no pages for these lists.
func (h *handlers) listKind(ctx context.Context, r api.ListLocksRequest, kind, name string) (twoNameList, error) {
	p, err := h.access.Auth.AsSeenBy(ctx, principal(ctx), r.UserIdentifierKey)
	if err != nil {
		return twoNameList{}, err
	}
	filter := device.Filter{
		IDs:           r.DeviceIds,
		AccountIDs:    intersect(r.ConnectedAccountID, r.ConnectedAccountIds),
		CreatedBefore: r.CreatedBefore,
		Types:         valuesOf(intersect(r.DeviceType, r.DeviceTypes)),
		Kind:          kind,
		Manufacturer:  r.Manufacturer,
		IncludeIf:     r.IncludeIf,
		ExcludeIf:     r.ExcludeIf,
		Metadata:      r.CustomMetadataHas,
		Search:        r.Search,
		CustomerKey:   r.CustomerKey,
		WebviewID:     r.ConnectWebviewID,
		// The server has no spaces, so no device matches.
		Nothing: r.SpaceID+r.UnstableLocationID != "",
	}
	list, err := streamRows(
		ctx,
		domain.Page{Limit: cmp.Or(r.Limit, 1<<29)},
		h.recheckAccess,
		func(ctx context.Context, part domain.Page) ([]device.Device, bool, error) {
			return h.access.Devices.ListDevices(ctx, p, filter, part)
		},
		devicePosition,
		toDevice,
		"devices",
		name,
	)
	return twoNameList{list}, err
}

// twoNameList is the response of a list without pages that returns its rows under two names.
type twoNameList struct{ rows }

func (l twoNameList) write(w http.ResponseWriter) error {
	return l.answer(w, func(part) any { return map[string]bool{"ok": true} })
}

func (l twoNameList) VisitListLocksResponse(w http.ResponseWriter) error { return l.write(w) }

func (l twoNameList) VisitListNoiseSensorsResponse(w http.ResponseWriter) error { return l.write(w) }

func (l twoNameList) VisitListThermostatsResponse(w http.ResponseWriter) error { return l.write(w) }
