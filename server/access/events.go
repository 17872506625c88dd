package access

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Event is something that has happened.
type Event struct {
	ID          uuid.UUID
	Type        string
	WorkspaceID uuid.UUID
	OccurredAt  time.Time
	CreatedAt   time.Time
	Fields      json.RawMessage // an object: what its type carries (spec/contract.md section 7)
	PINs        []string        // those in Fields, however deep: no log may show them
}

// MarshalJSON is the event as endpoints and clients get it. It never changes, so the bytes are the same each time.
func (e Event) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(struct {
		ID          uuid.UUID `json:"event_id"`
		Type        string    `json:"event_type"`
		WorkspaceID uuid.UUID `json:"workspace_id"`
		CreatedAt   time.Time `json:"created_at"`
		OccurredAt  time.Time `json:"occurred_at"`
	}{e.ID, e.Type, e.WorkspaceID, e.CreatedAt, e.OccurredAt})
	if err != nil {
		return nil, fmt.Errorf("write the event %s: %w", e.ID, err)
	}
	return joined(head, e.Fields), nil
}

// joined is one object with the fields of both.
func joined(a, b json.RawMessage) json.RawMessage {
	switch {
	case len(b) <= len("{}"):
		return a
	case len(a) <= len("{}"):
		return b
	}
	return append(append(a[:len(a)-1:len(a)-1], ','), b[1:]...)
}

// about names what an event is about.
type about struct {
	workspace, account uuid.UUID
	device, code       *uuid.UUID
	metadata           json.RawMessage // of the device
	fields             map[string]any
	secret             map[string]any // fields that have a PIN in them: sealed, never in the payload
	at                 *time.Time     // when it happened; nil: now
	untold             bool           // nobody is to hear of it
}

func aboutDevice(d dbsqlc.Device) about {
	return about{workspace: d.WorkspaceID, account: d.ConnectedAccountID, device: &d.DeviceID, metadata: d.CustomMetadata}
}

func aboutCode(d dbsqlc.Device, c dbsqlc.AccessCode) about {
	a := aboutDevice(d)
	a.code, a.untold = &c.AccessCodeID, c.InPool
	return a
}

func (a about) with(field string, value any) about {
	a.fields = and(a.fields, field, value)
	return a
}

// hiding is with for a field that has a PIN in it.
func (a about) hiding(field string, value any) about {
	a.secret = and(a.secret, field, value)
	return a
}

func and(fields map[string]any, field string, value any) map[string]any {
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	fields[field] = value
	return fields
}

// emit writes an event in the transaction of what it reports. Its type must be one of eventFields.
func (s *Service) emit(ctx context.Context, tx store.Tx, eventType string, a about) error {
	arg, err := s.eventOf(eventType, a)
	if err != nil || a.untold {
		return err
	}
	s.count(ctx, tx, a.account, 1)
	return s.writeEvent(ctx, tx, arg)
}

// happening is what emitAll tells of.
type happening struct {
	eventType string
	about
}

// emitAll is emit for many events, which are of one workspace.
func (s *Service) emitAll(ctx context.Context, tx store.Tx, all []happening) error {
	waits := false
	if len(all) > 0 {
		s.count(ctx, tx, all[0].account, len(all))
	}
	for some := range slices.Chunk(all, 100) { // whose payloads may have 100 kB of metadata each
		var rows []dbsqlc.InsertEventParams
		for _, h := range some {
			row, err := s.eventOf(h.eventType, h.about)
			if err != nil {
				return err
			}
			if !h.untold {
				rows = append(rows, row)
			}
		}
		err := store.Each(ctx, tx, rows, func(tx store.Tx, row dbsqlc.InsertEventParams) error {
			one, err := tx.InsertEvent(ctx, row)
			waits = waits || one
			return err
		})
		if err != nil {
			return fmt.Errorf("write %d events: %w", len(rows), err)
		}
	}
	if !waits {
		return nil
	}
	return s.waker.Wake(ctx, tx, OutboxLane, all[0].workspace)
}

