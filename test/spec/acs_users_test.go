package spec_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// newUser creates a user on a system.
func newUser(t *testing.T, s *apptest.Server, y *apptest.AccessSystem, params map[string]any) api.AcsUser {
	t.Helper()
	in := map[string]any{"acs_system_id": y.ID, "full_name": "Jane Doe"}
	maps.Copy(in, params)
	var out api.AcsUserResponse
	if status := s.Post(t, "/acs/users/create", in, &out); status != http.StatusOK {
		t.Fatalf("create %v: %d", in, status)
	}
	return out.AcsUser
}

// user reads a user.
func user(t *testing.T, s *apptest.Server, id string) api.AcsUser {
	t.Helper()
	var out api.AcsUserResponse
	if status := s.Post(t, "/acs/users/get", map[string]any{"acs_user_id": id}, &out); status != http.StatusOK {
		t.Fatalf("read the user %s: %d", id, status)
	}
	return out.AcsUser
}

// settled waits until a user has no pending mutations.
func settled(t *testing.T, s *apptest.Server, id string) api.AcsUser {
	t.Helper()
	var u api.AcsUser
	apptest.Until(t, "the user is on the system as it should be", func() bool {
		u = user(t, s, id)
		return len(u.PendingMutations) == 0 && len(u.Errors) == 0 && u.LastSuccessfulSyncAt != nil
	})
	return u
}

// done sends a request about a user that must succeed.
func done(t *testing.T, s *apptest.Server, path, id string, params map[string]any) {
	t.Helper()
	in := map[string]any{"acs_user_id": id}
	maps.Copy(in, params)
	var out any
	if status := s.Post(t, path, in, &out); status != http.StatusOK {
		t.Fatalf("%s %v: %d %v", path, params, status, out)
	}
}

func mutations(u api.AcsUser) (codes []string) {
	for _, m := range u.PendingMutations {
		codes = append(codes, m.MutationCode)
	}
	return codes
}

func fails(u api.AcsUser, code string) bool {
	return len(u.Errors) == 1 && u.Errors[0].ErrorCode == code && u.Errors[0].Message != "" &&
		!u.Errors[0].CreatedAt.IsZero()
}

// groupNamed returns an access group of the system.
func groupNamed(t *testing.T, s *apptest.Server, y *apptest.AccessSystem, name string) string {
	t.Helper()
	var out api.AcsAccessGroupsResponse
	s.Post(t, "/acs/access_groups/list", map[string]any{"acs_system_id": y.ID}, &out)
	for _, g := range out.AcsAccessGroups {
		if g.Name == name {
			return g.AcsAccessGroupID
		}
	}
	t.Fatalf("there is no group %q", name)
	return ""
}

