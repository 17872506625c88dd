package event

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Hidden stands for each value that GetHidden hides.
const Hidden = "hidden"

// GetHidden reads an event for people: Hidden replaces each value in the fields that are stored encrypted, which are those
// with PINs. PINs contains all of these values, so that callers can remove them from other texts. Fields that cannot be
// opened are absent. It fails with NotFound.
func (s *Service) GetHidden(ctx context.Context, p domain.Principal, id uuid.UUID) (Event, error) {
	r, err := s.db.GetEvent(ctx, dbsqlc.GetEventParams{WorkspaceID: p.WorkspaceID, EventID: id})
	if store.IsNoRows(err) {
		return Event{}, eventNotFound(id.String())
	}
	if err != nil {
		return Event{}, fmt.Errorf("read the event: %w", err)
	}
	sealed := r.PinSealed
	r.PinSealed = nil
	e, err := s.ReadEvent(r)
	if err != nil || sealed == nil {
		return e, err
	}
	secret, err := s.keys.Open(eventPlace(id), sealed)
	if err != nil { // the rest of the event can be shown
		return e, nil //nolint:nilerr // see above
	}
	if !bytes.HasPrefix(secret, []byte("{")) { // the first version sealed the PIN alone
		secret = domain.MustJSON(map[string]any{"code": string(secret)})
	}
	var fields map[string]any
	if json.Unmarshal(secret, &fields) != nil {
		return e, nil //nolint:nilerr // the rest of the event can be shown
	}
	for name, value := range fields {
		fields[name] = hide(value, &e.PINs)
	}
	e.Fields = mergeObjects(e.Fields, domain.MustJSON(fields))
	return e, nil
}

// hide returns value with Hidden in place of each text and number, which it appends to found.
func hide(value any, found *[]string) any {
	switch v := value.(type) {
	case map[string]any:
		for name, one := range v {
			v[name] = hide(one, found)
		}
		return v
	case []any:
		for i, one := range v {
			v[i] = hide(one, found)
		}
		return v
	case string:
		if v != "" {
			*found = append(*found, v)
		}
		return Hidden
	case nil, bool:
		return v
	}
	*found = append(*found, fmt.Sprint(value))
	return Hidden
}
