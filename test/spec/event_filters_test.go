package spec_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Events can be listed by object of an access system and by owner. The same filters work for a client session within
// its scope.
func TestEvents_FilterByAccessSystemAndOwner(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	theirs, others := s.AccessSystem(t), s.AccessSystem(t)
	s.Post(
		t,
		"/connected_accounts/update",
		params{"connected_account_id": theirs.AccountID, "customer_key": "acme"},
		nil,
	)
	jane, joe := newPerson(
		t,
		s,
		params{"user_identity_key": "jane"},
	), newPerson(
		t,
		s,
		params{"user_identity_key": "joe"},
	)
	users := map[*apptest.AccessSystem]string{}
	for y, who := range map[*apptest.AccessSystem]string{theirs: jane.UserIdentityID, others: joe.UserIdentityID} {
		users[y] = settled(t, s, newUser(t, s, y, params{"user_identity_id": who}).AcsUserID).AcsUserID
		y.Control(t, http.MethodDelete, "/groups/"+everyoneRef(t, y), nil, nil)
		y.Control(t, http.MethodDelete, "/entrances/"+y.Memory(t).Entrances[0].ID, nil, nil)
		y.Sync(t)
	}
	loose := newUser(t, s, theirs, params{"full_name": "Unowned"}).AcsUserID
	ended := session(t, s, params{"user_identity_id": jane.UserIdentityID, "customer_key": "acme"})
	s.Post(t, "/client_sessions/delete", params{"client_session_id": ended.ClientSessionID}, nil)
	reaching := session(t, s, params{"connected_account_ids": []string{theirs.AccountID}})

	list := func(token string, in params) (events []api.Event) {
		t.Helper()
		var out api.EventsResponse
		in["since"], in["limit"] = "2020-01-01T00:00:00Z", 10_000
		if status := s.PostAs(t, token, "/events/list", in, &out); status != http.StatusOK {
			t.Fatalf("%v: %d", in, status)
		}
		return out.Events
	}
	// of returns a field of an event of a type about an account's systems.
	of := func(y *apptest.AccessSystem, eventType, field string) (value string) {
		apptest.Until(t, eventType, func() bool {
			for _, e := range list(s.APIKey, params{"connected_account_id": y.AccountID, "event_type": eventType}) {
				value, _ = e.AdditionalProperties[field].(string)
			}
			return value != ""
		})
		return value
	}
	groups := []string{
		of(theirs, "acs_access_group.deleted", "acs_access_group_id"),
		of(others, "acs_access_group.deleted", "acs_access_group_id"),
	}
	entrances := []string{
		of(theirs, "acs_entrance.removed", "acs_entrance_id"),
		of(others, "acs_entrance.removed", "acs_entrance_id"),
	}

	for _, c := range []struct {
		filter, field string // field: the field of the events
		value         any
		want          []string // matching event types
		reached       bool     // for the client session
	}{
		{
			"acs_system_id",
			"acs_system_id",
			theirs.ID,
			[]string{
				"acs_access_group.deleted",
				"acs_entrance.added",
				"acs_entrance.removed",
				"acs_system.added",
				"acs_system.connected",
				"acs_user.created",
			},
			true,
		},
		{
			"acs_system_id",
			"acs_system_id",
			others.ID,
			[]string{
				"acs_access_group.deleted",
				"acs_entrance.added",
				"acs_entrance.removed",
				"acs_system.added",
				"acs_system.connected",
				"acs_user.created",
			},
			false,
		},
		{
			"acs_system_ids",
			"acs_system_id",
			[]string{theirs.ID, uuid.NewString()},
			[]string{
				"acs_access_group.deleted",
				"acs_entrance.added",
				"acs_entrance.removed",
				"acs_system.added",
				"acs_system.connected",
				"acs_user.created",
			},
			true,
		},
		{"acs_user_id", "acs_user_id", users[theirs], []string{"acs_user.created"}, true},
		{"acs_user_id", "acs_user_id", users[others], []string{"acs_user.created"}, false},
		{"acs_access_group_id", "acs_access_group_id", groups[0], []string{"acs_access_group.deleted"}, true},
		{"acs_access_group_id", "acs_access_group_id", groups[1], []string{"acs_access_group.deleted"}, false},
		{"acs_entrance_id", "acs_entrance_id", entrances[0], []string{"acs_entrance.added", "acs_entrance.removed"}, true},
		{"acs_entrance_id", "acs_entrance_id", entrances[1], []string{"acs_entrance.added", "acs_entrance.removed"}, false},
		{
			"user_identity_id",
			"user_identity_id",
			jane.UserIdentityID,
			[]string{"acs_user.created", "client_session.deleted"},
			true,
		},
		{"user_identity_id", "user_identity_id", joe.UserIdentityID, []string{"acs_user.created"}, false},
		{
			"customer_key",
			"customer_key",
			"acme",
			[]string{"acs_access_group.deleted", "acs_entrance.removed", "acs_user.created", "client_session.deleted"},
			true,
		},
	} {
		for who, token := range map[string]string{"the workspace": s.APIKey, "a client session": reaching.Token} {
			types := map[string]bool{}
			for _, e := range list(token, params{c.filter: c.value}) {
				types[e.EventType] = true
				said, _ := e.AdditionalProperties[c.field].(string)
				if is, of := c.value.([]string); said != c.value && (!of || !slices.Contains(is, said)) {
					t.Errorf("%s %v lists for %s %s of %q", c.filter, c.value, who, e.EventType, said)
				}
			}
			for _, kind := range c.want {
				if reached := token == s.APIKey ||
					c.reached && kind != "client_session.deleted"; types[kind] != reached {
					t.Errorf("%s %v lists %s for %s: %v", c.filter, c.value, kind, who, types[kind])
				}
				delete(types, kind)
			}
			if len(types) > 0 {
				t.Errorf("%s %v lists for %s also %v", c.filter, c.value, who, types)
			}
		}
	}
	if got := list(
		s.APIKey,
		params{"acs_user_id": loose},
	); len(got) != 1 ||
		got[0].AdditionalProperties["user_identity_id"] != nil {
		t.Errorf("an unknown user: %+v", got)
	}
	for name, in := range map[string]params{
		"of two systems": {"acs_system_id": theirs.ID, "acs_system_ids": []string{others.ID}},
		"another's user": {"acs_system_id": others.ID, "acs_user_id": users[theirs]},
		"another account's": {
			"connected_account_id": others.AccountID,
			"customer_key":         "acme",
		},
		"a customer's user": {"customer_key": "acme", "user_identity_id": joe.UserIdentityID},
	} {
		if got := list(s.APIKey, in); len(got) != 0 { // all filters must match
			t.Errorf("%s: %d events", name, len(got))
		}
	}
	unknown := uuid.NewString()
	for _, token := range []string{s.APIKey, reaching.Token} {
		for _, filter := range []string{
			"acs_system_id",
			"acs_user_id",
			"acs_access_group_id",
			"acs_entrance_id",
			"user_identity_id",
			"customer_key",
			"acs_credential_id",
			"acs_encoder_id",
			"access_grant_id",
			"access_method_id",
			"space_id",
		} {
			if got := list(token, params{filter: unknown}); len(got) != 0 {
				t.Errorf("an unknown %s lists %d events", filter, len(got))
			}
		}
		for _, filter := range []string{"acs_system_ids", "access_grant_ids", "access_method_ids", "space_ids"} {
			for _, value := range [][]string{{unknown}, {}} {
				if got := list(token, params{filter: value}); len(got) != 0 {
					t.Errorf("%s %v lists %d events", filter, value, len(got))
				}
			}
		}
	}
}