func TestAcsUser_Lifecycle(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	y := s.AccessSystem(t)
	latency := func(ms int) {
		t.Helper()
		y.Control(t, http.MethodPut, "/faults", map[string]any{"latency_ms": map[string]int{"min": ms, "max": ms}}, nil)
	}
	slow, quick := func() { t.Helper(); latency(3000) }, func() { t.Helper(); latency(0) } // so that the pending state is visible
	quick()
	everyone, technicians := groupNamed(t, s, y, "Everyone"), groupNamed(t, s, y, "Technicians")
	made := newUser(
		t,
		s,
		y,
		map[string]any{
			"email":                "jane@example.com",
			"phone_number":         "+15555550100",
			"acs_access_group_ids": []string{everyone, everyone},
			"access_schedule":      map[string]any{"ends_at": time.Now().Add(time.Hour)},
		},
	)
	if !slices.Equal(mutations(made), []string{"creating"}) || !made.IsManaged || *made.IsSuspended ||
		made.Email != "jane@example.com" ||
		made.EmailAddress != "jane@example.com" ||
		made.DisplayName != "Jane Doe" ||
		made.ConnectedAccountID != y.AccountID ||
		made.LastSuccessfulSyncAt != nil ||
		made.AccessSchedule.EndsAt == nil ||
		time.Since(made.AccessSchedule.StartsAt) > time.Minute ||
		made.UserIdentityID != "" ||
		len(made.Warnings) != 0 {
		t.Errorf("immediately: %+v", made)
	}
	got := settled(t, s, made.AcsUserID)
	on := y.Named(t, "Jane Doe")
	if len(on) != 1 || on[0].Email != "jane@example.com" || on[0].Phone != "+15555550100" || len(on[0].GroupIDs) != 1 ||
		!on[0].EndsAt.Equal(*got.AccessSchedule.EndsAt) {
		t.Fatalf("on the system: %+v", on)
	}
	doors := map[string]string{}
	for _, e := range y.Memory(t).Entrances {
		doors[e.Name] = e.ID
	}
	opens := func(door, want string) {
		t.Helper()
		if ok, reason := y.Opens(t, doors[door], on[0].ID); ok != (want == "") || reason != want {
			t.Errorf("%s opens: %t %q, want %q", door, ok, reason, want)
		}
	}
	opens("Car park", "")
	opens("Server room", "no_group")

	slow()
	done(t, s, "/acs/users/suspend", made.AcsUserID, nil)
	if u := user(
		t,
		s,
		made.AcsUserID,
	); !*u.IsSuspended || !slices.Equal(mutations(u), []string{"updating_suspension_state"}) ||
		u.PendingMutations[0].From["is_suspended"] != false ||
		u.PendingMutations[0].To["is_suspended"] != true {
		t.Errorf("being suspended: %+v", u)
	}
	quick()
	settled(t, s, made.AcsUserID)
	opens("Car park", "suspended")
	done(t, s, "/acs/users/suspend", made.AcsUserID, nil) // again
	done(t, s, "/acs/users/unsuspend", made.AcsUserID, nil)
	settled(t, s, made.AcsUserID)
	opens("Car park", "")

	slow()
	done(t, s, "/acs/users/add_to_access_group", made.AcsUserID, map[string]any{"acs_access_group_id": technicians})
	done(t, s, "/acs/users/remove_from_access_group", made.AcsUserID, map[string]any{"acs_access_group_id": everyone})
	if u := user(
		t,
		s,
		made.AcsUserID,
	); !slices.Equal(mutations(u), []string{"updating_group_membership", "updating_group_membership"}) ||
		u.PendingMutations[0].From["acs_access_group_id"] != everyone ||
		u.PendingMutations[1].To["acs_access_group_id"] != technicians {
		t.Errorf("between groups: %+v", u.PendingMutations)
	}
	quick()
	var accessible api.AcsEntrancesOfUserResponse
	s.Post(t, "/acs/users/list_accessible_entrances", map[string]any{"acs_user_id": made.AcsUserID}, &accessible)
	if names := each(
		accessible.AcsEntrances,
		func(e api.AcsEntrance) string { return e.DisplayName },
	); !slices.Equal(
		names,
		[]string{"Main entrance", "Server room"},
	) {
		t.Errorf("accessible: %v", names)
	}
	settled(t, s, made.AcsUserID)
	opens("Car park", "no_group")
	opens("Server room", "")

	later := time.Now().Add(24 * time.Hour)
	slow()
	done(
		t,
		s,
		"/acs/users/update",
		made.AcsUserID,
		map[string]any{
			"full_name":       "Jane Roe",
			"access_schedule": map[string]any{"starts_at": later, "ends_at": later.Add(time.Hour)},
		},
	)
	if u := user(
		t,
		s,
		made.AcsUserID,
	); !slices.Equal(mutations(u), []string{"updating_user_information", "updating_access_schedule"}) ||
		u.PendingMutations[0].From["full_name"] != "Jane Doe" {
		t.Errorf("being changed: %+v", u.PendingMutations)
	}
	quick()
	settled(t, s, made.AcsUserID)
	opens("Server room", "too_early")
	done(
		t,
		s,
		"/acs/users/update",
		made.AcsUserID,
		map[string]any{"access_schedule": nil, "email_address": "roe@example.com"},
	)
	if u := settled(
		t,
		s,
		made.AcsUserID,
	); u.AccessSchedule != nil || u.FullName != "Jane Roe" ||
		u.Email != "roe@example.com" {
		t.Errorf("without a schedule: %+v", u)
	}
	opens("Server room", "")
	done(t, s, "/acs/users/revoke_access_to_all_entrances", made.AcsUserID, nil)
	settled(t, s, made.AcsUserID)
	opens("Server room", "no_group")

	slow()
	done(t, s, "/acs/users/delete", made.AcsUserID, nil)
	done(t, s, "/acs/users/delete", made.AcsUserID, nil) // again
	if u := user(
		t,
		s,
		made.AcsUserID,
	); len(u.Warnings) != 1 || u.Warnings[0].WarningCode != "being_deleted" ||
		!slices.Equal(mutations(u), []string{"deleting"}) {
		t.Errorf("being deleted: %+v", u)
	}
	var f failure
	if status := s.Post(
		t,
		"/acs/users/update",
		map[string]any{"acs_user_id": made.AcsUserID, "full_name": "Too late"},
		&f,
	); status != http.StatusBadRequest {
		t.Errorf("update what is being deleted: %d", status)
	}
	quick()
	apptest.Until(t, "the user is deleted", func() bool {
		return s.Post(t, "/acs/users/get", map[string]any{"acs_user_id": made.AcsUserID}, nil) == http.StatusNotFound
	})
	if left := y.Named(t, "Jane Roe"); len(left) != 0 {
		t.Errorf("left on the system: %+v", left)
	}
	for _, kind := range []string{"acs_system.added", "acs_system.connected", "acs_user.created", "acs_user.deleted"} {
		var events api.EventsResponse
		s.Post(t, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "event_type": kind}, &events)
		if len(events.Events) != 1 || events.Events[0].AdditionalProperties["acs_system_id"] != y.ID ||
			strings.HasPrefix(kind, "acs_user") &&
				events.Events[0].AdditionalProperties["acs_user_id"] != made.AcsUserID {
			t.Errorf("%s: %+v", kind, events.Events)
		}
	}
}

