package device

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// TimelineFilter selects a page of the timeline of a code.
type TimelineFilter struct {
	CodeID        string
	Before, After *time.Time
	// Types are the allowed event types; nil allows any.
	Types []string
	// Limit is the maximum number of events.
	Limit int
}

// Timeline is a page of the events of a code, oldest first. Next is the After of the following page, and Previous the
// Before of the previous one; nil means that there is none.
type Timeline struct {
	Events         []TimelineEvent
	Next, Previous *time.Time
}

// TimelineEvent is one event of a code. At is its recording time, which is unique within a code, so that a page can
// start after any event.
type TimelineEvent struct {
	ID        uuid.UUID
	Type      string
	At        time.Time
	DeviceID  string
	AccountID string
	// Actor is api_key, external, or system.
	Actor       string
	Description string
	// Details are the fields of the event besides the identifiers and metadata of its subjects. They contain no PINs.
	Details map[string]any
}

// timelineTypes are the event types of a timeline, each with its actor and description.
var timelineTypes = map[string]struct{ actor, description string }{
	"access_code.created":             {byAPI, "The code was created."},
	"access_code.changed":             {byAPI, "The code was changed."},
	"access_code.mutations_requested": {byAPI, "A change of the code on its device was requested."},
	"access_code.name_changed":        {bySystem, "The device has the new name."},
	"access_code.code_changed":        {bySystem, "The device has the new PIN."},
	"access_code.time_frame_changed":  {bySystem, "The device has the new time frame."},
	"access_code.scheduled_on_device": {
		bySystem,
		"The device has the code, which opens from its start.",
	},
	"access_code.set_on_device":              {bySystem, "The code opens."},
	"access_code.issued":                     {bySystem, "The vendor has issued the offline code."},
	"access_code.removed_from_device":        {bySystem, "The code was removed from its device."},
	"access_code.deleted":                    {bySystem, "The code was deleted."},
	"access_code.delay_in_setting_on_device": {bySystem, "The code was not set on its device for a while."},
	"access_code.delay_in_removing_from_device": {
		bySystem,
		"The code was not removed from its device for a while.",
	},
	"access_code.delay_in_issuing": {
		bySystem,
		"The vendor has not issued the offline code for a while.",
	},
	"access_code.failed_to_set_on_device":      {bySystem, "The code could not be set on its device."},
	"access_code.failed_to_update":             {bySystem, "The code could not be changed on its device."},
	"access_code.failed_to_remove_from_device": {bySystem, "The code could not be removed from its device."},
	"access_code.failed_to_expire": {
		bySystem,
		"The code could not be removed from its device when it ended.",
	},
	"access_code.failed_to_issue":           {bySystem, "The vendor could not issue the offline code."},
	"access_code.modified_external_to_seam": {byOthers, "The code was changed at the device."},
	"access_code.deleted_external_to_seam":  {byOthers, "The code was deleted at the device."},
	"access_code.backup_access_code_pulled": {byAPI, "A backup code was pulled to replace the code."},
	"access_code.unmanaged.created": {
		byOthers,
		"The code was found on the device, and is unmanaged.",
	},
	"access_code.unmanaged.removed":                      {byOthers, "The unmanaged code left the device."},
	"access_code.unmanaged.converted_to_managed":         {byAPI, "The code was converted to managed."},
	"access_code.unmanaged.failed_to_convert_to_managed": {bySystem, "The code could not be converted to managed."},
}

// The actors of the API. The timeline does not identify the credential.
const (
	byAPI    = "api_key"
	byOthers = "external"
	bySystem = "system"
)

