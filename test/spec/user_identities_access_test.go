package spec_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// deviceListed returns the devices that a person was given access to.
func deviceListed(t *testing.T, s *apptest.Server, identity string) []string {
	t.Helper()
	var out api.DevicesOfUserIdentityResponse
	if status := s.Post(
		t,
		"/user_identities/list_accessible_devices",
		params{"user_identity_id": identity},
		&out,
	); status != http.StatusOK || len(out.Devices) != len(out.AccessibleDevices) {
		t.Fatalf("list the devices: %d %+v", status, out)
	}
	return each(out.Devices, func(d api.Device) string { return d.DeviceID })
}

// The sessions of a person see and use a granted device and nothing else of its account.
func TestUserIdentityDevices_GrantUseRevoke(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	acct, devices := locksOf(t, s, account.NewAccount{}, 2, "august")
	granted, other := devices[0].DeviceID, devices[1].DeviceID
	jane := newPerson(t, s, params{"full_name": "Jane Doe"}).UserIdentityID
	key := uuid.NewString()
	c := session(t, s, params{"user_identity_id": jane, "user_identifier_key": key})
	grant := params{"user_identity_id": jane, "device_id": granted}
	if got := devicesOf(t, s, c.Token, "/devices/list", params{}); len(got) != 0 {
		t.Fatalf("before the grant: %v", got)
	}
	madeBy(t, s, "/user_identities/grant_access_to_device", "", grant)
	madeBy(t, s, "/user_identities/grant_access_to_device", "", grant) // again
	for path, in := range map[string]params{
		"/devices/list": {},
		"/locks/list":   {},
	} {
		if got := devicesOf(t, s, c.Token, path, in); !slices.Equal(got, []string{granted}) {
			t.Errorf("%s: %v", path, got)
		}
	}
	if got := deviceListed(t, s, jane); !slices.Equal(got, []string{granted}) {
		t.Errorf("listed: %v", got)
	}
	if got := devicesOf(t, s, s.APIKey, "/devices/list", params{"user_identifier_key": key}); !slices.Equal(
		got,
		[]string{granted},
	) {
		t.Errorf("as seen by the person: %v", got)
	}
	var seen api.ClientSessionResponse
	s.PostAs(t, c.Token, "/client_sessions/get", params{}, &seen)
	if seen.ClientSession.DeviceCount != 1 || len(seen.ClientSession.ConnectedAccountIds) != 0 {
		t.Errorf("the session: %+v", seen.ClientSession)
	}

	var attempt api.ActionAttemptResponse
	s.PostAs(t, c.Token, "/locks/unlock_door", params{"device_id": granted, "sync": true}, &attempt)
	id := attempt.ActionAttempt.ActionAttemptID
	if status := s.PostAs(
		t,
		c.Token,
		"/action_attempts/get",
		params{"action_attempt_id": id},
		&attempt,
	); status != 200 ||
		attempt.ActionAttempt.Status != "success" {
		t.Errorf("unlock: %d %+v", status, attempt.ActionAttempt)
	}
	var code api.AccessCodeResponse
	s.PostAs(t, c.Token, "/access_codes/create", params{"device_id": granted, "name": "Guest", "sync": true}, &code)
	codeID := code.AccessCode.AccessCodeID
	var events api.EventsResponse
	s.PostAs(t, c.Token, "/events/list", params{"since": "2020-01-01T00:00:00Z", "access_code_id": codeID}, &events)
	if len(events.Events) == 0 {
		t.Error("the session sees no event of its code")
	}
	ofCode := params{"access_code_id": codeID}
	for _, path := range []string{"/access_codes/get", "/access_codes/get_timeline"} {
		if status := s.PostAs(t, c.Token, path, ofCode, nil); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	for path, in := range map[string]params{
		"/devices/get":            {"device_id": other},
		"/locks/unlock_door":      {"device_id": other},
		"/connected_accounts/get": {"connected_account_id": acct},
	} {
		if got := refused(t, s, c.Token, path, in); got[:3] != "404" {
			t.Errorf("%s of the account: %s", path, got)
		}
	}
	stored := s.Send(t, http.MethodPost, "/access_codes/create", keyed(c.Token, key),
		`{"device_id":"`+granted+`"}`, nil)
	if stored.StatusCode != http.StatusOK {
		t.Fatalf("create a code with a key: %d", stored.StatusCode)
	}

	madeBy(t, s, "/user_identities/revoke_access_to_device", "", grant)
	madeBy(t, s, "/user_identities/revoke_access_to_device", "", grant) // again
	for path, in := range map[string]params{
		"/devices/get":         {"device_id": granted},
		"/locks/unlock_door":   {"device_id": granted},
		"/access_codes/get":    ofCode,
		"/action_attempts/get": {"action_attempt_id": id},
	} {
		if got := refused(t, s, c.Token, path, in); got[:3] != "404" {
			t.Errorf("%s after the revocation: %s", path, got)
		}
	}
	if again := s.Send(t, http.MethodPost, "/access_codes/create", keyed(c.Token, key),
		`{"device_id":"`+granted+`"}`, nil); again.StatusCode == http.StatusOK {
		t.Error("a stored answer is replayed after the revocation")
	}
	if got := devicesOf(t, s, c.Token, "/devices/list", params{}); len(got)+len(deviceListed(t, s, jane)) != 0 {
		t.Errorf("after the revocation: %v", got)
	}
	for path, in := range map[string]params{
		"404 device_not_found":        {"user_identity_id": jane, "device_id": uuid.NewString()},
		"404 user_identity_not_found": {"user_identity_id": uuid.NewString(), "device_id": granted},
	} {
		for _, route := range []string{"grant_access_to_device", "revoke_access_to_device"} {
			if got := refused(t, s, s.APIKey, "/user_identities/"+route, in); got != path {
				t.Errorf("%s %v: %s", route, in, got)
			}
		}
	}
}

// keyed returns the headers of a request with an idempotency key.
func keyed(token, key string) http.Header {
	h := apptest.Bearer(token)
	h.Set("Idempotency-Key", key)
	return h
}

// Unmanaged devices are not granted, and the grant of a device that is removed ends for good.
func TestUserIdentityDevices_FollowTheDevice(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	_, devices := locksOf(t, s, account.NewAccount{}, 1, "august")
	_, found := locksOf(t, s, account.NewAccount{Unmanaged: true}, 1, "nuki")
	jane := newPerson(t, s, params{}).UserIdentityID
	if got := refused(t, s, s.APIKey, "/user_identities/grant_access_to_device",
		params{"user_identity_id": jane, "device_id": found[0].DeviceID}); got != "404 device_not_found" {
		t.Errorf("an unmanaged device: %s", got)
	}
	device := devices[0].DeviceID
	grant := params{"user_identity_id": jane, "device_id": device}
	madeBy(t, s, "/user_identities/grant_access_to_device", "", grant)
	c := session(t, s, params{"user_identity_id": jane})
	madeBy(t, s, "/devices/update", "", params{"device_id": device, "is_managed": false})
	if got := refused(t, s, c.Token, "/devices/unmanaged/get", params{"device_id": device}); got[:3] != "404" ||
		len(deviceListed(t, s, jane)) != 0 {
		t.Errorf("a device that is not managed: %s", got)
	}
	madeBy(t, s, "/devices/unmanaged/update", "", params{"device_id": device, "is_managed": true})
	if got := deviceListed(t, s, jane); !slices.Equal(got, []string{device}) {
		t.Errorf("managed again: %v", got)
	}
	madeBy(t, s, "/devices/delete", "", params{"device_id": device})
	if got := deviceListed(t, s, jane); len(got) != 0 {
		t.Errorf("a deleted device: %v", got)
	}
	madeBy(t, s, "/user_identities/revoke_access_to_device", "", grant)
}

// A merge moves everything to the primary identity, whose former names keep working.
func TestUserIdentities_Merge(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	const merge = "/user_identities/merge"
	y := s.AccessSystem(t)
	device := s.Device(t, "august")
	jane := newPerson(t, s, params{"user_identity_key": "jane", "full_name": "Jane", "phone_number": "+15555550101"})
	old := newPerson(t, s, params{
		"user_identity_key": "old", "email_address": "old@example.com", "phone_number": "+15555550102",
	})
	older := newPerson(t, s, params{"user_identity_key": "older", "email_address": "older@example.com"})
	member := newUser(t, s, y, params{
		"user_identity_id":     old.UserIdentityID,
		"acs_access_group_ids": []any{groupNamed(t, s, y, "Everyone")},
	}).AcsUserID
	madeBy(t, s, "/user_identities/grant_access_to_device", "",
		params{"user_identity_id": older.UserIdentityID, "device_id": device})
	c := session(t, s, params{"user_identity_id": older.UserIdentityID})
	phone := newPhone(t, s, params{"user_identity_id": old.UserIdentityID}).DeviceID

	all := params{
		"user_identity_id":         jane.UserIdentityID,
		"merged_user_identity_ids": []any{old.UserIdentityID, older.UserIdentityID},
	}
	madeBy(t, s, merge, "", all)
	madeBy(t, s, merge, "", all) // changes nothing
	now := person(t, s, jane.UserIdentityID)
	if *now.EmailAddress != "old@example.com" || *now.PhoneNumber != "+15555550101" || *now.FullName != "Jane" ||
		!slices.Equal(now.MergedUserIdentityIds, []string{old.UserIdentityID, older.UserIdentityID}) ||
		!slices.Equal(now.MergedUserIdentityKeys, []string{"old", "older"}) ||
		!slices.Equal(now.AcsUserIds, []string{member}) {
		t.Errorf("merged: %+v", now)
	}
	if got := devicesOf(t, s, c.Token, "/devices/list", params{}); !slices.Equal(got, []string{device}) {
		t.Errorf("a session of a merged identity sees %v", got)
	}
	if got := phonesOf(
		t,
		s,
		params{"owner_user_identity_id": old.UserIdentityID},
	); !slices.Equal(
		got,
		[]string{phone},
	) {
		t.Errorf("the phones of the person: %v", got)
	}
	if got := people(t, s, params{}); !slices.Equal(got, []string{"jane"}) {
		t.Errorf("the people are %v", got)
	}
	if again := person(t, s, older.UserIdentityID); again.UserIdentityID != jane.UserIdentityID {
		t.Errorf("a former identifier names %+v", again)
	}
	byKey := madeBy(t, s, "/user_identities/get", "user_identity", params{"user_identity_key": "old"})
	if byKey["user_identity_id"] != jane.UserIdentityID {
		t.Errorf("a former key names %v", byKey)
	}
	madeBy(t, s, "/user_identities/update", "", params{"user_identity_id": old.UserIdentityID, "full_name": "Jane Doe"})
	if u := madeBy(t, s, "/acs/users/get", "acs_user", params{
		"user_identity_id": old.UserIdentityID, "acs_system_id": y.ID,
	}); u["acs_user_id"] != member || u["user_identity_full_name"] != "Jane Doe" {
		t.Errorf("the user by a former identifier: %v", u)
	}
	var doors api.AcsEntrancesOfUserResponse
	s.Post(t, "/user_identities/list_accessible_entrances", params{"user_identity_id": older.UserIdentityID}, &doors)
	if got := each(doors.AcsEntrances, func(e api.AcsEntrance) string { return e.DisplayName }); !slices.Equal(
		got,
		[]string{"Main entrance", "Car park"},
	) {
		t.Errorf("the entrances of the person: %v", got)
	}
	another := session(t, s, params{"user_identity_id": old.UserIdentityID})
	if another.UserIdentityID != jane.UserIdentityID {
		t.Errorf("a session of a former identifier: %+v", another)
	}

	twin := newPerson(t, s, params{"user_identity_key": "twin"})
	newUser(t, s, y, params{"user_identity_id": twin.UserIdentityID})
	for name, r := range map[string]struct {
		path string
		in   params
		want string
	}{
		"two users on one system": {
			merge,
			params{"user_identity_key": "jane", "merged_user_identity_keys": []any{"twin"}},
			"409 acs_user_already_exists",
		},
		"merged elsewhere": {
			merge,
			params{"user_identity_key": "twin", "merged_user_identity_keys": []any{"old"}},
			"409 user_identity_already_merged",
		},
		"itself": {
			merge,
			params{"user_identity_key": "jane", "merged_user_identity_keys": []any{"jane"}},
			"400 invalid_input",
		},
		"both ways": {
			merge,
			params{"user_identity_id": jane.UserIdentityID, "merged_user_identity_keys": []any{"twin"}},
			"400 invalid_input",
		},
		"none":    {merge, params{"user_identity_key": "jane"}, "400 invalid_input"},
		"unknown": {merge, params{"user_identity_key": "jane", "merged_user_identity_keys": []any{"x"}}, "404 user_identity_not_found"},
		"a former key": {
			"/user_identities/create", params{"user_identity_key": "older"}, "409 user_identity_already_exists",
		},
		"a former key for another": {
			"/user_identities/update",
			params{"user_identity_id": twin.UserIdentityID, "user_identity_key": "old"},
			"409 user_identity_already_exists",
		},
		"delete by a former identifier": {
			"/user_identities/delete", params{"user_identity_id": old.UserIdentityID}, "404 user_identity_not_found",
		},
	} {
		if got := refused(t, s, s.APIKey, r.path, r.in); got != r.want {
			t.Errorf("%s: %s, want %s", name, got, r.want)
		}
	}
	if again := person(t, s, twin.UserIdentityID); len(again.AcsUserIds) != 1 {
		t.Errorf("a refused merge changed %+v", again)
	}
}

// All identities are managed.
func TestUserIdentities_Unmanaged(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	jane := newPerson(t, s, params{}).UserIdentityID
	var out api.UnmanagedUserIdentitiesResponse
	if status := s.Post(t, "/user_identities/unmanaged/list", params{}, &out); status != http.StatusOK ||
		out.UserIdentities == nil || len(out.UserIdentities) != 0 || out.Pagination.HasNextPage {
		t.Errorf("%d %+v", status, out)
	}
	for path, in := range map[string]params{
		"get":    {"user_identity_id": jane},
		"update": {"user_identity_id": jane, "is_managed": true},
	} {
		if got := refused(
			t,
			s,
			s.APIKey,
			"/user_identities/unmanaged/"+path,
			in,
		); got != "404 user_identity_not_found" {
			t.Errorf("%s: %s", path, got)
		}
	}
}
