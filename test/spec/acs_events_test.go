package spec_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Each cause leads to one event of access systems with all fields of its type.
func TestEventsOfAccessSystems(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	y := s.AccessSystem(t)
	teller := &tale{s: s}
	seen := map[string]bool{}
	tells := func(cause string, want ...string) {
		t.Helper()
		var got []string
		apptest.Until(t, cause, func() bool {
			got = nil
			var out api.EventsResponse
			s.Post(
				t,
				"/events/list",
				map[string]any{"since": "2020-01-01T00:00:00Z", "connected_account_id": y.AccountID},
				&out,
			)
			for _, e := range out.Events {
				if !seen[e.EventID] {
					got = append(got, e.EventType)
				}
			}
			if len(got) < len(want) {
				return false
			}
			for _, e := range out.Events {
				if !seen[e.EventID] {
					teller.whole(t, e)
				}
				seen[e.EventID] = true
			}
			return true
		})
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: events %v, want %v", cause, got, want)
		}
	}
	tells(
		"an account with an access system",
		"connected_account.created",
		"connected_account.connected",
		"connected_account.completed_first_sync",
		"acs_system.added",
		"acs_system.connected",
		"acs_entrance.added",
		"acs_entrance.added",
		"acs_entrance.added",
	)
	jane := newUser(t, s, y, nil)
	settled(t, s, jane.AcsUserID)
	done(t, s, "/acs/users/suspend", jane.AcsUserID, nil)
	settled(t, s, jane.AcsUserID)
	tells("a user", "acs_user.created")
	y.Control(t, http.MethodDelete, "/groups/"+everyoneRef(t, y), nil, nil)
	y.Control(t, http.MethodDelete, "/entrances/"+y.Memory(t).Entrances[0].ID, nil, nil)
	y.Sync(t)
	tells("deleted parts", "acs_access_group.deleted", "acs_entrance.removed")
	y.Control(t, http.MethodPost, "/offline", nil, nil)
	y.Sync(t)
	tells("a system that is offline", "acs_system.disconnected")
	y.Control(t, http.MethodPost, "/online", nil, nil)
	y.Sync(t)
	tells("a system that is back", "acs_system.connected")
	if status := s.Post(
		t,
		"/connected_accounts/simulate/disconnect",
		map[string]any{"connected_account_id": y.AccountID},
		nil,
	); status != http.StatusOK {
		t.Fatalf("simulate: %d", status)
	}
	tells("a vendor that refuses the account", "connected_account.disconnected", "acs_system.disconnected")
	var system api.AcsSystemResponse
	if s.Post(
		t,
		"/acs/systems/get",
		map[string]any{"acs_system_id": y.ID},
		&system,
	); !slices.ContainsFunc(
		system.AcsSystem.Errors,
		func(p api.Problem) bool { return p.ErrorCode == "account_disconnected" },
	) {
		t.Errorf("the system of a refused account: %+v", system.AcsSystem.Errors)
	}
	y.Account(t, "restore")
	y.Sync(t)
	tells(
		"credentials that are good again",
		"connected_account.connected",
		"connected_account.completed_first_sync_after_reconnection",
		"acs_system.connected",
	)
	done(t, s, "/acs/users/delete", jane.AcsUserID, nil)
	tells("a deleted user", "acs_user.deleted")
	newUser(t, s, y, nil)
	tells("another user", "acs_user.created")
	if status := s.Post(
		t,
		"/connected_accounts/delete",
		map[string]any{"connected_account_id": y.AccountID},
		nil,
	); status != http.StatusOK {
		t.Fatalf("delete the account: %d", status)
	}
	tells(
		"the end of the account",
		"acs_user.deleted",
		"acs_system.disconnected",
		"acs_entrance.removed",
		"acs_entrance.removed",
		"acs_access_group.deleted",
		"connected_account.deleted",
	)
	for path, key := range map[string]string{
		"/acs/systems/list":         "acs_systems",
		"/acs/users/list":           "acs_users",
		"/acs/users/unmanaged/list": "acs_users",
		"/acs/entrances/list":       "acs_entrances",
		"/acs/access_groups/list":   "acs_access_groups",
	} {
		var out map[string]any
		if status := s.Post(t, path, map[string]any{}, &out); status != http.StatusOK || len(out[key].([]any)) != 0 {
			t.Errorf("%s after the end: %d %v", path, status, out)
		}
	}
}