func each[A, B any](list []A, to func(A) B) (out []B) {
	for _, a := range list {
		out = append(out, to(a))
	}
	return out
}

func TestAcsUser_ErrorsAndRetries(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	y := s.AccessSystem(t)
	faults := func(f map[string]any) { y.Control(t, http.MethodPut, "/faults", f, nil) }
	waits := func(id, code string) {
		t.Helper()
		apptest.Until(t, code, func() bool { return fails(user(t, s, id), code) })
	}

	faults(map[string]any{"max_users": 2})
	jane := newUser(t, s, y, nil)
	waits(jane.AcsUserID, "failed_to_create_on_acs_system")
	faults(map[string]any{})
	settled(t, s, jane.AcsUserID) // automatically

	faults(map[string]any{"failure_rate": map[string]float64{"unconfirmed": 1}})
	joe := newUser(t, s, y, map[string]any{"full_name": "Joe"})
	apptest.Until(
		t,
		"the system has Joe although it returned an error",
		func() bool { return len(y.Named(t, "Joe")) > 0 },
	)
	settled(t, s, joe.AcsUserID)
	if on := y.Named(t, "Joe"); len(on) != 1 {
		t.Errorf("Joe is there %d times", len(on))
	}
	faults(map[string]any{})

	long := strings.Repeat("Long ", 30)
	done(t, s, "/acs/users/update", joe.AcsUserID, map[string]any{"full_name": long})
	waits(joe.AcsUserID, "failed_to_update_on_acs_system")
	done(t, s, "/acs/users/update", joe.AcsUserID, map[string]any{"full_name": "Joseph"})
	settled(t, s, joe.AcsUserID)

	y.Control(t, http.MethodPost, "/offline", nil, nil)
	done(t, s, "/acs/users/suspend", joe.AcsUserID, nil)
	done(t, s, "/acs/users/delete", jane.AcsUserID, nil)
	waits(joe.AcsUserID, "failed_to_update_on_acs_system")
	waits(jane.AcsUserID, "failed_to_delete_on_acs_system")
	var system api.AcsSystemResponse
	if s.Post(
		t,
		"/acs/systems/get",
		map[string]any{"acs_system_id": y.ID},
		&system,
	); len(system.AcsSystem.Errors) != 1 ||
		system.AcsSystem.Errors[0].ErrorCode != "acs_system_disconnected" {
		t.Errorf("the system that is offline: %+v", system.AcsSystem)
	}
	y.Control(t, http.MethodPost, "/online", nil, nil)
	y.Sync(t)
	settled(t, s, joe.AcsUserID)
	apptest.Until(t, "Jane is deleted", func() bool {
		return s.Post(t, "/acs/users/get", map[string]any{"acs_user_id": jane.AcsUserID}, nil) == http.StatusNotFound
	})
	if s.Post(
		t,
		"/acs/systems/get",
		map[string]any{"acs_system_id": y.ID},
		&system,
	); len(
		system.AcsSystem.Errors,
	) != 0 {
		t.Errorf("the system that is back: %+v", system.AcsSystem)
	}
	for kind, want := range map[string]int{"acs_system.disconnected": 1, "acs_system.connected": 2} {
		var events api.EventsResponse
		s.Post(t, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "event_type": kind}, &events)
		if len(events.Events) != want {
			t.Errorf("%d events %s", len(events.Events), kind)
		}
	}
}