// Parts 6 of the specification and 7 of the contract: which events a list contains.
func TestEvents_FilterByTimeAndSubject(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	list := func(in map[string]any) []api.Event {
		t.Helper()
		var out api.EventsResponse
		if status := s.Post(t, "/events/list", in, &out); status != http.StatusOK {
			t.Fatalf("%v: %d", in, status)
		}
		return out.Events
	}
	const since = "2020-01-01T00:00:00Z"
	every := list(map[string]any{"since": since})
	if len(every) < 8 ||
		!slices.IsSortedFunc(every, func(a, b api.Event) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
		t.Fatalf("%d events", len(every))
	}
	middle := every[len(every)/2].CreatedAt
	device, other := s.Device(t, "august"), s.Device(t, "yale")
	only := func(events []api.Event, is func(api.Event) bool) int {
		n := 0
		for _, e := range events {
			if is(e) {
				n++
			}
		}
		return n
	}
	about := func(id string) func(api.Event) bool {
		return func(e api.Event) bool { return e.AdditionalProperties["device_id"] == id }
	}
	for name, c := range map[string]struct {
		in   map[string]any
		want int
	}{
		"since the middle": {
			map[string]any{"since": middle},
			only(every, func(e api.Event) bool { return !e.CreatedAt.Before(middle) }),
		},
		"between": {
			map[string]any{"between": []any{since, middle}},
			only(every, func(e api.Event) bool { return e.CreatedAt.Before(middle) }),
		},
		"since tomorrow": {map[string]any{"since": time.Now().Add(24 * time.Hour)}, 0},
		"limit":          {map[string]any{"since": since, "limit": 3}, 3},
		"of a type":      {map[string]any{"since": since, "event_type": "device.added"}, 2},
		"of types":       {map[string]any{"since": since, "event_types": []string{"device.added", "device.connected"}}, 4},
		"of no type":     {map[string]any{"since": since, "event_types": []string{}}, 0},
		"of a device":    {map[string]any{"since": since, "device_id": device}, only(every, about(device))},
		"of devices": {
			map[string]any{"since": since, "device_ids": []string{device, other}},
			only(every, about(device)) + only(every, about(other)),
		},
		"of an account": {
			map[string]any{"since": since, "connected_account_id": every[0].AdditionalProperties["connected_account_id"]},
			len(every),
		},
		"of an unknown object": {map[string]any{"since": since, "connected_account_id": uuid.Nil}, 0},
		"by identifier": {
			map[string]any{"since": since, "event_ids": []string{every[0].EventID, every[1].EventID}},
			2,
		},
	} {
		if got := list(c.in); len(got) != c.want {
			t.Errorf("%s: %d events, want %d", name, len(got), c.want)
		}
	}
	for name, in := range map[string]map[string]any{
		"neither": {},
		"both":    {"since": since, "between": []any{since, since}},
	} {
		var f failure
		if status := s.Post(
			t,
			"/events/list",
			in,
			&f,
		); status != http.StatusBadRequest || f.Error.Type != "invalid_input" ||
			f.Error.Message == "" {
			t.Errorf("%s of since and between: %d %+v", name, status, f.Error)
		}
	}
}

