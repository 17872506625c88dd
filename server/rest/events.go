package rest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

func (h *handlers) GetEvent(ctx context.Context, r GetEventRequestObject) (GetEventResponseObject, error) {
	e, err := h.access.GetEvent(ctx, principal(ctx), r.Body.EventID, r.Body.DeviceID, r.Body.EventType)
	if err != nil {
		return nil, err
	}
	return GetEvent200JSONResponse{Ok: true, Event: toEvent(e)}, nil
}

func (h *handlers) ListEvents(ctx context.Context, r ListEventsRequestObject) (ListEventsResponseObject, error) {
	list, err := h.access.ListEvents(ctx, principal(ctx), access.EventFilter{
		Since: r.Body.Since, Between: r.Body.Between, IDs: r.Body.EventIds,
		DeviceIDs: both(r.Body.DeviceID, r.Body.DeviceIds),
		CodeIDs:   both(r.Body.AccessCodeID, r.Body.AccessCodeIds),
		Types:     valuesOf(both(r.Body.EventType, r.Body.EventTypes)),

		ConnectedAccountID: r.Body.ConnectedAccountID, WebviewID: r.Body.ConnectWebviewID,
		CustomerKey: r.Body.CustomerKey, IdentityID: r.Body.UserIdentityID,
		SystemIDs:    both(r.Body.AcsSystemID, r.Body.AcsSystemIds),
		SystemUserID: r.Body.AcsUserID, AccessGroupID: r.Body.AcsAccessGroupID, EntranceID: r.Body.AcsEntranceID,
		// There are none of these here, so no event is about one.
		Nothing: r.Body.AcsCredentialID+r.Body.AcsEncoderID+r.Body.AccessGrantID+r.Body.AccessMethodID+r.Body.SpaceID != "" ||
			r.Body.AccessGrantIds != nil || r.Body.AccessMethodIds != nil || r.Body.SpaceIds != nil,
		Limit: r.Body.Limit, Offset: r.Body.UnstableOffset,
	})
	if err != nil {
		return nil, err
	}
	return ListEvents200JSONResponse{Ok: true, Events: each(list, toEvent)}, nil
}

func toEvent(e access.Event) api.Event {
	return api.Event{
		EventID: e.ID.String(), EventType: e.Type, WorkspaceID: e.WorkspaceID.String(),
		CreatedAt: e.CreatedAt, OccurredAt: e.OccurredAt, AdditionalProperties: e.Fields,
	}
}
