package rest_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
)

// The audit log distinguishes work that is still pending from work that is done when the response is sent.
func TestAuditLogShowsPendingWork(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	y, device := s.AccessSystem(t), s.Device(t, "august")
	does := func(outcome, path, key string, params in) in {
		t.Helper()
		out := must(t, s, path, key, params)
		all := s.Requests()
		id := uuid.MustParse(all[len(all)-1].ID)
		if got := auditEntries(t, s, audit.Filter{RequestID: &id}); len(got) != 1 || got[0].Outcome != outcome {
			t.Errorf("%s with %v has left %+v, want one that is %s", path, params, got, outcome)
		}
		return out
	}
	_, groups := call(t, s, "POST", "/acs/access_groups/list", in{"acs_system_id": y.ID})
	group := groups["acs_access_groups"].([]any)[0].(in)["acs_access_group_id"]
	user := in{
		"acs_user_id": does("pending", "/acs/users/create", "acs_user", in{"acs_system_id": y.ID, "full_name": "Jane Doe"})["acs_user_id"],
	}
	does(
		"pending",
		"/acs/users/add_to_access_group",
		"",
		in{"acs_user_id": user["acs_user_id"], "acs_access_group_id": group},
	)
	_, entrances := call(t, s, "POST", "/acs/entrances/list", in{"acs_system_id": y.ID})
	entrance := entrances["acs_entrances"].([]any)[0].(in)["acs_entrance_id"]
	grant := in{"acs_user_id": user["acs_user_id"], "acs_entrance_id": entrance}
	does("pending", "/acs/entrances/grant_access", "", grant)
	does("pending", "/acs/users/suspend", "", user)
	does("pending", "/acs/users/update", "", in{"acs_user_id": user["acs_user_id"], "full_name": "Jane Roe"})
	person := does("done", "/user_identities/create", "user_identity", in{"full_name": "Jane Roe"})["user_identity_id"]
	does(
		"done",
		"/user_identities/add_acs_user",
		"",
		in{"acs_user_id": user["acs_user_id"], "user_identity_id": person},
	)
	does("pending", "/acs/users/delete", "", user)

	code := func(of in) in { return in{"access_code_id": of["access_code_id"]} }
	now := code(does("pending", "/access_codes/create", "access_code", in{"device_id": device, "code": "471100"}))
	apptest.Until(
		t,
		"the code is set",
		func() bool { return must(t, s, "/access_codes/get", "access_code", now)["status"] == "set" },
	)
	does(
		"done",
		"/access_codes/update",
		"action_attempt",
		in{"access_code_id": now["access_code_id"], "is_managed": false},
	)
	does("pending", "/locks/unlock_door", "action_attempt", in{"device_id": device})

	later := code(does("done", "/access_codes/create", "access_code", in{
		"device_id": device, "code": "471200", "prefer_native_scheduling": false,
		"starts_at": "2999-01-01T12:00:00Z", "ends_at": "2999-01-02T12:00:00Z",
	}))
	does("done", "/access_codes/delete", "action_attempt", later)
}
