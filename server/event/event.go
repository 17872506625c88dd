package event

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ErrUnopened reports that the sealed part of an event cannot be opened: it is damaged, or its data key is
// deleted.
var ErrUnopened = errors.New("the event cannot be opened")

// Event records that something happened.
type Event struct {
	ID          uuid.UUID
	Type        string
	WorkspaceID uuid.UUID
	OccurredAt  time.Time
	CreatedAt   time.Time
	// Fields is the JSON object that the type carries.
	Fields json.RawMessage
	// PINs are the PINs in Fields, at any depth. No log may show them.
	PINs []string

	// plain and secret are the two parts of Fields. secret is nil without sealed fields.
	plain  json.RawMessage
	secret map[string]any
}

// WithoutPINs returns the event with null instead of each PIN. Of the sealed fields, it keeps only what is known not to
// be a PIN.
func (e Event) WithoutPINs() Event {
	if e.secret == nil {
		return e
	}
	e.Fields = mergeObjects(e.plain, domain.MustJSON(withoutPINs("", e.secret)))
	e.PINs, e.secret = nil, nil
	return e
}

// plainFields are the names of fields within sealed fields whose values are not PINs.
var plainFields = []string{"property", "mutation_code", "name", "starts_at", "ends_at"}

// withoutPINs returns a value of sealed fields. name is the field that it is the value of. In an object that names a
// property, from and to are values of that property.
func withoutPINs(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		property, _ := v["property"].(string)
		for field, one := range v {
			of := field
			if property != "" && (field == "from" || field == "to") {
				of = property
			}
			out[field] = withoutPINs(of, one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = withoutPINs(name, one)
		}
		return out
	}
	if slices.Contains(plainFields, name) {
		return value
	}
	return nil
}

// MarshalJSON encodes the event as webhooks and clients receive it. The bytes are the same each time.
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
	return mergeObjects(head, e.Fields), nil
}

// mergeObjects returns one object with the fields of both.
func mergeObjects(a, b json.RawMessage) json.RawMessage {
	switch {
	case len(b) <= len("{}"):
		return a
	case len(a) <= len("{}"):
		return b
	}
	return append(append(a[:len(a)-1:len(a)-1], ','), b[1:]...)
}

// About says what an event is about.
type About struct {
	Workspace, Account uuid.UUID
	Device, Code       *uuid.UUID
	Metadata           json.RawMessage // the device's custom metadata
	Fields             map[string]any
	// Secret are fields that contain a PIN. They are sealed and never in the payload.
	Secret map[string]any
	At     *time.Time // when it happened; nil: now
	Silent bool       // the event is not written
}

// AboutDevice returns the About of a device.
func AboutDevice(d dbsqlc.Device) About {
	return About{
		Workspace: d.WorkspaceID,
		Account:   d.ConnectedAccountID,
		Device:    &d.DeviceID,
		Metadata:  d.CustomMetadata,
	}
}

// AboutCode returns the About of a code on a device. Codes in a backup pool are silent.
func AboutCode(d dbsqlc.Device, c dbsqlc.AccessCode) About {
	a := AboutDevice(d)
	a.Code, a.Silent = &c.AccessCodeID, c.InPool
	return a
}

// With returns a with one more field.
func (a About) With(field string, value any) About {
	a.Fields = withField(a.Fields, field, value)
	return a
}

// WithSecret is With for a field that contains a PIN.
func (a About) WithSecret(field string, value any) About {
	a.Secret = withField(a.Secret, field, value)
	return a
}

// withField returns a copy of fields with one more field.
func withField(fields map[string]any, field string, value any) map[string]any {
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	fields[field] = value
	return fields
}

// Emit writes an event in the transaction of the change that it reports. Its type must be one of eventFields.
func (s *Service) Emit(ctx context.Context, tx store.Tx, eventType string, a About) error {
	arg, err := s.NewRow(eventType, a)
	if err != nil || a.Silent {
		return err
	}
	s.onEmit(ctx, tx, a.Account, 1)
	return s.Write(ctx, tx, arg)
}

// Occurrence is an event for EmitAll.
type Occurrence struct {
	Type string // one of eventFields
	About
}

