package rest

import (
	"maps"
	"slices"
	"testing"
)

// What takes other credentials than those of a workspace. Every operation that is not named takes those alone, so a
// new one that is to take more is named here, and what it does with them is tried where tenancy is: in test/spec.
var (
	takeSessions = []string{
		"/workspaces/get",
		"/workspaces/list",
		"/client_sessions/get",
		"/connected_accounts/get",
		"/devices/list",
		"/devices/get",
		"/devices/list_device_providers",
		"/devices/update",
		"/devices/unmanaged/get",
		"/locks/list",
		"/locks/get",
		"/locks/lock_door",
		"/locks/unlock_door",
		"/access_codes/create",
		"/access_codes/create_multiple",
		"/access_codes/update_multiple",
		"/access_codes/get",
		"/access_codes/list",
		"/access_codes/update",
		"/access_codes/delete",
		"/access_codes/generate_code",
		"/access_codes/get_timeline",
		"/access_codes/simulate/create_unmanaged_access_code",
		"/access_codes/pull_backup_access_code",
		"/access_codes/unmanaged/list",
		"/access_codes/unmanaged/get",
		"/access_codes/unmanaged/update",
		"/access_codes/unmanaged/convert_to_managed",
		"/access_codes/unmanaged/delete",
		"/action_attempts/get",
		"/events/get",
		"/events/list",
		"/acs/entrances/get",
		"/acs/entrances/list",
		"/acs/systems/list",
		"/acs/users/list",
		"/acs/users/list_accessible_entrances",
		"/user_identities/list",
		"/user_identities/list_acs_systems",
		"/connect_webviews/create",
		"/connect_webviews/get",
		"/connect_webviews/list",
		"/locks/configure_auto_lock",
		"/noise_sensors/list",
		"/noise_sensors/noise_thresholds/list",
		"/phones/deactivate",
		"/thermostats/list",
		"/thermostats/get",
		"/thermostats/heat",
		"/thermostats/cool",
		"/thermostats/heat_cool",
		"/thermostats/off",
		"/thermostats/set_hvac_mode",
		"/thermostats/set_fan_mode",
		"/thermostats/create_climate_preset",
		"/thermostats/update_climate_preset",
		"/thermostats/delete_climate_preset",
		"/thermostats/schedules/create",
		"/thermostats/schedules/get",
		"/thermostats/schedules/list",
		"/thermostats/schedules/update",
		"/thermostats/schedules/delete",
		"/thermostats/daily_programs/create",
		"/thermostats/daily_programs/update",
		"/thermostats/daily_programs/delete",
		"/thermostats/update_weekly_program",
	}
	takeCustomers = []string{ // and no other sessions
		"/connected_accounts/list",
		"/connected_accounts/delete",
		"/connected_accounts/simulate/disconnect",
		"/devices/unmanaged/list",
		"/devices/simulate/connect",
		"/devices/simulate/disconnect",
		"/devices/simulate/remove",
		"/devices/simulate/connect_to_hub",
		"/devices/simulate/disconnect_from_hub",
		"/devices/simulate/paid_subscription",
		"/user_identities/get",
	}
	takePublishable = []string{"/client_sessions/create", "/client_sessions/get_or_create"}
	takeRoamers     = []string{"/workspaces/list", "/workspaces/create"} // who have named no workspace
	refuseKeys      = []string{"/workspaces/create"}                     // of one workspace, and tokens that name one
	takeAnybody     = []string{"/health", "/health/get_health"}
)

func TestOperationsAcceptTheirCredentials(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	bearer := func(token string) map[string]string { return map[string]string{"Authorization": "Bearer " + token} }
	in := func(token string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + token, "Seam-Workspace": workspaceA.String()}
	}
	for kind, try := range map[string]struct {
		header map[string]string
		takes  func(path string) bool
	}{
		"API key":                 {bearer(goodKey), func(path string) bool { return !slices.Contains(refuseKeys, path) }},
		"PAT":                     {in(roamerKey), func(path string) bool { return !slices.Contains(refuseKeys, path) }},
		"console session":         {in(consoleKey), func(string) bool { return true }},
		"PAT, roaming":            {bearer(roamerKey), func(path string) bool { return slices.Contains(takeRoamers, path) }},
		"console session roaming": {bearer(consoleKey), func(path string) bool { return slices.Contains(takeRoamers, path) }},
		"client session":          {bearer(sessionKey), func(path string) bool { return slices.Contains(takeSessions, path) }},
		"client session in the header": {
			map[string]string{"Authorization": absent, "Client-Session-Token": sessionKey},
			func(path string) bool { return slices.Contains(takeSessions, path) },
		},
		"client session in both": {
			map[string]string{"Authorization": "Bearer " + sessionKey, "Seam-Client-Session-Token": sessionKey},
			func(path string) bool { return slices.Contains(takeSessions, path) },
		},
		"publishable key": {
			map[string]string{"Authorization": absent, "Seam-Publishable-Key": publicKey},
			func(path string) bool { return slices.Contains(takePublishable, path) },
		},
		"client session of a customer": {bearer(customerKey), func(path string) bool {
			return slices.Contains(takeSessions, path) || slices.Contains(takeCustomers, path)
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for path, item := range doc.Paths.Map() {
				for method := range item.Operations() {
					res := b.send(t, request{method: method, path: path, header: maps.Clone(try.header)})
					reason, _ := res.body["error"].(map[string]any)
					admitted := res.status != 401 && res.status != 403
					if want := try.takes(path) || slices.Contains(takeAnybody, path); admitted != want {
						t.Errorf(
							"%s %s admits it: %t, want %t: %d %v",
							method,
							path,
							admitted,
							want,
							res.status,
							reason["message"],
						)
					}
				}
			}
		})
	}
}

func TestForbiddenNamesAcceptedCredentials(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := b.send(
		t,
		request{
			method: "POST",
			path:   "/webhooks/list",
			header: map[string]string{"Authorization": "Bearer " + sessionKey},
		},
	)
	reason, _ := res.body["error"].(map[string]any)
	want := "This operation cannot be called with a client session. Call it with an API key, or a personal access token with the header seam-workspace, or a console session with the header seam-workspace"
	if res.status != 403 || reason["type"] != "forbidden" || reason["message"] != want {
		t.Errorf("%d %v", res.status, reason)
	}
}
