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
	_, out = call(t, s, http.MethodPost, "/acs/access_groups/list", in{"acs_system_id": s.AccessSystem(t).ID})
	spare := out["acs_access_groups"].([]any)
	device := s.Device(t, "august")
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
	granted := func() in {
		of := in{"user_identity_id": person(), "device_id": device}
		must(t, s, "/user_identities/grant_access_to_device", "", of)
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
		"/acs/access_groups/add_user":               member,
		"/acs/access_groups/remove_user":            joined,
		"/acs/access_groups/list_users":             func() in { joined(); return in{"acs_access_group_id": group} },
		"/acs/access_groups/list_accessible_entrances": func() in {
			return in{"acs_access_group_id": group}
		},
		"/acs/access_groups/delete": func() in {
			one := spare[0].(in)["acs_access_group_id"]
			spare = spare[1:]
			return in{"acs_access_group_id": one}
		},
		"/acs/entrances/unlock": func() in { return in{"acs_entrance_id": entrance} },
		"/acs/entrances/get":    func() in { return in{"acs_entrance_id": entrance} },
		"/acs/entrances/list":   func() in { return in{"limit": 1} },
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
		"/user_identities/grant_access_to_device": func() in {
			return in{"user_identity_id": person(), "device_id": device}
		},
		"/user_identities/revoke_access_to_device": granted,
		"/user_identities/list_accessible_devices": func() in {
			return in{"user_identity_id": granted()["user_identity_id"]}
		},
		"/user_identities/list_accessible_entrances": func() in {
			of := joined()
			identity := person()
			must(t, s, "/user_identities/add_acs_user", "", in{
				"acs_user_id": of["acs_user_id"], "user_identity_id": identity,
			})
			return in{"user_identity_id": identity}
		},
		"/user_identities/merge": func() in {
			return in{"user_identity_id": person(), "merged_user_identity_ids": []any{person(), person()}}
		},
		"/user_identities/unmanaged/list":   func() in { return in{"limit": 1} },
		"/user_identities/unmanaged/get":    func() in { return nil }, // there are none
		"/user_identities/unmanaged/update": func() in { return nil },
		"/user_identities/delete":           func() in { return in{"user_identity_id": person()} },
	}
}
