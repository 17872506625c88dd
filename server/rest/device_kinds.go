package rest

import (
	"cmp"
	"context"
	"net/http"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// ListLocks lists devices of any type, because adapters only list locks.
func (h *handlers) ListLocks(
	ctx context.Context, r openapi.ListLocksRequestObject,
) (openapi.ListLocksResponseObject, error) {
	return h.listKind(ctx, *r.Body, "locks")
}

// ListNoiseSensors lists devices of the default device_types of the contract. So does ListThermostats.
func (h *handlers) ListNoiseSensors(
	ctx context.Context, r openapi.ListNoiseSensorsRequestObject,
) (openapi.ListNoiseSensorsResponseObject, error) {
	return h.listKind(ctx, api.ListLocksRequest(*r.Body), "noise_sensors")
}

func (h *handlers) ListThermostats(
	ctx context.Context, r openapi.ListThermostatsRequestObject,
) (openapi.ListThermostatsResponseObject, error) {
	return h.listKind(ctx, api.ListLocksRequest(*r.Body), "thermostats")
}

// listKind lists all matching devices in one response, because the contract has no pages for these lists.
func (h *handlers) listKind(ctx context.Context, r api.ListLocksRequest, name string) (kindList, error) {
	p, err := h.access.AsSeenBy(ctx, principal(ctx), r.UserIdentifierKey)
	if err != nil {
		return kindList{}, err
	}
	filter := access.DeviceFilter{
		IDs:           r.DeviceIds,
		AccountIDs:    both(r.ConnectedAccountID, r.ConnectedAccountIds),
		CreatedBefore: r.CreatedBefore,
		Types:         valuesOf(both(r.DeviceType, r.DeviceTypes)),
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
	list, err := inParts(ctx, access.Page{Limit: cmp.Or(r.Limit, 1<<29)}, h.still, func(ctx context.Context, part access.Page) ([]access.Device, bool, error) {
		return h.access.ListDevices(ctx, p, filter, part)
	}, devicePosition, toDevice, "devices", name)
	return kindList{list}, err
}

// twoNameList is the response of a list without pages that returns its rows under two names.
type kindList struct{ rows }

func (l kindList) write(w http.ResponseWriter) error {
	return l.answer(w, func(part) any { return map[string]bool{"ok": true} })
}

func (l kindList) VisitListLocksResponse(w http.ResponseWriter) error        { return l.write(w) }
func (l kindList) VisitListNoiseSensorsResponse(w http.ResponseWriter) error { return l.write(w) }
func (l kindList) VisitListThermostatsResponse(w http.ResponseWriter) error  { return l.write(w) }
