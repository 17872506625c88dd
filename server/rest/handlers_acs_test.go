package rest_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// inputsOfIdentities are parameters with which the operations on user identities succeed, by path.
func inputsOfIdentities(t *testing.T, s *apptest.Server) map[string]func() in {
	t.Helper()
	person := func() any {
		return must(t, s, "/user_identities/create", "user_identity", in{"full_name": "Jane Doe", "email_address": uuid.NewString() + "@example.com"})["user_identity_id"]
	}
	return map[string]func() in{
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
