package rest

import (
	"context"
	"net/http"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) GetEvent(
	ctx context.Context, r openapi.GetEventRequestObject,
) (openapi.GetEventResponseObject, error) {
	e, err := h.access.Events.GetEvent(ctx, principal(ctx), r.Body.EventID, r.Body.DeviceID, r.Body.EventType)
	if err != nil {
		return nil, err
	}
	return oneEvent{Ok: true, Event: e}, nil
}

func (h *handlers) ListEvents(
	ctx context.Context, r openapi.ListEventsRequestObject,
) (openapi.ListEventsResponseObject, error) {
	list, err := h.access.Events.ListEvents(ctx, principal(ctx), event.Filter{
		Since:     r.Body.Since,
		Between:   r.Body.Between,
		IDs:       r.Body.EventIds,
		DeviceIDs: intersect(r.Body.DeviceID, r.Body.DeviceIds),
		CodeIDs:   intersect(r.Body.AccessCodeID, r.Body.AccessCodeIds),
		Types:     valuesOf(intersect(r.Body.EventType, r.Body.EventTypes)),

		ConnectedAccountID: r.Body.ConnectedAccountID,
		WebviewID:          r.Body.ConnectWebviewID,
		CustomerKey:        r.Body.CustomerKey,
		IdentityID:         r.Body.UserIdentityID,
		SystemIDs:          intersect(r.Body.AcsSystemID, r.Body.AcsSystemIds),
		SystemUserID:       r.Body.AcsUserID,
		AccessGroupID:      r.Body.AcsAccessGroupID,
		EntranceID:         r.Body.AcsEntranceID,
		// The server has none of these, so no event matches.
		Nothing: r.Body.AcsCredentialID+r.Body.AcsEncoderID+r.Body.AccessGrantID+r.Body.AccessMethodID+r.Body.SpaceID != "" ||
			r.Body.AccessGrantIds != nil ||
			r.Body.AccessMethodIds != nil ||
			r.Body.SpaceIds != nil,
		Limit:  r.Body.Limit,
		Offset: r.Body.UnstableOffset,
	})
	if err != nil {
		return nil, err
	}
	return someEvents{list}, nil
}

// oneEvent and someEvents are the responses of the event operations. They avoid decoding each event into the
// generated types.
type oneEvent struct {
	Ok    bool        `json:"ok"`
	Event event.Event `json:"event"`
}

func (e oneEvent) VisitGetEventResponse(w http.ResponseWriter) error { return writeJSON(w, e) }

type someEvents struct{ Events []event.Event }

// VisitListEventsResponse writes the events one by one. As parts of one value, the encoder would validate each again.
func (e someEvents) VisitListEventsResponse(w http.ResponseWriter) error {
	size := 0
	for _, event := range e.Events {
		size += len(event.Fields) + typicalEventHeadBytes
	}
	b := append(make([]byte, 0, size), `{"ok":true,"events":[`...)
	for i, event := range e.Events {
		if i > 0 {
			b = append(b, ',')
		}
		one, err := event.MarshalJSON()
		if err != nil {
			return err
		}
		b = append(b, one...)
	}
	return writeBytes(w, append(b, "]}\n"...))
}

// typicalEventHeadBytes is the approximate size of an event without its own fields, in bytes.
const typicalEventHeadBytes = 250

func writeJSON(w http.ResponseWriter, answer any) error {
	b, err := encodeResponse(answer)
	if err != nil {
		return err
	}
	return writeBytes(w, b)
}

func writeBytes(w http.ResponseWriter, b []byte) error {
	w.Header().Set("Content-Type", jsonUTF8)
	_, err := w.Write(b)
	return err
}
