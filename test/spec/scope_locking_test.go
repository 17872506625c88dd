package spec_test

import (
	"context"
	"testing"
)

// A request never waits for an object outside its scope. Otherwise it could block the owner, and the time would reveal
// that the object exists.
func TestScope_NoWaitForForeignObjects(t *testing.T) {
	t.Parallel()
	s, db := keyedWorkspace(t)
	stranger := s.Workspace(t, "Other")
	account, device := s.Connect(t, "nuki")
	reached, _ := s.Connect(t, "nuki")
	system := s.AccessSystem(t)
	code := madeBy(t, s, "/access_codes/create", "access_code", params{
		"device_id": device,
		"sync":      true,
	})["access_code_id"]
	unrelated := session(t, s, params{"connected_account_ids": []string{reached}})
	held, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }) // after all responses
	if _, err := held.Exec(t.Context(), "set local idle_in_transaction_session_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	for statement, id := range map[string]string{
		"select from connected_accounts where connected_account_id = $1 for update": account,
		"select from devices where device_id = $1 for update":                       device,
		"select from acs_systems where acs_system_id = $1 for update":               system.ID,
	} {
		if tag, err := held.Exec(t.Context(), statement, id); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %s, %v", statement, tag, err)
		}
	}
	for _, c := range []struct {
		name, path string
		as         string
		in         params
		want       string
	}{
		{"", "/devices/update", stranger.APIKey, params{"device_id": device, "name": "x"}, "404 device_not_found"},
		{
			"",
			"/devices/unmanaged/update",
			stranger.APIKey,
			params{"device_id": device, "is_managed": true},
			"404 device_not_found",
		},
		{"", "/devices/delete", stranger.APIKey, params{"device_id": device}, "404 device_not_found"},
		{"", "/access_codes/create", stranger.APIKey, params{"device_id": device}, "404 device_not_found"},
		{
			"",
			"/access_codes/report_device_constraints",
			stranger.APIKey,
			params{"device_id": device, "min_code_length": 4, "max_code_length": 8},
			"404 device_not_found",
		},
		{
			"",
			"/connected_accounts/update",
			stranger.APIKey,
			params{"connected_account_id": account, "display_name": "x"},
			"404 connected_account_not_found",
		},
		{
			"",
			"/acs/users/create",
			stranger.APIKey,
			params{"acs_system_id": system.ID, "full_name": "x"},
			"404 acs_system_not_found",
		},
		{
			" by a session",
			"/devices/update",
			unrelated.Token,
			params{"device_id": device, "name": "x"},
			"404 device_not_found",
		},
		{" by a session", "/access_codes/create", unrelated.Token, params{"device_id": device}, "404 device_not_found"},
		{
			" by a session",
			"/access_codes/delete",
			unrelated.Token,
			params{"access_code_id": code},
			"404 access_code_not_found",
		},
		{" by a session", "/locks/lock_door", unrelated.Token, params{"device_id": device}, "404 device_not_found"},
	} {
		t.Run(c.path+c.name, func(t *testing.T) {
			t.Parallel()
			if got := refused(t, s, c.as, c.path, c.in); got != c.want {
				t.Errorf("answered %s, want %s", got, c.want)
			}
		})
	}
}
