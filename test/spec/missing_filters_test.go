package spec_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Filters by things that this server does not have match nothing, rather than everything.
func TestFilters_ByMissingThings(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	s.AccessSystem(t)
	code := params{"device_id": s.Device(t, "august"), "code": "4725"}
	if status := s.Post(t, "/access_codes/create", code, nil); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	if status := s.Post(t, "/user_identities/create", params{"full_name": "Jane"}, nil); status != http.StatusOK {
		t.Fatalf("create a user identity: %d", status)
	}
	for path, c := range map[string]struct {
		list    string
		filters []string
	}{
		"/access_codes/list":       {"access_codes", []string{"access_grant_id", "access_grant_key", "access_method_id"}},
		"/connected_accounts/list": {"connected_accounts", []string{"space_id"}},
		"/devices/list":            {"devices", []string{"space_id", "unstable_location_id"}},
		"/locks/list":              {"locks", []string{"space_id", "unstable_location_id"}},
		"/user_identities/list":    {"user_identities", []string{"credential_manager_acs_system_id"}},
		"/acs/entrances/list": {
			"acs_entrances",
			[]string{"acs_credential_id", "access_method_id", "space_id", "location_id"},
		},
	} {
		list := func(in params) []any {
			t.Helper()
			var out map[string]any
			if status := s.Post(t, path, in, &out); status != http.StatusOK {
				t.Fatalf("%s: %d", path, status)
			}
			return out[c.list].([]any)
		}
		if len(list(params{})) == 0 {
			t.Errorf("%s lists nothing", path)
		}
		for _, filter := range c.filters {
			if got := list(params{filter: uuid.NewString()}); len(got) > 0 {
				t.Errorf("%s by %s lists %d", path, filter, len(got))
			}
		}
	}
}
