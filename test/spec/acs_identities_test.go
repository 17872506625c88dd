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

func TestUserIdentity_UsersOnAccessSystems(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	one, two, three := s.AccessSystem(t), s.AccessSystem(t), s.AccessSystem(t)
	here := newUser(t, s, one, map[string]any{"full_name": "J. Doe", "phone_number": "+15555550100"})
	jane := newPerson(
		t,
		s,
		map[string]any{
			"full_name":         "Jane Doe",
			"email_address":     "Robin.Hale@example.com",
			"phone_number":      "+15555550100",
			"user_identity_key": "jane",
			"acs_system_ids":    []string{one.ID, two.ID, two.ID},
		},
	)
	var users api.AcsUsersOfUserIdentityResponse
	named := map[string]any{"user_identity_id": jane.UserIdentityID}
	s.Post(t, "/user_identities/list_acs_users", named, &users)
	if len(users.AcsUsers) != 2 || len(jane.AcsUserIds) != 2 {
		t.Fatalf("her users: %v %+v", jane.AcsUserIds, users.AcsUsers)
	}
	taken := map[string]string{}
	for _, u := range users.AcsUsers {
		taken[u.AcsSystemID] = u.AcsUserID
		if u.UserIdentityID != jane.UserIdentityID || *u.UserIdentityFullName != "Jane Doe" ||
			*u.UserIdentityEmailAddress != "Robin.Hale@example.com" ||
			*u.UserIdentityPhoneNumber != "+15555550100" {
			t.Errorf("%+v", u)
		}
	}
	if taken[one.ID] != here.AcsUserID {
		t.Errorf("the user with her number is not hers: %v, want %s", taken, here.AcsUserID)
	}
	// The other system has a user with her address, which becomes managed and keeps its id.
	if u := user(t, s, taken[two.ID]); u.FullName != "Robin Hale" || !u.IsManaged || len(u.PendingMutations) != 0 {
		t.Errorf("taken over: %+v", u)
	}
	if got := person(
		t,
		s,
		jane.UserIdentityID,
	); len(got.Warnings) != 2 ||
		got.Warnings[0].WarningCode != "acs_user_profile_does_not_match_user_identity" {
		t.Errorf("warnings: %+v", got.Warnings)
	}
	done(t, s, "/acs/users/update", taken[two.ID], map[string]any{"full_name": "Jane Doe"})
	done(t, s, "/acs/users/update", taken[one.ID], map[string]any{"full_name": "Jane Doe"})
	settled(t, s, taken[two.ID])
	if len(two.Named(t, "Robin Hale")) != 0 || len(two.Named(t, "Jane Doe")) != 1 {
		t.Errorf("the existing user is not updated: %+v", two.Memory(t).Users)
	}
	if got := person(t, s, jane.UserIdentityID); len(got.Warnings) != 0 {
		t.Errorf("warnings: %+v", got.Warnings)
	}
	// Without a match, a user is created.
	joe := newPerson(
		t,
		s,
		map[string]any{"full_name": "Joe", "email_address": "joe@example.com", "acs_system_ids": []string{three.ID}},
	)
	if u := settled(
		t,
		s,
		joe.AcsUserIds[0],
	); u.FullName != "Joe" || u.EmailAddress != "joe@example.com" ||
		len(three.Named(t, "Joe")) != 1 {
		t.Errorf("created: %+v", u)
	}

	byPerson := map[string]any{"acs_system_id": two.ID, "user_identity_id": jane.UserIdentityID}
	var got api.AcsUserResponse
	if status := s.Post(
		t,
		"/acs/users/get",
		byPerson,
		&got,
	); status != http.StatusOK ||
		got.AcsUser.AcsUserID != taken[two.ID] {
		t.Errorf("by person: %d %+v", status, got)
	}
	if status := s.Post(
		t,
		"/acs/users/suspend",
		byPerson,
		nil,
	); status != http.StatusOK || !*user(t, s, taken[two.ID]).IsSuspended ||
		*user(t, s, taken[one.ID]).IsSuspended {
		t.Errorf("suspended by person: %d", status)
	}
	if status := s.Post(
		t,
		"/acs/users/get",
		map[string]any{"user_identity_id": joe.UserIdentityID},
		&got,
	); status != http.StatusOK ||
		got.AcsUser.AcsUserID != joe.AcsUserIds[0] {
		t.Errorf("by a person with one user: %d", status)
	}
	var systems api.AcsSystemsResponse
	if s.Post(t, "/user_identities/list_acs_systems", named, &systems); len(systems.AcsSystems) != 2 {
		t.Errorf("her systems: %+v", systems.AcsSystems)
	}

	// Users can be added to and removed from people.
	loose := newUser(t, s, three, map[string]any{"full_name": "Loose", "email_address": "loose@example.com"})
	ok := func(path string, params map[string]any) {
		t.Helper()
		if status := s.Post(t, path, params, nil); status != http.StatusOK {
			t.Errorf("%s %v: %d", path, params, status)
		}
	}
	ok("/user_identities/add_acs_user", map[string]any{"acs_user_id": loose.AcsUserID, "user_identity_key": "jane"})
	ok(
		"/user_identities/add_acs_user",
		map[string]any{"acs_user_id": loose.AcsUserID, "user_identity_id": jane.UserIdentityID},
	)
	ok(
		"/user_identities/remove_acs_user",
		map[string]any{"acs_user_id": loose.AcsUserID, "user_identity_id": jane.UserIdentityID},
	)
	ok("/user_identities/add_acs_user", map[string]any{"acs_user_id": loose.AcsUserID, "user_identity_key": "new"})
	var made api.UserIdentityResponse
	if s.Post(
		t,
		"/user_identities/get",
		map[string]any{"user_identity_key": "new"},
		&made,
	); made.UserIdentity.FullName == nil || *made.UserIdentity.FullName != "Loose" ||
		*made.UserIdentity.EmailAddress != "loose@example.com" {
		t.Errorf("created from what is known: %+v", made.UserIdentity)
	}
	for name, c := range map[string]struct {
		path   string
		body   map[string]any
		status int
		kind   string
	}{
		"another's": {
			"/user_identities/add_acs_user",
			map[string]any{"acs_user_id": loose.AcsUserID, "user_identity_id": jane.UserIdentityID},
			409,
			"acs_user_belongs_to_another_user_identity",
		},
		"a second": {
			"/acs/users/create",
			map[string]any{"acs_system_id": two.ID, "full_name": "Jane", "user_identity_id": jane.UserIdentityID},
			409,
			"acs_user_already_exists",
		},
		"not hers": {
			"/user_identities/remove_acs_user",
			map[string]any{"acs_user_id": loose.AcsUserID, "user_identity_id": jane.UserIdentityID},
			404,
			"acs_user_not_found",
		},
		"no person": {
			"/user_identities/add_acs_user",
			map[string]any{"acs_user_id": loose.AcsUserID, "user_identity_id": uuid.NewString()},
			404,
			"user_identity_not_found",
		},
		"neither": {"/user_identities/add_acs_user", map[string]any{"acs_user_id": loose.AcsUserID}, 400, "invalid_input"},
		"users of none": {
			"/user_identities/list_acs_users",
			map[string]any{"user_identity_id": uuid.NewString()},
			404,
			"user_identity_not_found",
		},
		"no such system": {
			"/user_identities/create",
			map[string]any{"full_name": "X", "user_identity_key": "x", "acs_system_ids": []string{uuid.NewString()}},
			404,
			"acs_system_not_found",
		},
		"nameless": {
			"/user_identities/create",
			map[string]any{"user_identity_key": "x", "acs_system_ids": []string{one.ID}},
			400,
			"invalid_input",
		},
		"unknown": {"/acs/users/get", map[string]any{}, 400, "invalid_input"},
		"twice": {
			"/acs/users/get",
			map[string]any{"acs_user_id": loose.AcsUserID, "user_identity_id": jane.UserIdentityID},
			400,
			"invalid_input",
		},
		"which of two": {
			"/acs/users/get",
			map[string]any{"user_identity_id": jane.UserIdentityID},
			400,
			"invalid_input",
		},
		"on another system": {
			"/acs/users/get",
			map[string]any{"acs_user_id": loose.AcsUserID, "acs_system_id": one.ID},
			404,
			"acs_user_not_found",
		},
		"not there": {
			"/acs/users/get",
			map[string]any{"user_identity_id": jane.UserIdentityID, "acs_system_id": three.ID},
			404,
			"acs_user_not_found",
		},
		"foreign group": {
			"/acs/users/create",
			map[string]any{
				"acs_system_id":        two.ID,
				"full_name":            "X",
				"acs_access_group_ids": []string{groupNamed(t, s, one, "Everyone")},
			},
			400,
			"invalid_input",
		},
		"no group": {
			"/acs/users/add_to_access_group",
			map[string]any{"acs_user_id": loose.AcsUserID, "acs_access_group_id": uuid.NewString()},
			404,
			"acs_access_group_not_found",
		},
		"two addresses": {
			"/acs/users/create",
			map[string]any{
				"acs_system_id": two.ID,
				"full_name":     "X",
				"email":         "a@example.com",
				"email_address": "b@example.com",
			},
			400,
			"invalid_input",
		},
		"over already": {
			"/acs/users/create",
			map[string]any{
				"acs_system_id":   two.ID,
				"full_name":       "X",
				"access_schedule": map[string]any{"starts_at": "2020-01-01", "ends_at": "2020-02-01"},
			},
			400,
			"invalid_input",
		},
		"ends before": {
			"/acs/users/update",
			map[string]any{
				"acs_user_id":     loose.AcsUserID,
				"access_schedule": map[string]any{"starts_at": "2031-01-01", "ends_at": "2030-02-01"},
			},
			400,
			"invalid_input",
		},
		"no name": {"/acs/users/create", map[string]any{"acs_system_id": two.ID}, 400, "invalid_input"},
		"no number": {
			"/acs/users/update",
			map[string]any{"acs_user_id": loose.AcsUserID, "phone_number": "0100"},
			400,
			"invalid_input",
		},
		"another's address": {
			"/user_identities/add_acs_user",
			map[string]any{
				"acs_user_id":       newUser(t, s, one, map[string]any{"email": "joe@example.com"}).AcsUserID,
				"user_identity_key": "y",
			},
			409,
			"user_identity_already_exists",
		},
		"not an access user": {"/acs/users/list", map[string]any{"limit": 0}, 400, "invalid_input"},
	} {
		var f failure
		if status := s.Post(t, c.path, c.body, &f); status != c.status || f.Error.Type != c.kind {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
	if keys := people(t, s, map[string]any{"search": "x@"}); len(keys) != 0 {
		t.Errorf("a failed creation has left %v", keys)
	}
	if status := s.Post(
		t,
		"/user_identities/get",
		map[string]any{"user_identity_key": "x"},
		nil,
	); status != http.StatusNotFound {
		t.Errorf("a failed creation has left users: %d", status)
	}

	list := func(conditions map[string]any) (names []string) {
		t.Helper()
		var out api.AcsUsersResponse
		if status := s.Post(t, "/acs/users/list", conditions, &out); status != http.StatusOK {
			t.Fatalf("%v: %d", conditions, status)
		}
		for _, u := range out.AcsUsers {
			names = append(names, u.FullName)
		}
		slices.Sort(names)
		return names
	}
	for name, c := range map[string]struct {
		conditions map[string]any
		want       []string
	}{
		"of a system": {map[string]any{"acs_system_id": three.ID}, []string{"Joe", "Loose"}},
		"of a person": {map[string]any{"user_identity_id": joe.UserIdentityID}, []string{"Joe"}},
		"by address": {
			map[string]any{"user_identity_email_address": "ROBIN.hale@example.com"},
			[]string{"Jane Doe", "Jane Doe"},
		},
		"by number": {
			map[string]any{"user_identity_phone_number": "+15555550100", "acs_system_id": one.ID},
			[]string{"Jane Doe"},
		},
		"search":          {map[string]any{"search": "LOOSE@"}, []string{"Loose"}},
		"search a number": {map[string]any{"search": "5555550100"}, []string{"Jane Doe", "Jane Doe"}},
		"search for her":  {map[string]any{"search": jane.UserIdentityID}, []string{"Jane Doe", "Jane Doe"}},
		"before":          {map[string]any{"created_before": "2020-01-01T00:00:00Z"}, nil},
		"null": {
			map[string]any{
				"acs_system_id":               three.ID,
				"user_identity_email_address": nil,
				"created_before":              time.Now().Add(time.Hour),
			},
			[]string{"Joe", "Loose"},
		},
		"of an unknown person": {map[string]any{"user_identity_id": uuid.NewString()}, nil},
	} {
		if got := list(c.conditions); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}

	// Errors of a user show on the person. Deleting a person deletes the users.
	two.Control(t, http.MethodPost, "/offline", nil, nil)
	done(t, s, "/acs/users/unsuspend", taken[two.ID], nil)
	apptest.Until(t, "the person's error", func() bool {
		errs := person(t, s, jane.UserIdentityID).Errors
		return len(errs) == 1 && errs[0].ErrorCode == "issue_with_acs_user" && errs[0].AcsUserID == taken[two.ID] &&
			errs[0].AcsSystemID == two.ID
	})
	two.Control(t, http.MethodPost, "/online", nil, nil)
	if status := s.Post(t, "/user_identities/delete", named, nil); status != http.StatusOK {
		t.Fatalf("delete: %d", status)
	}
	two.Sync(t)
	apptest.Until(t, "her users are deleted", func() bool {
		return len(one.Named(t, "Jane Doe"))+len(two.Named(t, "Jane Doe")) <= 1 && len(two.Named(t, "Jane Doe")) == 0
	})
	apptest.Until(t, "everything of hers is deleted", func() bool {
		return s.Post(t, "/acs/users/get", map[string]any{"acs_user_id": taken[one.ID]}, nil) == http.StatusNotFound &&
			s.Post(t, "/acs/users/get", map[string]any{"acs_user_id": taken[two.ID]}, nil) == http.StatusNotFound
	})
}

// Client sessions see the systems and users of the accounts in their scope, and only their own person.
func TestAcs_ClientSessionScope(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	theirs, others := s.AccessSystem(t), s.AccessSystem(t)
	newUser(t, s, theirs, map[string]any{"full_name": "Theirs"})
	newUser(t, s, others, map[string]any{"full_name": "Others"})
	joe := newPerson(t, s, map[string]any{"user_identity_key": "joe"})
	s.Post(
		t,
		"/connected_accounts/update",
		map[string]any{"connected_account_id": theirs.AccountID, "customer_key": "acme"},
		nil,
	)
	var session, customer api.ClientSessionResponse
	if status := s.Post(
		t,
		"/client_sessions/create",
		map[string]any{"connected_account_ids": []string{theirs.AccountID}},
		&session,
	); status != http.StatusOK {
		t.Fatalf("create a session: %d", status)
	}
	if status := s.Post(
		t,
		"/client_sessions/create",
		map[string]any{"customer_key": "acme"},
		&customer,
	); status != http.StatusOK {
		t.Fatalf("create a session of a customer: %d", status)
	}
	for name, token := range map[string]string{
		"session":  session.ClientSession.Token,
		"customer": customer.ClientSession.Token,
	} {
		var systems api.AcsSystemsResponse
		if s.PostAs(
			t,
			token,
			"/acs/systems/list",
			map[string]any{},
			&systems,
		); len(systems.AcsSystems) != 1 ||
			systems.AcsSystems[0].AcsSystemID != theirs.ID {
			t.Errorf("%s: %+v", name, systems.AcsSystems)
		}
	}
	token := session.ClientSession.Token
	var users api.AcsUsersResponse
	if s.PostAs(
		t,
		token,
		"/acs/users/list",
		map[string]any{},
		&users,
	); len(users.AcsUsers) != 1 ||
		users.AcsUsers[0].FullName != "Theirs" {
		t.Errorf("users: %+v", users.AcsUsers)
	}
	var list api.UserIdentitiesResponse
	if s.PostAs(t, token, "/user_identities/list", map[string]any{}, &list); len(list.UserIdentities) != 0 {
		t.Errorf("people that the session is not: %+v", list.UserIdentities)
	}
	if status := s.PostAs(
		t,
		customer.ClientSession.Token,
		"/user_identities/get",
		map[string]any{"user_identity_id": joe.UserIdentityID},
		nil,
	); status != http.StatusNotFound {
		t.Errorf("another person: %d", status)
	}
	if status := s.PostAs(
		t,
		token,
		"/acs/users/create",
		map[string]any{"acs_system_id": theirs.ID, "full_name": "X"},
		nil,
	); status != http.StatusForbidden {
		t.Errorf("create: %d", status)
	}
}
