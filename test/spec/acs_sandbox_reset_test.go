package spec_test

import (
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A reset sandbox has no access systems and no people, and nothing is written to the old ones.
func TestSandboxReset_AccessSystems(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	y := s.AccessSystem(t)
	jane := newPerson(t, s, map[string]any{"full_name": "Jane", "acs_system_ids": []string{y.ID}})
	y.Control(t, http.MethodPut, "/faults", map[string]any{"latency_ms": map[string]int{"min": 300, "max": 300}}, nil)
	newUser(t, s, y, nil) // in progress
	if status := s.Post(t, "/workspaces/reset_sandbox", map[string]any{}, nil); status != http.StatusOK {
		t.Fatalf("reset: %d", status)
	}
	if status := s.Post(
		t,
		"/user_identities/get",
		map[string]any{"user_identity_id": jane.UserIdentityID},
		nil,
	); status != http.StatusNotFound {
		t.Errorf("a person: %d", status)
	}
	for path, key := range map[string]string{
		"/acs/systems/list":         "acs_systems",
		"/acs/users/list":           "acs_users",
		"/acs/users/unmanaged/list": "acs_users",
		"/acs/entrances/list":       "acs_entrances",
	} {
		var out map[string]any
		if s.Post(t, path, map[string]any{}, &out); len(out[key].([]any)) != 0 {
			t.Errorf("%s: %v", path, out)
		}
	}
	again := s.AccessSystem(t)
	settled(t, s, newUser(t, s, again, nil).AcsUserID)
	var systems api.AcsSystemsResponse
	if s.Post(
		t,
		"/acs/systems/list",
		map[string]any{},
		&systems,
	); len(systems.AcsSystems) != 1 ||
		systems.AcsSystems[0].AcsSystemID != again.ID {
		t.Errorf("%+v", systems.AcsSystems)
	}
}