func TestAcsSystem_ChangesOnTheSystem(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.EmptyListGrace = time.Millisecond }),
	)
	y := s.AccessSystem(t)
	found := func() (names []string) {
		t.Helper()
		var out api.UnmanagedAcsUsersResponse
		s.Post(t, "/acs/users/unmanaged/list", map[string]any{"acs_system_id": y.ID}, &out)
		for _, u := range out.AcsUsers {
			if u.IsManaged {
				t.Errorf("%+v", u)
			}
			names = append(names, u.FullName)
		}
		return names
	}
	if got := found(); !slices.Equal(got, []string{"Robin Hale", "Sam Okafor"}) {
		t.Fatalf("found at first: %v", got)
	}
	everyone := groupNamed(t, s, y, "Everyone")
	jane := newUser(
		t,
		s,
		y,
		map[string]any{"acs_access_group_ids": []string{everyone, groupNamed(t, s, y, "Technicians")}},
	)
	settled(t, s, jane.AcsUserID)

	var by apptest.PersonOnSystem
	y.Control(t, http.MethodPost, "/users", apptest.PersonOnSystem{FullName: "By Hand", Email: "hand@example.com"}, &by)
	robin := y.Named(t, "Robin Hale")[0]
	y.Control(t, http.MethodDelete, "/users/"+robin.ID, nil, nil)
	on := y.Named(t, "Jane Doe")[0]
	changed := on
	changed.FullName = "Jane Changed"
	y.Control(t, http.MethodPut, "/users/"+on.ID, changed, nil)
	y.Sync(t)
	apptest.Until(
		t,
		"the user made by hand",
		func() bool { return slices.Equal(found(), []string{"Sam Okafor", "By Hand"}) },
	)
	apptest.Until(t, "changes to a managed user are reverted", func() bool { return len(y.Named(t, "Jane Doe")) == 1 })
	settled(t, s, jane.AcsUserID)

	var unmanaged api.UnmanagedAcsUsersResponse
	s.Post(t, "/acs/users/unmanaged/list", map[string]any{}, &unmanaged)
	theirs := unmanaged.AcsUsers[1].AcsUserID
	var one api.UnmanagedAcsUserResponse
	if status := s.Post(
		t,
		"/acs/users/unmanaged/get",
		map[string]any{"acs_user_id": theirs},
		&one,
	); status != http.StatusOK ||
		one.AcsUser.EmailAddress != "hand@example.com" {
		t.Errorf("%d %+v", status, one.AcsUser)
	}
	for path, id := range map[string]string{
		"/acs/users/get":           theirs,
		"/acs/users/suspend":       theirs,
		"/acs/users/delete":        theirs,
		"/acs/users/unmanaged/get": jane.AcsUserID,
	} {
		if status := s.Post(t, path, map[string]any{"acs_user_id": id}, nil); status != http.StatusNotFound {
			t.Errorf("%s of the other kind: %d", path, status)
		}
	}

	y.Control(t, http.MethodDelete, "/groups/"+everyoneRef(t, y), nil, nil)
	y.Control(t, http.MethodDelete, "/entrances/"+y.Memory(t).Entrances[1].ID, nil, nil)
	y.Sync(t)
	apptest.Until(t, "the group is deleted", func() bool {
		return s.Post(
			t,
			"/acs/access_groups/get",
			map[string]any{"acs_access_group_id": everyone},
			nil,
		) == http.StatusNotFound
	})
	settled(t, s, jane.AcsUserID)
	var groups api.AcsAccessGroupsResponse
	if s.Post(
		t,
		"/acs/access_groups/list",
		map[string]any{"acs_user_id": jane.AcsUserID},
		&groups,
	); len(groups.AcsAccessGroups) != 1 ||
		groups.AcsAccessGroups[0].Name != "Technicians" {
		t.Errorf("her groups: %+v", groups.AcsAccessGroups)
	}

	y.Control(t, http.MethodDelete, "/users/"+y.Named(t, "Jane Doe")[0].ID, nil, nil)
	y.Sync(t)
	apptest.Until(
		t,
		"the deletion is noticed",
		func() bool { return fails(user(t, s, jane.AcsUserID), "deleted_externally") },
	)
	y.Sync(t)
	apptest.Until(t, "a later user from the system is found", func() bool {
		if len(y.Named(t, "Another")) == 0 {
			y.Control(t, http.MethodPost, "/users", apptest.PersonOnSystem{FullName: "Another"}, nil)
			y.Sync(t)
		}
		return slices.Contains(found(), "Another")
	})
	if again := y.Named(t, "Jane Doe"); len(again) != 0 {
		t.Errorf("she was put back: %+v", again)
	}
	done(t, s, "/acs/users/unsuspend", jane.AcsUserID, nil) // any request about her sets her again
	settled(t, s, jane.AcsUserID)
	if back := y.Named(t, "Jane Doe"); len(back) != 1 {
		t.Errorf("back on the system: %+v", back)
	}
}

func everyoneRef(t *testing.T, y *apptest.AccessSystem) string {
	t.Helper()
	for _, g := range y.Memory(t).Groups {
		if g.Name == "Everyone" {
			return g.ID
		}
	}
	t.Fatal("there is no group for everyone")
	return ""
}
