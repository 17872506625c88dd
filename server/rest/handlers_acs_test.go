package rest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// inputsOfAccessSystems are parameters with which the operations on access systems and on user identities succeed, by
// path.
func inputsOfAccessSystems(t *testing.T, s *apptest.Server) map[string]func() in {
	t.Helper()
	y := s.AccessSystem(t)
	_, out := call(t, s, http.MethodPost, "/acs/access_groups/list", in{})
	group := out["acs_access_groups"].([]any)[0].(in)["acs_access_group_id"]
	_, out = call(t, s, http.MethodPost, "/acs/entrances/list", in{})
	entrance := out["acs_entrances"].([]any)[0].(in)["acs_entrance_id"]
	_, out = call(t, s, http.MethodPost, "/acs/users/unmanaged/list", in{})
	found := out["acs_users"].([]any)[0].(in)["acs_user_id"]
	user := func() any {
		return must(t, s, "/acs/users/create", "acs_user", in{"acs_system_id": y.ID, "full_name": "Jane Doe", "email": "jane@example.com", "access_schedule": in{"ends_at": time.Now().Add(time.Hour)}})["acs_user_id"]
	}
	person := func() any {
		return must(t, s, "/user_identities/create", "user_identity", in{"full_name": "Jane Doe", "email_address": uuid.NewString() + "@example.com"})["user_identity_id"]
	}
	named := func() in { return in{"acs_user_id": user()} }
	member := func() in { return in{"acs_user_id": user(), "acs_access_group_id": group} }
	joined := func() in {
		of := member()
		must(t, s, "/acs/users/add_to_access_group", "", of)
		return of
	}
	suspended := func() in {
		one := named()
		must(t, s, "/acs/users/suspend", "", one)
		return one
	}
	belongs := func() in {
		of := in{"acs_user_id": user(), "user_identity_id": person()}
		must(t, s, "/user_identities/add_acs_user", "", of)
		return of
	}
	return map[string]func() in{
		"/acs/systems/get":  func() in { return in{"acs_system_id": y.ID} },
		"/acs/systems/list": func() in { return nil },
		"/acs/users/create": func() in {
			return in{
				"acs_system_id":        y.ID,
				"full_name":            "Jane Doe",
				"acs_access_group_ids": []any{group},
				"user_identity_id":     person(),
			}
		},
		"/acs/users/get":  named,
		"/acs/users/list": func() in { user(); return in{"limit": 1} },
		"/acs/users/update": func() in {
			return in{"acs_user_id": user(), "phone_number": "+15555550100", "access_schedule": nil}
		},
		"/acs/users/delete":                         named,
		"/acs/users/suspend":                        named,
		"/acs/users/unsuspend":                      suspended,
		"/acs/users/add_to_access_group":            member,
		"/acs/users/remove_from_access_group":       joined,
		"/acs/users/list_accessible_entrances":      named,
		"/acs/users/revoke_access_to_all_entrances": func() in { return in{"acs_user_id": joined()["acs_user_id"]} },
		"/acs/users/unmanaged/get":                  func() in { return in{"acs_user_id": found} },
		"/acs/users/unmanaged/list":                 func() in { return in{"limit": 1} },
		"/acs/access_groups/get":                    func() in { return in{"acs_access_group_id": group} },
		"/acs/access_groups/list":                   func() in { return in{"acs_system_id": y.ID} },
		"/acs/entrances/get":                        func() in { return in{"acs_entrance_id": entrance} },
		"/acs/entrances/list":                       func() in { return in{"limit": 1} },
		"/acs/entrances/grant_access": func() in {
			return in{"acs_user_id": user(), "acs_entrance_id": entrance}
		},
		"/user_identities/add_acs_user": func() in {
			return in{
				"acs_user_id":       must(t, s, "/acs/users/create", "acs_user", in{"acs_system_id": y.ID, "full_name": "Jane Doe"})["acs_user_id"],
				"user_identity_key": uuid.NewString(),
			}
		},
		"/user_identities/remove_acs_user":  belongs,
		"/user_identities/list_acs_users":   func() in { return in{"user_identity_id": belongs()["user_identity_id"]} },
		"/user_identities/list_acs_systems": func() in { return in{"user_identity_id": belongs()["user_identity_id"]} },
		"/user_identities/create": func() in {
			return in{"user_identity_key": uuid.NewString(), "full_name": "Jane Doe", "phone_number": nil}
		},
		"/user_identities/get":  func() in { return in{"user_identity_id": person()} },
		"/user_identities/list": func() in { return in{"limit": 1} },
		"/user_identities/update": func() in {
			return in{"user_identity_id": person(), "full_name": "Jane Roe", "email_address": nil}
		},
		"/user_identities/delete": func() in { return in{"user_identity_id": person()} },
	}
}