// eventOf is the row of an event. Its type must be one of eventFields.
func (s *Service) eventOf(eventType string, a about) (arg dbsqlc.InsertEventParams, err error) {
	if _, known := eventFields[eventType]; !known {
		return arg, fmt.Errorf("the event type %s is not among eventFields", eventType)
	}
	fields := map[string]any{}
	var account *uuid.UUID
	if a.account != uuid.Nil {
		account, fields["connected_account_id"] = &a.account, a.account // and what is kept about it, which the query adds
	}
	if a.device != nil {
		fields["device_id"], fields["device_custom_metadata"] = *a.device, map[string]any{}
		if len(a.metadata) > 0 {
			fields["device_custom_metadata"] = a.metadata
		}
	}
	if a.code != nil {
		fields["access_code_id"] = *a.code
	}
	maps.Copy(fields, a.fields)
	arg = dbsqlc.InsertEventParams{EventID: newID(), WorkspaceID: a.workspace, EventType: eventType, DeviceID: a.device, AccessCodeID: a.code,
		ConnectedAccountID: account, Payload: mustJSON(fields), OccurredAt: a.at}
	if len(a.secret) > 0 {
		arg.PinSealed = s.keys.Seal(eventPlace(arg.EventID), mustJSON(a.secret))
	}
	return arg, nil
}

// writeEvent writes an event, and has it delivered where the workspace has webhooks.
func (s *Service) writeEvent(ctx context.Context, tx store.Tx, arg dbsqlc.InsertEventParams) error {
	waits, err := tx.InsertEvent(ctx, arg)
	if err != nil {
		return fmt.Errorf("write the event %s: %w", arg.EventType, err)
	}
	if !waits {
		return nil
	}
	return s.waker.Wake(ctx, tx, OutboxLane, arg.WorkspaceID)
}

func eventPlace(id uuid.UUID) string { return "events.pin/" + id.String() }

func (s *Service) toEvent(r dbsqlc.Event) (Event, error) {
	e := Event{ID: r.EventID, Type: r.EventType, WorkspaceID: r.WorkspaceID, OccurredAt: r.OccurredAt.UTC(), CreatedAt: r.CreatedAt.UTC(), Fields: r.Payload}
	if r.PinSealed != nil {
		secret, err := s.keys.Open(eventPlace(r.EventID), r.PinSealed)
		if err != nil {
			return e, fmt.Errorf("%w: open the PIN of event %s: %w", ErrUnopened, r.EventID, err)
		}
		if !bytes.HasPrefix(secret, []byte("{")) { // of the first version: the PIN alone
			secret = mustJSON(map[string]any{"code": string(secret)})
		}
		var fields map[string]any
		if err := json.Unmarshal(secret, &fields); err != nil {
			return e, fmt.Errorf("%w: read the secret fields of event %s", ErrUnopened, r.EventID) // err may quote them
		}
		e.Fields, e.PINs = joined(e.Fields, secret), pinsIn(fields)
	}
	return e, nil
}

// pinsIn finds what may be a PIN in fields that were sealed: at least 4 digits and nothing else.
func pinsIn(value any) (out []string) {
	switch v := value.(type) {
	case string:
		if len(v) >= 4 && !strings.ContainsFunc(v, func(r rune) bool { return r < '0' || r > '9' }) {
			out = append(out, v)
		}
	case []any:
		for _, one := range v {
			out = append(out, pinsIn(one)...)
		}
	case map[string]any:
		for _, one := range v {
			out = append(out, pinsIn(one)...)
		}
	}
	return out
}

// GetEvent reads an event by its identifier, or the latest of a type on a device.
// It fails with Invalid unless it is told which, and with NotFound.
func (s *Service) GetEvent(ctx context.Context, p Principal, id, deviceID, eventType string) (Event, error) {
	var r dbsqlc.Event
	var err error
	switch {
	case id != "":
		parsed, bad := uuid.Parse(id)
		if bad != nil {
			return Event{}, eventNotFound(id)
		}
		r, err = s.db.GetEvent(ctx, dbsqlc.GetEventParams{WorkspaceID: p.WorkspaceID, EventID: parsed})
	case deviceID != "" && eventType != "":
		parsed, bad := uuid.Parse(deviceID)
		if bad != nil {
			return Event{}, eventNotFound("")
		}
		r, err = s.db.GetLatestEvent(ctx, dbsqlc.GetLatestEventParams{WorkspaceID: p.WorkspaceID, DeviceID: &parsed, EventType: eventType})
	default:
		return Event{}, invalid("", "Must specify either event_id or both device_id and event_type")
	}
	if store.IsNoRows(err) || (err == nil && !p.reaches(idOf(r.ConnectedAccountID))) {
		return Event{}, eventNotFound(id)
	}
	if err != nil {
		return Event{}, fmt.Errorf("read the event: %w", err)
	}
	return s.toEvent(r)
}

