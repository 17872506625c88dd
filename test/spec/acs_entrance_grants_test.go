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

const grantAccess = "/acs/entrances/grant_access"

// entranceNamed returns an entrance of the system.
func entranceNamed(t *testing.T, s *apptest.Server, y *apptest.AccessSystem, name string) string {
	t.Helper()
	var out api.AcsEntrancesResponse
	s.Post(t, "/acs/entrances/list", map[string]any{"acs_system_id": y.ID}, &out)
	for _, e := range out.AcsEntrances {
		if e.DisplayName == name {
			return e.AcsEntranceID
		}
	}
	t.Fatalf("there is no entrance %q", name)
	return ""
}

// accessible returns the names of the entrances that a user can pass.
func accessible(t *testing.T, s *apptest.Server, user string) []string {
	t.Helper()
	var out api.AcsEntrancesOfUserResponse
	s.Post(t, "/acs/users/list_accessible_entrances", map[string]any{"acs_user_id": user}, &out)
	return each(out.AcsEntrances, func(e api.AcsEntrance) string { return e.DisplayName })
}

func TestGrantAccess_Lifecycle(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.EmptyListGrace = time.Millisecond }),
	)
	y := s.AccessSystem(t)
	everyone := groupNamed(t, s, y, "Everyone")
	room := map[string]any{"acs_entrance_id": entranceNamed(t, s, y, "Server room")}
	parking := map[string]any{"acs_entrance_id": entranceNamed(t, s, y, "Car park")}
	jane := newUser(t, s, y, nil).AcsUserID
	settled(t, s, jane)
	doors := map[string]string{}
	for _, e := range y.Memory(t).Entrances {
		doors[e.Name] = e.ID
	}
	opens := func(when string, want ...string) {
		t.Helper()
		settled(t, s, jane)
		if got := accessible(t, s, jane); !slices.Equal(got, want) {
			t.Errorf("%s: lists %v, want %v", when, got, want)
		}
		on := y.Named(t, "Jane Doe")[0]
		for name, id := range doors {
			if ok, reason := y.Opens(t, id, on.ID); ok != slices.Contains(want, name) {
				t.Errorf("%s: %s opens: %t %s", when, name, ok, reason)
			}
		}
	}

	y.Control(t, http.MethodPost, "/offline", nil, nil)
	done(t, s, grantAccess, jane, room)
	done(t, s, grantAccess, jane, room) // again
	if u := user(t, s, jane); !slices.Equal(mutations(u), []string{"updating_group_membership"}) {
		t.Errorf("the system does not have the grant yet: %+v", u.PendingMutations)
	}
	y.Control(t, http.MethodPost, "/online", nil, nil)
	y.Sync(t)
	opens("granted", "Server room")
	done(t, s, "/acs/users/add_to_access_group", jane, map[string]any{"acs_access_group_id": everyone})
	done(t, s, grantAccess, jane, parking)
	opens("also through a group", "Main entrance", "Car park", "Server room")
	done(t, s, "/acs/users/remove_from_access_group", jane, map[string]any{"acs_access_group_id": everyone})
	opens("without the group", "Car park", "Server room")

	on := y.Named(t, "Jane Doe")[0]
	on.EntranceIDs = []string{doors["Main entrance"]}
	y.Control(t, http.MethodPut, "/users/"+on.ID, on, nil)
	y.Sync(t)
	apptest.Until(t, "a change at the system is reverted", func() bool {
		return len(y.Named(t, "Jane Doe")[0].EntranceIDs) == 2
	})
	opens("reverted", "Car park", "Server room")

	y.Control(t, http.MethodDelete, "/entrances/"+doors["Server room"], nil, nil)
	y.Sync(t)
	apptest.Until(t, "the grant ends with its entrance", func() bool { return len(accessible(t, s, jane)) == 1 })
	opens("one entrance less", "Car park")
	done(t, s, "/acs/users/revoke_access_to_all_entrances", jane, nil)
	opens("revoked")

	done(t, s, grantAccess, jane, parking)
	settled(t, s, jane)
	done(t, s, "/acs/users/delete", jane, nil)
	apptest.Until(t, "the grant ends with its user", func() bool { return len(y.Named(t, "Jane Doe")) == 0 })
}

// The server repeats a grant until the system shows it.
func TestGrantAccess_FailedWrites(t *testing.T) {
	t.Parallel()
	for fault, arrives := range map[string]bool{"unconfirmed": true, "full": false} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := apptest.Shared(t, apptest.WithProfiles("august"))
			y := s.AccessSystem(t)
			jane := newUser(t, s, y, nil).AcsUserID
			settled(t, s, jane)
			faults := map[string]any{"failure_rate": map[string]float64{fault: 1}}
			y.Control(t, http.MethodPut, "/faults", faults, nil)
			done(t, s, grantAccess, jane, map[string]any{"acs_entrance_id": entranceNamed(t, s, y, "Car park")})
			apptest.Until(t, "the write fails", func() bool {
				if arrives {
					return len(y.Named(t, "Jane Doe")[0].EntranceIDs) == 1
				}
				return fails(user(t, s, jane), "failed_to_update_on_acs_system")
			})
			y.Control(t, http.MethodPut, "/faults", map[string]any{}, nil)
			settled(t, s, jane)
			if on := y.Named(t, "Jane Doe"); len(on) != 1 || len(on[0].EntranceIDs) != 1 {
				t.Errorf("on the system: %+v", on)
			}
		})
	}
}

