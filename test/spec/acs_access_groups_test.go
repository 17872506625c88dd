package spec_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// membersOf returns the users of an access group.
func membersOf(t *testing.T, s *apptest.Server, group string) []string {
	t.Helper()
	var out api.AcsUsersOfUserIdentityResponse
	s.Post(t, "/acs/access_groups/list_users", params{"acs_access_group_id": group}, &out)
	return each(out.AcsUsers, func(u api.AcsUser) string { return u.AcsUserID })
}

// The users of a group can be changed from the side of the group.
func TestAcsAccessGroups_Users(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	y, other := s.AccessSystem(t), s.AccessSystem(t)
	group := groupNamed(t, s, y, "Technicians")
	var doors api.AcsEntrancesOfUserResponse
	s.Post(t, "/acs/access_groups/list_accessible_entrances", params{"acs_access_group_id": group}, &doors)
	if got := each(doors.AcsEntrances, func(e api.AcsEntrance) string { return e.DisplayName }); !slices.Equal(
		got,
		[]string{"Main entrance", "Server room"},
	) {
		t.Errorf("entrances of the group: %v", got)
	}
	jane := newUser(t, s, y, nil).AcsUserID
	joe := newPerson(t, s, params{"full_name": "Joe Bloggs"}).UserIdentityID
	change := func(path string, in params) {
		t.Helper()
		in["acs_access_group_id"] = group
		madeBy(t, s, "/acs/access_groups/"+path, "", in)
	}
	change("add_user", params{"acs_user_id": jane})
	change("add_user", params{"acs_user_id": jane}) // again
	change("add_user", params{"user_identity_id": joe})
	joes := person(t, s, joe).AcsUserIds
	if got := membersOf(t, s, group); len(joes) != 1 || !slices.Equal(got, []string{jane, joes[0]}) {
		t.Errorf("the users are %v, want %s and the new one of Joe, %v", got, jane, joes)
	}
	settled(t, s, joes[0])
	if got := y.Named(t, "Joe Bloggs"); len(got) != 1 || len(got[0].GroupIDs) != 1 {
		t.Errorf("on the system: %+v", got)
	}
	change("remove_user", params{"user_identity_id": joe})
	change("remove_user", params{"acs_user_id": jane})
	if got := membersOf(t, s, group); len(got) != 0 {
		t.Errorf("removed: %v", got)
	}
	for name, r := range map[string]struct {
		in   params
		want string
	}{
		"neither":               {params{}, "400 invalid_input"},
		"both":                  {params{"acs_user_id": jane, "user_identity_id": joe}, "400 invalid_input"},
		"another system":        {params{"acs_user_id": newUser(t, s, other, nil).AcsUserID}, "400 invalid_input"},
		"no such user":          {params{"acs_user_id": uuid.NewString()}, "404 acs_user_not_found"},
		"no such person":        {params{"user_identity_id": uuid.NewString()}, "404 user_identity_not_found"},
		"a person with no name": {params{"user_identity_id": newPerson(t, s, params{}).UserIdentityID}, "400 invalid_input"},
	} {
		r.in["acs_access_group_id"] = group
		if got := refused(t, s, s.APIKey, "/acs/access_groups/add_user", r.in); got != r.want {
			t.Errorf("%s: %s, want %s", name, got, r.want)
		}
	}
}

// A group exists until its system has deleted it. Its users stay.
func TestAcsAccessGroups_Delete(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.EmptyListGrace = time.Millisecond }),
	)
	y := s.AccessSystem(t)
	group := groupNamed(t, s, y, "Technicians")
	of := params{"acs_access_group_id": group}
	jane := newUser(t, s, y, params{"acs_access_group_ids": []any{group}}).AcsUserID
	settled(t, s, jane)
	warned := func(code string) bool {
		var out api.AcsAccessGroupResponse
		s.Post(t, "/acs/access_groups/get", of, &out)
		w := out.AcsAccessGroup.Warnings
		return len(w) == 1 && w[0].WarningCode == code && w[0].Message != ""
	}

	y.Control(t, http.MethodPut, "/faults", params{"refuse_group_deletions": true}, nil)
	madeBy(t, s, "/acs/access_groups/delete", "", of)
	apptest.Until(t, "the system refuses", func() bool { return warned("unknown_issue_with_acs_access_group") })

	y.Control(t, http.MethodPut, "/faults", params{}, nil)
	y.Control(t, http.MethodPost, "/offline", nil, nil)
	madeBy(t, s, "/acs/access_groups/delete", "", of) // a new request
	if !warned("being_deleted") {
		t.Error("a group that is being deleted has no warning")
	}
	y.Control(t, http.MethodPost, "/online", nil, nil)
	y.Sync(t)
	apptest.Until(t, "the group is gone", func() bool {
		return refused(t, s, s.APIKey, "/acs/access_groups/get", of) == "404 acs_access_group_not_found"
	})
	if got := y.Memory(t).Groups; len(got) != 1 || got[0].Name != "Everyone" {
		t.Errorf("groups on the system: %+v", got)
	}
	if got := accessible(t, s, jane); len(got) != 0 || len(y.Named(t, "Jane Doe")) != 1 {
		t.Errorf("a former member can pass %v", got)
	}
	settled(t, s, jane)
	var events api.EventsResponse
	s.Post(t, "/events/list", params{
		"since": "2020-01-01T00:00:00Z", "event_type": "acs_access_group.deleted", "acs_access_group_id": group,
	}, &events)
	if len(events.Events) != 1 {
		t.Errorf("%d events", len(events.Events))
	}
	if got := refused(t, s, s.APIKey, "/acs/access_groups/delete", of); got != "404 acs_access_group_not_found" {
		t.Errorf("delete again: %s", got)
	}
}
