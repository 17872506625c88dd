package spec_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// seventeen are the resource groups that section 1 of the specification names.
var seventeen = strings.Fields(`access_codes acs action_attempts client_sessions connected_accounts connect_webviews
	devices events health locks networks noise_sensors phones thermostats user_identities webhooks workspaces`)

// groupCall is a route of a group, and where its response has content.
type groupCall struct {
	path string
	in   params
	key  string // of an object, or of a list
}

// Each of the seventeen groups answers with its content.
func TestSeventeenGroups(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	acct, device := s.Connect(t, "august")
	s.AccessSystem(t)
	if err := s.App.Access.Accounts.RecordGateway(
		t.Context(),
		uuid.MustParse(acct),
		"home "+s.WorkspaceID,
		false,
	); err != nil {
		t.Fatal(err)
	}
	s.Connect(t, "ecobee")
	s.Connect(t, "minut")
	person := newPerson(t, s, params{"full_name": "Jane Doe"}).UserIdentityID
	attempt := madeBy(t, s, "/locks/lock_door", "action_attempt", params{"device_id": device})["action_attempt_id"]
	made := map[string]params{
		"/webhooks/create":         {"url": "https://hooks.example/groups"},
		"/client_sessions/create":  {"connected_account_ids": []any{acct}},
		"/connect_webviews/create": {},
		createPhone:                {"user_identity_id": person},
		"/access_codes/create":     {"device_id": device},
	}
	for path, in := range made {
		madeBy(t, s, path, "", in)
	}
	calls := map[string]groupCall{
		"access_codes": {path: "/access_codes/list", in: params{"device_id": device}, key: "access_codes"},
		"acs":          {path: "/acs/entrances/list", key: "acs_entrances"},
		"action_attempts": {
			path: "/action_attempts/get",
			in:   params{"action_attempt_id": attempt},
			key:  "action_attempt",
		},
		"client_sessions":    {path: "/client_sessions/list", key: "client_sessions"},
		"connected_accounts": {path: "/connected_accounts/list", key: "connected_accounts"},
		"connect_webviews":   {path: "/connect_webviews/list", key: "connect_webviews"},
		"devices":            {path: "/devices/list", key: "devices"},
		"events":             {path: "/events/list", in: params{"since": "2020-01-01T00:00:00Z"}, key: "events"},
		"health":             {path: "/health", key: "ok"},
		"locks":              {path: "/locks/list", key: "locks"},
		"networks":           {path: "/networks/list", key: "networks"},
		"noise_sensors":      {path: "/noise_sensors/list", key: "noise_sensors"},
		"phones":             {path: "/phones/list", key: "phones"},
		"thermostats":        {path: "/thermostats/list", key: "thermostats"},
		"user_identities":    {path: "/user_identities/list", key: "user_identities"},
		"webhooks":           {path: "/webhooks/list", key: "webhooks"},
		"workspaces":         {path: "/workspaces/get", key: "workspace"},
	}
	for _, group := range seventeen {
		c, ok := calls[group]
		if !ok || !strings.HasPrefix(c.path, "/"+group) {
			t.Errorf("no route of the group %s is called", group)
			continue
		}
		if c.in == nil {
			c.in = params{}
		}
		var out params
		if status := s.Post(t, c.path, c.in, &out); status != http.StatusOK || out["ok"] != true {
			t.Errorf("%s: %d %v", c.path, status, out["error"])
			continue
		}
		if list, is := out[c.key].([]any); out[c.key] == nil || is && len(list) == 0 {
			t.Errorf("%s: %s is %v", c.path, c.key, out[c.key])
		}
	}
	if len(calls) != len(seventeen) {
		t.Errorf("%d groups are called", len(calls))
	}
}