// CodeTimeline returns a page of the events of a code, even of a deleted one, within the retention of events. The page
// starts after After, or ends before Before if only that is given.
// It fails with Invalid, and with NotFound for a code without events.
func (s *Service) CodeTimeline(ctx context.Context, p domain.Principal, f TimelineFilter) (t Timeline, err error) {
	id, err := uuid.Parse(f.CodeID)
	if err != nil {
		return t, codeNotFound(f.CodeID)
	}
	known, err := s.db.HasTimeline(ctx, dbsqlc.HasTimelineParams{
		WorkspaceID:  p.WorkspaceID,
		AccessCodeID: id,
		Scope:        p.Scope,
	})
	if err != nil {
		return t, fmt.Errorf("read the timeline of access code %s: %w", id, err)
	}
	if !known {
		return t, codeNotFound(f.CodeID)
	}
	types := f.Types
	if types == nil {
		for one := range timelineTypes {
			types = append(types, one)
		}
	}
	after, before := time.Time{}, domain.Never
	if f.After != nil {
		after = *f.After
	}
	if f.Before != nil {
		before = *f.Before
	}
	backwards := f.Before != nil && f.After == nil
	rows, err := s.timelineRows(ctx, p, id, types, after, before, domain.Page{Limit: f.Limit}, backwards)
	if err != nil {
		return t, err
	}
	rows, more := domain.Cut(domain.Page{Limit: f.Limit}, rows)
	if backwards {
		slices.Reverse(rows)
	}
	for _, r := range rows {
		e, err := s.events.ReadEvent(r)
		if err != nil {
			return t, err
		}
		// A timeline is for people to read, in logs and on screens. The published contract requires no PIN in it.
		var fields map[string]any
		if err := json.Unmarshal(e.WithoutPINs().Fields, &fields); err != nil {
			return t, fmt.Errorf("read the event %s: %w", e.ID, err)
		}
		id := func(field string) string { text, _ := fields[field].(string); return text }
		kind := timelineTypes[e.Type]
		t.Events = append(t.Events, TimelineEvent{
			ID:          e.ID,
			Type:        e.Type,
			At:          e.CreatedAt,
			DeviceID:    id("device_id"),
			AccountID:   id("connected_account_id"),
			Actor:       kind.actor,
			Description: kind.description,
			Details:     details(fields),
		})
	}
	if len(rows) == 0 {
		return t, nil
	}
	first, last := rows[0].CreatedAt.UTC(), rows[len(rows)-1].CreatedAt.UTC()
	// The query shows only whether there are more events in its direction.
	earlier, later := more, more
	switch {
	case backwards:
		later, err = s.hasTimeline(ctx, p, id, types, last, domain.Never, false)
	case f.After != nil:
		earlier, err = s.hasTimeline(ctx, p, id, types, time.Time{}, first, true)
	default:
		earlier = false
	}
	if err != nil {
		return t, err
	}
	if later {
		t.Next = &last
	}
	if earlier {
		t.Previous = &first
	}
	return t, nil
}

// hasTimeline reports whether there are events strictly between two times.
func (s *Service) hasTimeline(
	ctx context.Context, p domain.Principal, id uuid.UUID, types []string, after, before time.Time, backwards bool,
) (bool, error) {
	rows, err := s.timelineRows(ctx, p, id, types, after, before, domain.Page{Limit: 1}, backwards)
	return len(rows) > 0, err
}

func (s *Service) timelineRows(
	ctx context.Context,
	p domain.Principal,
	id uuid.UUID,
	types []string,
	after, before time.Time,
	page domain.Page,
	backwards bool,
) (rows []dbsqlc.Event, err error) {
	if backwards {
		rows, err = s.db.TimelineBefore(ctx, dbsqlc.TimelineBeforeParams{
			WorkspaceID:  p.WorkspaceID,
			AccessCodeID: id,
			Scope:        p.Scope,
			EventTypes:   types,
			AfterAt:      after,
			BeforeAt:     before,
			MaxRows:      page.Rows(),
		})
	} else {
		rows, err = s.db.TimelineAfter(ctx, dbsqlc.TimelineAfterParams{
			WorkspaceID:  p.WorkspaceID,
			AccessCodeID: id,
			Scope:        p.Scope,
			EventTypes:   types,
			AfterAt:      after,
			BeforeAt:     before,
			MaxRows:      page.Rows(),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the timeline of access code %s: %w", id, err)
	}
	return rows, nil
}

// details returns the fields of an event besides the identifiers and metadata of its subjects.
func details(fields map[string]any) map[string]any {
	out := map[string]any{}
	for field, value := range fields {
		if !strings.HasSuffix(field, "_custom_metadata") && field != "access_code_id" && field != "device_id" &&
			field != "connected_account_id" {
			out[field] = value
		}
	}
	return out
}

// EventDescription returns a sentence about an event of a code; empty for other types.
func EventDescription(eventType string) string { return timelineTypes[eventType].description }