// A person without a user on the access system of the entrance gets one.
func TestGrantAccess_UserIdentity(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	one, two := s.AccessSystem(t), s.AccessSystem(t)
	entrance := entranceNamed(t, s, one, "Server room")
	managed := newUser(t, s, one, map[string]any{"full_name": "Alex Kim", "email": "alex@example.com"}).AcsUserID
	for name, c := range map[string]struct {
		identity  map[string]any
		on        string // the name of the user on the system
		want      string // the user, if it is known
		entrances []string
	}{
		"has a user": {
			map[string]any{"full_name": "Kit Moss", "acs_system_ids": []string{one.ID, two.ID}},
			"Kit Moss",
			"",
			[]string{"Server room"},
		},
		"user with the address": {
			map[string]any{"email_address": "alex@example.com"},
			"Alex Kim",
			managed,
			[]string{"Server room"},
		},
		"unmanaged user with the address": {
			map[string]any{"full_name": "R. Hale", "email_address": "robin.hale@example.com"},
			"Robin Hale",
			"",
			[]string{"Main entrance", "Car park", "Server room"},
		},
		"no user": {
			map[string]any{"full_name": "Jo Nyberg", "phone_number": "+15555550123"},
			"Jo Nyberg",
			"",
			[]string{"Server room"},
		},
	} {
		var person api.UserIdentityResponse
		if status := s.Post(t, "/user_identities/create", c.identity, &person); status != http.StatusOK {
			t.Fatalf("%s: create the identity: %d", name, status)
		}
		id := person.UserIdentity.UserIdentityID
		for range 2 { // the second grant finds the user of the first
			in := map[string]any{"user_identity_id": id, "acs_entrance_id": entrance}
			if status := s.Post(t, grantAccess, in, nil); status != http.StatusOK {
				t.Errorf("%s: %d", name, status)
			}
		}
		var u api.AcsUserResponse
		s.Post(t, "/acs/users/get", map[string]any{"user_identity_id": id, "acs_system_id": one.ID}, &u)
		settled(t, s, u.AcsUser.AcsUserID)
		if c.want != "" && u.AcsUser.AcsUserID != c.want {
			t.Errorf("%s: user %s, want %s", name, u.AcsUser.AcsUserID, c.want)
		}
		if got := accessible(t, s, u.AcsUser.AcsUserID); !slices.Equal(got, c.entrances) {
			t.Errorf("%s: lists %v, want %v", name, got, c.entrances)
		}
		if on := one.Named(t, c.on); len(on) != 1 || len(on[0].EntranceIDs) != 1 {
			t.Errorf("%s: on the system: %+v", name, on)
		}
	}
	var created api.EventsResponse
	creations := map[string]any{"since": "2020-01-01T00:00:00Z", "event_type": "acs_user.created"}
	s.Post(t, "/events/list", creations, &created)
	if len(created.Events) != 5 { // Alex, Kit twice, Robin, and Jo
		t.Errorf("%d events acs_user.created", len(created.Events))
	}
}

func TestGrantAccess_InvalidRequests(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	one, two := s.AccessSystem(t), s.AccessSystem(t)
	jane := newUser(t, s, one, nil).AcsUserID
	var nameless api.UserIdentityResponse
	s.Post(t, "/user_identities/create", map[string]any{"user_identity_key": uuid.NewString()}, &nameless)
	identity := nameless.UserIdentity.UserIdentityID
	entrance, foreign := entranceNamed(t, s, one, "Car park"), entranceNamed(t, s, two, "Car park")
	var strangers api.UnmanagedAcsUsersResponse
	s.Post(t, "/acs/users/unmanaged/list", map[string]any{"acs_system_id": one.ID}, &strangers)
	gone := newUser(t, s, one, nil).AcsUserID
	one.Control(t, http.MethodPost, "/offline", nil, nil) // so that the deletion is pending
	done(t, s, "/acs/users/delete", gone, nil)
	for name, c := range map[string]struct {
		user, identity, entrance any
		status                   int
		kind                     string
	}{
		"neither user nor identity": {nil, nil, entrance, 400, "invalid_input"},
		"both":                      {jane, identity, entrance, 400, "invalid_input"},
		"no entrance":               {jane, nil, nil, 400, "invalid_input"},
		"unknown entrance":          {jane, nil, uuid.NewString(), 404, "acs_entrance_not_found"},
		"unknown for an identity":   {nil, identity, uuid.NewString(), 404, "acs_entrance_not_found"},
		"entrance elsewhere":        {jane, nil, foreign, 400, "invalid_input"},
		"unknown user":              {uuid.NewString(), nil, entrance, 404, "acs_user_not_found"},
		"unmanaged user":            {strangers.AcsUsers[0].AcsUserID, nil, entrance, 404, "acs_user_not_found"},
		"user being deleted":        {gone, nil, entrance, 400, "invalid_input"},
		"unknown identity":          {nil, uuid.NewString(), entrance, 404, "user_identity_not_found"},
		"identity without a name":   {nil, identity, entrance, 400, "invalid_input"},
	} {
		in := map[string]any{}
		for key, value := range map[string]any{
			"acs_user_id":      c.user,
			"user_identity_id": c.identity,
			"acs_entrance_id":  c.entrance,
		} {
			if value != nil {
				in[key] = value
			}
		}
		var f failure
		if status := s.Post(t, grantAccess, in, &f); status != c.status || f.Error.Type != c.kind {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
}
