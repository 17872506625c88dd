package spec_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func timeline(t *testing.T, s *apptest.Server, in map[string]any) (types []string, out api.AccessCodeTimelineResponse) {
	t.Helper()
	if status := s.Post(t, "/access_codes/get_timeline", in, &out); status != http.StatusOK {
		t.Fatalf("get_timeline: %d", status)
	}
	for _, e := range out.TimelineEvents {
		types = append(types, e.EventType)
	}
	return types, out
}

// The timeline of a code has all its events in order, in pages, and also after its deletion.
func TestTimeline_OfACode(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	var made api.AccessCodeCreatedResponse
	s.Post(t, "/access_codes/create", map[string]any{"device_id": device, "code": "746283", "sync": true}, &made)
	id := made.AccessCode.AccessCodeID
	s.Post(t, "/access_codes/update", map[string]any{"access_code_id": id, "name": "Friend", "sync": true}, nil)
	l := s.Lock(t, device)
	for _, c := range l.Memory(t) {
		if c.PIN == "746283" {
			l.Control(t, http.MethodDelete, "/keypad/codes/"+c.ID, nil)
		}
	}
	want := []string{
		"access_code.created",
		"access_code.mutations_requested",
		"access_code.set_on_device",
		"access_code.mutations_requested",
		"access_code.changed",
		"access_code.name_changed",
		"access_code.set_on_device",
		"access_code.deleted_external_to_seam",
		"access_code.set_on_device",
	}
	apptest.Until(t, "the code is put back", func() bool {
		types, _ := timeline(t, s, map[string]any{"access_code_id": id})
		return len(types) == len(want)
	})
	s.Post(t, "/access_codes/delete", map[string]any{"access_code_id": id, "sync": true}, nil)
	want = append(want, "access_code.mutations_requested", "access_code.removed_from_device", "access_code.deleted")

	types, whole := timeline(t, s, map[string]any{"access_code_id": id})
	if !slices.Equal(types, want) || whole.Pagination.HasMore || whole.Pagination.NextCursor != nil ||
		whole.Pagination.PrevCursor != nil {
		t.Fatalf("events %v, %+v", types, whole.Pagination)
	}
	actors := map[string]string{
		"access_code.created":                  "api_key",
		"access_code.set_on_device":            "system",
		"access_code.deleted_external_to_seam": "external",
	}
	for _, e := range whole.TimelineEvents {
		if want, ok := actors[e.EventType]; ok && string(e.Actor.Type) != want {
			t.Errorf("%s was done by %s", e.EventType, e.Actor.Type)
		}
		if text := asJSON(t, e); strings.Contains(text, "746283") {
			t.Errorf("the timeline shows the PIN in %s", e.EventType)
		}
		if pin, has := e.Details["code"]; e.EventType == "access_code.set_on_device" && (!has || pin != nil) {
			t.Errorf("%s has the code %v, %t, want null", e.EventType, pin, has)
		}
		if e.Description == "" || e.RelatedResourceIds.DeviceID != device ||
			e.TimelineEventID != e.RelatedResourceIds.EventID {
			t.Errorf("%s: %q, %+v", e.EventType, e.Description, e.RelatedResourceIds)
		}
	}

	// In pages, forwards and backwards.
	var forwards, backwards []string
	in := map[string]any{"access_code_id": id, "limit": 5}
	for {
		part, out := timeline(t, s, in)
		if forwards = append(forwards, part...); !out.Pagination.HasMore {
			break
		}
		in["after"] = *out.Pagination.NextCursor
	}
	in = map[string]any{"access_code_id": id, "limit": 5, "before": time.Now().Add(time.Hour)}
	for {
		part, out := timeline(t, s, in)
		if backwards = append(part, backwards...); out.Pagination.PrevCursor == nil {
			break
		}
		in["before"] = *out.Pagination.PrevCursor
	}
	if !slices.Equal(forwards, want) || !slices.Equal(backwards, want) {
		t.Errorf("in parts: %v\nbackwards: %v", forwards, backwards)
	}
	if types, _ := timeline(
		t,
		s,
		map[string]any{"access_code_id": id, "event_types": []string{"access_code.deleted"}},
	); !slices.Equal(
		types,
		[]string{"access_code.deleted"},
	) {
		t.Errorf("of one type: %v", types)
	}
	if types, _ := timeline(t, s, map[string]any{"access_code_id": id, "event_types": []string{}}); len(types) != 0 {
		t.Errorf("of no type: %v", types)
	}
	for name, c := range map[string]struct {
		in     map[string]any
		status int
	}{
		"no code":    {map[string]any{"access_code_id": uuid.NewString()}, 404},
		"a device":   {map[string]any{"access_code_id": device}, 404},
		"too many":   {map[string]any{"access_code_id": id, "limit": 201}, 400},
		"no type":    {map[string]any{"access_code_id": id, "event_types": []string{"door.exploded"}}, 400},
		"no time":    {map[string]any{"access_code_id": id, "after": "soon"}, 400},
		"not a code": {map[string]any{}, 400},
	} {
		if status := s.Post(t, "/access_codes/get_timeline", c.in, nil); status != c.status {
			t.Errorf("%s: %d", name, status)
		}
	}
}

// A page says whether there are events before and after it.
func TestTimeline_PagesKnowTheirNeighbors(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	var made api.AccessCodeCreatedResponse
	s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": s.Device(t, "august"), "code": "746283", "sync": true},
		&made,
	)
	id := made.AccessCode.AccessCodeID
	_, whole := timeline(t, s, map[string]any{"access_code_id": id})
	first, last := whole.TimelineEvents[0].OccurredAt, whole.TimelineEvents[len(whole.TimelineEvents)-1].OccurredAt
	for name, c := range map[string]struct {
		in            map[string]any
		after, before bool
	}{
		"all":                  {map[string]any{}, false, false},
		"the first":            {map[string]any{"limit": 1}, true, false},
		"before all is over":   {map[string]any{"before": last.Add(time.Hour)}, false, false},
		"the last before that": {map[string]any{"before": last.Add(time.Hour), "limit": 1}, false, true},
		"before the last":      {map[string]any{"before": last}, true, false},
		"after it began":       {map[string]any{"after": first.Add(-time.Hour)}, false, false},
		"after the first":      {map[string]any{"after": first}, false, true},
		"between":              {map[string]any{"after": first, "before": last.Add(time.Hour), "limit": 1}, true, true},
	} {
		c.in["access_code_id"] = id
		_, part := timeline(t, s, c.in)
		p := part.Pagination
		if p.HasMore != c.after || (p.NextCursor != nil) != c.after || (p.PrevCursor != nil) != c.before {
			t.Errorf("%s: %v, expected something after it %v, before it %v", name, p, c.after, c.before)
		}
	}
}
