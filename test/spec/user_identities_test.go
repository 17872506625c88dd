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

// newPerson creates a user identity.
func newPerson(t *testing.T, s *apptest.Server, params map[string]any) api.UserIdentity {
	t.Helper()
	var out api.UserIdentityResponse
	if status := s.Post(t, "/user_identities/create", params, &out); status != http.StatusOK {
		t.Fatalf("create %v: %d", params, status)
	}
	return out.UserIdentity
}

// person reads a user identity.
func person(t *testing.T, s *apptest.Server, id string) api.UserIdentity {
	t.Helper()
	var out api.UserIdentityResponse
	if status := s.Post(
		t,
		"/user_identities/get",
		map[string]any{"user_identity_id": id},
		&out,
	); status != http.StatusOK {
		t.Fatalf("read the person %s: %d", id, status)
	}
	return out.UserIdentity
}

// people lists the keys of user identities that match conditions.
func people(t *testing.T, s *apptest.Server, conditions map[string]any) (keys []string) {
	t.Helper()
	var out api.UserIdentitiesResponse
	if status := s.Post(t, "/user_identities/list", conditions, &out); status != http.StatusOK {
		t.Fatalf("list the people: %d", status)
	}
	for _, i := range out.UserIdentities {
		keys = append(keys, *i.UserIdentityKey)
	}
	return keys
}

func TestUserIdentities_CreateReadUpdateDelete(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	jane := newPerson(
		t,
		s,
		map[string]any{
			"user_identity_key": "jane",
			"full_name":         "Jane Doe",
			"email_address":     "Jane@example.com",
			"phone_number":      "+15555550100",
		},
	)
	if jane.DisplayName != "Jane Doe" || *jane.EmailAddress != "Jane@example.com" ||
		*jane.PhoneNumber != "+15555550100" ||
		jane.AcsUserIds == nil ||
		jane.MergedUserIdentityIds == nil ||
		len(jane.Errors)+len(jane.Warnings) != 0 ||
		jane.WorkspaceID != s.WorkspaceID {
		t.Errorf("%+v", jane)
	}
	if unknown := newPerson(
		t,
		s,
		map[string]any{},
	); unknown.DisplayName != unknown.UserIdentityID || unknown.FullName != nil ||
		unknown.EmailAddress != nil {
		t.Errorf("without any data: %+v", unknown)
	} else if status := s.Post(
		t,
		"/user_identities/delete",
		map[string]any{"user_identity_id": unknown.UserIdentityID},
		nil,
	); status != http.StatusOK {
		t.Errorf("delete: %d", status)
	} else if status := s.Post(
		t,
		"/user_identities/get",
		map[string]any{"user_identity_id": unknown.UserIdentityID},
		nil,
	); status != http.StatusNotFound {
		t.Errorf("read a deleted one: %d", status)
	}
	var byKey api.UserIdentityResponse
	if s.Post(
		t,
		"/user_identities/get",
		map[string]any{"user_identity_key": "jane"},
		&byKey,
	); byKey.UserIdentity.UserIdentityID != jane.UserIdentityID {
		t.Errorf("by key: %+v", byKey)
	}

	change := func(params map[string]any) {
		t.Helper()
		params["user_identity_id"] = jane.UserIdentityID
		if status := s.Post(t, "/user_identities/update", params, nil); status != http.StatusOK {
			t.Fatalf("%v: %d", params, status)
		}
	}
	change(map[string]any{"full_name": nil, "phone_number": "+442071838750"})
	if got := person(
		t,
		s,
		jane.UserIdentityID,
	); got.FullName != nil || *got.PhoneNumber != "+442071838750" || *got.UserIdentityKey != "jane" ||
		got.DisplayName != "Jane@example.com" {
		t.Errorf("after a change: %+v", got)
	}
	change(map[string]any{"email_address": "jane@example.com"}) // its own address in another case
	change(map[string]any{"user_identity_key": "jane-2"})

	joe := newPerson(
		t,
		s,
		map[string]any{"user_identity_key": "joe", "full_name": "Joe", "email_address": "joe@example.com"},
	)
	for name, c := range map[string]struct {
		path   string
		body   map[string]any
		status int
		kind   string
	}{
		"neither": {"/user_identities/get", map[string]any{}, 400, "invalid_input"},
		"both": {
			"/user_identities/get",
			map[string]any{"user_identity_id": joe.UserIdentityID, "user_identity_key": "joe"},
			400,
			"invalid_input",
		},
		"no such": {
			"/user_identities/get",
			map[string]any{"user_identity_id": uuid.NewString()},
			404,
			"user_identity_not_found",
		},
		"no such key": {
			"/user_identities/get",
			map[string]any{"user_identity_key": "jane"},
			404,
			"user_identity_not_found",
		},
		"update none": {
			"/user_identities/update",
			map[string]any{"user_identity_id": uuid.NewString()},
			404,
			"user_identity_not_found",
		},
		"delete none": {
			"/user_identities/delete",
			map[string]any{"user_identity_id": uuid.NewString()},
			404,
			"user_identity_not_found",
		},
		"same key": {
			"/user_identities/create",
			map[string]any{"user_identity_key": "joe"},
			409,
			"user_identity_already_exists",
		},
		"same address": {
			"/user_identities/create",
			map[string]any{"email_address": "JOE@example.com"},
			409,
			"user_identity_already_exists",
		},
		"same number": {
			"/user_identities/create",
			map[string]any{"phone_number": "+442071838750"},
			409,
			"user_identity_already_exists",
		},
		"another's key": {
			"/user_identities/update",
			map[string]any{"user_identity_id": joe.UserIdentityID, "user_identity_key": "jane-2"},
			409,
			"user_identity_already_exists",
		},
		"no number":  {"/user_identities/create", map[string]any{"phone_number": "555-0100"}, 400, "invalid_input"},
		"no address": {"/user_identities/create", map[string]any{"email_address": "joe"}, 400, "invalid_input"},
		"change to no no": {
			"/user_identities/update",
			map[string]any{"user_identity_id": joe.UserIdentityID, "phone_number": "0100"},
			400,
			"invalid_input",
		},
	} {
		var f failure
		if status := s.Post(t, c.path, c.body, &f); status != c.status || f.Error.Type != c.kind {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}

	for name, c := range map[string]struct {
		conditions map[string]any
		want       []string
	}{
		"all":           {map[string]any{}, []string{"jane-2", "joe"}},
		"a page":        {map[string]any{"limit": 1}, []string{"jane-2"}},
		"by name":       {map[string]any{"search": "JOE"}, []string{"joe"}},
		"by number":     {map[string]any{"search": "2071838750"}, []string{"jane-2"}},
		"by identifier": {map[string]any{"search": joe.UserIdentityID}, []string{"joe"}},
		"by none":       {map[string]any{"search": "joe@example.comjane"}, nil},
		"these": {
			map[string]any{"user_identity_ids": []string{joe.UserIdentityID, uuid.NewString()}},
			[]string{"joe"},
		},
		"none of these": {map[string]any{"user_identity_ids": []string{}}, nil},
		"before":        {map[string]any{"created_before": joe.CreatedAt.Format(time.RFC3339Nano)}, []string{"jane-2"}},
		"of a manager":  {map[string]any{"credential_manager_acs_system_id": uuid.NewString()}, nil},
	} {
		if got := people(t, s, c.conditions); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