// EmitAll is Emit for many events of one workspace.
func (s *Service) EmitAll(ctx context.Context, tx store.Tx, all []Occurrence) error {
	waits := false
	if len(all) > 0 {
		s.onEmit(ctx, tx, all[0].Account, len(all))
	}
	for some := range slices.Chunk(all, 100) { // each payload may have 100 kB of metadata
		var rows []dbsqlc.InsertEventParams
		for _, h := range some {
			row, err := s.NewRow(h.Type, h.About)
			if err != nil {
				return err
			}
			if !h.Silent {
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
	return s.waker.Wake(ctx, tx, domain.OutboxLane, all[0].Workspace)
}

// NewRow returns the row of an event. Its type must be one of eventFields.
func (s *Service) NewRow(eventType string, a About) (arg dbsqlc.InsertEventParams, err error) {
	if _, known := eventFields[eventType]; !known {
		return arg, fmt.Errorf("the event type %s is not among eventFields", eventType)
	}
	fields := map[string]any{}
	var account *uuid.UUID
	if a.Account != uuid.Nil {
		account, fields["connected_account_id"] = &a.Account, a.Account // the query adds the account's metadata
	}
	if a.Device != nil {
		fields["device_id"], fields["device_custom_metadata"] = *a.Device, map[string]any{}
		if len(a.Metadata) > 0 {
			fields["device_custom_metadata"] = a.Metadata
		}
	}
	if a.Code != nil {
		fields["access_code_id"] = *a.Code
	}
	maps.Copy(fields, a.Fields)
	arg = dbsqlc.InsertEventParams{
		EventID:            domain.NewID(),
		WorkspaceID:        a.Workspace,
		EventType:          eventType,
		DeviceID:           a.Device,
		AccessCodeID:       a.Code,
		ConnectedAccountID: account,
		Payload:            domain.MustJSON(fields),
		OccurredAt:         a.At,
	}
	if len(a.Secret) > 0 {
		arg.PinSealed = s.keys.Seal(eventPlace(arg.EventID), domain.MustJSON(a.Secret))
	}
	return arg, nil
}

// Write writes an event, and wakes the outbox of its workspace if that has webhooks.
func (s *Service) Write(ctx context.Context, tx store.Tx, arg dbsqlc.InsertEventParams) error {
	waits, err := tx.InsertEvent(ctx, arg)
	if err != nil {
		return fmt.Errorf("write the event %s: %w", arg.EventType, err)
	}
	if !waits {
		return nil
	}
	return s.waker.Wake(ctx, tx, domain.OutboxLane, arg.WorkspaceID)
}

func eventPlace(id uuid.UUID) string { return "events.pin/" + id.String() }

// ReadEvent decodes a row and opens its secret fields. It fails with ErrUnopened where they cannot be opened.
func (s *Service) ReadEvent(r dbsqlc.Event) (Event, error) {
	e := Event{
		ID:          r.EventID,
		Type:        r.EventType,
		WorkspaceID: r.WorkspaceID,
		OccurredAt:  r.OccurredAt.UTC(),
		CreatedAt:   r.CreatedAt.UTC(),
		Fields:      r.Payload,
	}
	if r.PinSealed != nil {
		secret, err := s.keys.Open(eventPlace(r.EventID), r.PinSealed)
		if err != nil {
			return e, fmt.Errorf("%w: open the PIN of event %s: %w", ErrUnopened, r.EventID, err)
		}
		if !bytes.HasPrefix(secret, []byte("{")) { // the first version sealed the PIN alone
			secret = domain.MustJSON(map[string]any{"code": string(secret)})
		}
		var fields map[string]any
		if err := json.Unmarshal(secret, &fields); err != nil {
			return e, fmt.Errorf("%w: read the secret fields of event %s", ErrUnopened, r.EventID) // err may quote them
		}
		e.Fields, e.PINs = mergeObjects(e.Fields, secret), pinsIn(fields)
		e.plain, e.secret = r.Payload, fields
	}
	return e, nil
}

// readFor is ReadEvent for a caller, which may see no PINs.
func (s *Service) readFor(p domain.Principal, r dbsqlc.Event) (Event, error) {
	e, err := s.ReadEvent(r)
	if err != nil || p.CanReadPINs() {
		return e, err
	}
	return e.WithoutPINs(), nil
}

// pinsIn finds the values in sealed fields that may be PINs: at least 4 characters, all digits.
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

// GetEvent reads the latest event that meets all conditions that are not empty: its identifier, its device, and its
// type. A viewer gets it without PINs. It fails with Invalid if none is given, and with NotFound.
func (s *Service) GetEvent(ctx context.Context, p domain.Principal, id, deviceID, eventType string) (Event, error) {
	if id+deviceID+eventType == "" {
		return Event{}, domain.Invalidf("", "Must specify at least one of event_id, device_id, and event_type")
	}
	arg := dbsqlc.GetLatestEventParams{
		WorkspaceID: p.WorkspaceID,
		EventType:   domain.NonEmpty(eventType),
		Scope:       p.Scope,
	}
	if deviceID != "" {
		parsed, err := uuid.Parse(deviceID)
		if err != nil {
			return Event{}, eventNotFound(id)
		}
		arg.DeviceID = &parsed
	}
	r, err := s.latestEvent(ctx, id, arg)
	if refused, ok := domain.AsError(err); ok {
		return Event{}, refused
	}
	if store.IsNoRows(err) {
		return Event{}, eventNotFound(id)
	}
	if err != nil {
		return Event{}, fmt.Errorf("read the event: %w", err)
	}
	return s.readFor(p, r)
}

// latestEvent reads the latest event that meets the conditions. An identifier is looked up alone, which is faster.
func (s *Service) latestEvent(
	ctx context.Context,
	id string,
	arg dbsqlc.GetLatestEventParams,
) (r dbsqlc.Event, err error) {
	if id == "" {
		return s.db.UnpreparedQueries.GetLatestEvent(ctx, arg)
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return r, eventNotFound(id)
	}
	r, err = s.db.GetEvent(ctx, dbsqlc.GetEventParams{WorkspaceID: arg.WorkspaceID, EventID: parsed})
	other := arg.DeviceID != nil && domain.Value(arg.DeviceID) != domain.Value(r.DeviceID) ||
		arg.EventType != nil && *arg.EventType != r.EventType ||
		arg.Scope != nil && !slices.Contains(arg.Scope, domain.Value(r.ConnectedAccountID)) &&
			!slices.Contains(arg.Scope, domain.Value(r.DeviceID))
	if err == nil && other {
		return r, eventNotFound(id)
	}
	return r, err
}

func eventNotFound(id string) *domain.Error {
	e := &domain.Error{Kind: domain.NotFound, Type: "event_not_found", Message: "Could not find such an event."}
	if id != "" {
		e.Data = map[string]any{"event_id": id}
	}
	return e
}

// Filter is a set of conditions that must all hold. Exactly one of Since and Between is given.
type Filter struct {
	Since              string
	Between            *[]string // from the first (inclusive) to the second (exclusive)
	IDs, DeviceIDs     *[]string
	CodeIDs            *[]string
	Types              []string // one of; nil: any
	ConnectedAccountID string
	WebviewID          string
	CustomerKey        string // the customer of the resource when the event happened
	IdentityID         string // the user identity of the resource when the event happened
	SystemIDs          *[]string
	SystemUserID       string
	AccessGroupID      string
	EntranceID         string
	Nothing            bool // matches no event
	Limit, Offset      int
}

// writtenIDs parses a list like ParseIDs and formats the identifiers as payloads do.
func writtenIDs(texts *[]string) []string {
	if texts == nil {
		return nil
	}
	written := []string{}
	for _, id := range domain.ParseIDs(texts) {
		written = append(written, id.String())
	}
	return written
}

// ListEvents lists events, oldest first. A viewer gets them without PINs. It fails with Invalid.
func (s *Service) ListEvents(ctx context.Context, p domain.Principal, f Filter) ([]Event, error) {
	if (f.Since == "") == (f.Between == nil) {
		return nil, domain.Invalidf("", "Must specify either since or between")
	}
	arg := dbsqlc.ListEventsParams{
		WorkspaceID:   p.WorkspaceID,
		EventIds:      domain.ParseIDs(f.IDs),
		EventTypes:    f.Types,
		DeviceIds:     domain.ParseIDs(f.DeviceIDs),
		AccessCodeIds: domain.ParseIDs(f.CodeIDs),
		Scope:         p.Scope,
		MaxRows:       int32(min(f.Limit, 1<<30)),
		SkipRows:      int32(min(f.Offset, 1<<30)),
		CustomerKey:   domain.NonEmpty(f.CustomerKey),
		AcsSystemIds:  writtenIDs(f.SystemIDs),
		Until:         time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	var err error
	if f.Between == nil {
		if arg.Since, err = domain.ParseTime("since", f.Since); err != nil {
			return nil, err
		}
	} else {
		for i, to := range []*time.Time{&arg.Since, &arg.Until} {
			if *to, err = domain.ParseTime(fmt.Sprintf("between.%d", i), (*f.Between)[i]); err != nil {
				return nil, err
			}
		}
	}
	if f.ConnectedAccountID != "" {
		ids := domain.ParseIDs(&[]string{f.ConnectedAccountID})
		if len(ids) == 0 {
			return nil, nil // not an identifier, so no account has it
		}
		arg.ConnectedAccountID = &ids[0]
	}
	for _, one := range []struct {
		text string
		to   **string
	}{
		{f.WebviewID, &arg.ConnectWebviewID},
		{f.IdentityID, &arg.UserIdentityID},
		{f.SystemUserID, &arg.AcsUserID},
		{f.AccessGroupID, &arg.AcsAccessGroupID},
		{f.EntranceID, &arg.AcsEntranceID},
	} {
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
	rows, err := s.db.UnpreparedQueries.ListEvents(ctx, arg)
	if err != nil {
		return nil, fmt.Errorf("list the events: %w", err)
	}
	out := make([]Event, len(rows))
	for i, r := range rows {
		if out[i], err = s.readFor(p, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}
