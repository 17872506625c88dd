package rest

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) GetAccessCodeTimeline(
	ctx context.Context, r openapi.GetAccessCodeTimelineRequestObject,
) (openapi.GetAccessCodeTimelineResponseObject, error) {
	filter := device.TimelineFilter{
		CodeID: r.Body.AccessCodeID,
		Before: r.Body.Before,
		After:  r.Body.After,
		Limit:  r.Body.Limit,
	}
	if r.Body.EventTypes != nil {
		filter.Types = each(*r.Body.EventTypes, func(t api.TimelineEventType) string { return string(t) })
	}
	part, err := h.access.Devices.CodeTimeline(ctx, principal(ctx), filter)
	if err != nil {
		return nil, err
	}
	return openapi.GetAccessCodeTimeline200JSONResponse{
		Ok: true, TimelineEvents: each(part.Events, toTimelineEvent),
		Pagination: api.TimelinePagination{
			HasMore:    part.Next != nil,
			NextCursor: cursorOf(part.Next),
			PrevCursor: cursorOf(part.Previous),
		},
	}, nil
}

// cursorOf formats a time as a cursor for earlier or later events.
func cursorOf(at *time.Time) *string {
	if at == nil {
		return nil
	}
	return new(at.Format(time.RFC3339Nano))
}

func toTimelineEvent(e device.TimelineEvent) api.TimelineEvent {
	return api.TimelineEvent{
		TimelineEventID: e.ID.String(),
		EventType:       e.Type,
		OccurredAt:      e.At,
		Description:     e.Description,
		Actor:           api.TimelineActor{Type: api.TimelineActorType(e.Actor)},
		Details:         e.Details,
		RelatedResourceIds: api.TimelineResources{
			EventID:            e.ID.String(),
			DeviceID:           e.DeviceID,
			ConnectedAccountID: e.AccountID,
		},
	}
}