// The latest event that meets all conditions.
func TestEvents_GetLatest(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	device, other := s.Device(t, "august"), s.Device(t, "yale")
	for _, id := range []string{device, other} {
		apptest.Until(t, "it is connected", func() bool { return told(t, s, id, "device.connected") == 1 })
	}
	var all api.EventsResponse
	s.Post(t, "/events/list", params{"since": "2020-01-01T00:00:00Z"}, &all)
	latest := func(is func(e api.Event) bool) (id string) {
		for _, e := range all.Events {
			if is(e) {
				id = e.EventID
			}
		}
		return id
	}
	on := func(e api.Event, id string) bool { return e.AdditionalProperties["device_id"] == id }
	connected := latest(func(e api.Event) bool { return on(e, device) && e.EventType == "device.connected" })
	for name, c := range map[string]struct {
		in   params
		want string // empty: not found
	}{
		"by identifier": {params{"event_id": connected}, connected},
		"by device":     {params{"device_id": device}, latest(func(e api.Event) bool { return on(e, device) })},
		"by type": {
			params{"event_type": "device.connected"},
			latest(func(e api.Event) bool { return e.EventType == "device.connected" }),
		},
		"by device and type":       {params{"device_id": device, "event_type": "device.connected"}, connected},
		"by all":                   {params{"event_id": connected, "device_id": device, "event_type": "device.connected"}, connected},
		"by identifier and device": {params{"event_id": connected, "device_id": other}, ""},
		"by identifier and type":   {params{"event_id": connected, "event_type": "device.removed"}, ""},
		"by a type without events": {params{"event_type": "device.tampered"}, ""},
	} {
		var got api.EventResponse
		status := s.Post(t, "/events/get", c.in, &got)
		if c.want == "" && status != http.StatusNotFound || c.want != "" && status != http.StatusOK ||
			got.Event.EventID != c.want {
			t.Errorf("%s: %d %s, want %s", name, status, got.Event.EventID, c.want)
		}
	}
	var f failure
	if status := s.Post(t, "/events/get", params{}, &f); status != http.StatusBadRequest ||
		f.Error.Type != "invalid_input" {
		t.Errorf("without conditions: %d %s", status, f.Error.Type)
	}
}