func eventNotFound(id string) *Error {
	e := &Error{Kind: NotFound, Type: "event_not_found", Message: "Could not find such an event."}
	if id != "" {
		e.Data = map[string]any{"event_id": id}
	}
	return e
}

// EventFilter is a set of conditions that must all hold. Either Since or Between is given.
type EventFilter struct {
	Since              string
	Between            *[]string // from the first, up to the second
	IDs, DeviceIDs     *[]string
	CodeIDs            *[]string
	Types              []string // one of; nil: any
	ConnectedAccountID string
	WebviewID          string
	CustomerKey        string // of what was this customer's at that time
	IdentityID         string // of what was this person's at that time
	SystemIDs          *[]string
	SystemUserID       string
	AccessGroupID      string
	EntranceID         string
	Nothing            bool // a condition that no event meets
	Limit, Offset      int
}

// writtenIDs reads a list like parseIDs, as identifiers are written in payloads.
func writtenIDs(texts *[]string) []string {
	if texts == nil {
		return nil
	}
	written := []string{}
	for _, id := range parseIDs(texts) {
		written = append(written, id.String())
	}
	return written
}

// ListEvents lists events, oldest first. It fails with Invalid.
func (s *Service) ListEvents(ctx context.Context, p Principal, f EventFilter) ([]Event, error) {
	if (f.Since == "") == (f.Between == nil) {
		return nil, invalid("", "Must specify either since or between")
	}
	arg := dbsqlc.ListEventsParams{WorkspaceID: p.WorkspaceID, EventIds: parseIDs(f.IDs), EventTypes: f.Types, DeviceIds: parseIDs(f.DeviceIDs),
		AccessCodeIds: parseIDs(f.CodeIDs), Scope: p.Reach, MaxRows: int32(min(f.Limit, 1<<30)), SkipRows: int32(min(f.Offset, 1<<30)),
		CustomerKey: nonEmpty(f.CustomerKey), AcsSystemIds: writtenIDs(f.SystemIDs),
		Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	var err error
	if f.Between == nil {
		if arg.Since, err = parseTime("since", f.Since); err != nil {
			return nil, err
		}
	} else {
		for i, to := range []*time.Time{&arg.Since, &arg.Until} {
			if *to, err = parseTime(fmt.Sprintf("between.%d", i), (*f.Between)[i]); err != nil {
				return nil, err
			}
		}
	}
	if f.ConnectedAccountID != "" {
		ids := parseIDs(&[]string{f.ConnectedAccountID})
		if len(ids) == 0 {
			return nil, nil // what is no identifier names no account
		}
		arg.ConnectedAccountID = &ids[0]
	}
	for _, one := range []struct {
		text string
		to   **string
	}{{f.WebviewID, &arg.ConnectWebviewID}, {f.IdentityID, &arg.UserIdentityID}, {f.SystemUserID, &arg.AcsUserID},
		{f.AccessGroupID, &arg.AcsAccessGroupID}, {f.EntranceID, &arg.AcsEntranceID}} {
		if one.text == "" {
			continue
		}
		ids := writtenIDs(&[]string{one.text})
		if len(ids) == 0 {
			return nil, nil
		}
		*one.to = &ids[0]
	}
	if f.Nothing {
		return nil, nil
	}
	arg.SinceID, arg.UntilID = store.EventIDs(arg.Since, arg.Until)
	rows, err := s.db.PlannedAnew.ListEvents(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("list the events: %w", err)
	}
	out := make([]Event, len(rows))
	for i, r := range rows {
		if out[i], err = s.toEvent(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}
