package spec_test

import (
	"maps"
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
	device := s.Device(t, "august")
	for path, in := range map[string]params{
		"/access_codes/create":    {"device_id": device, "code": "4725"},
		"/user_identities/create": {"full_name": "Jane"},
	} {
		if status := s.Post(t, path, in, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	for path, c := range map[string]struct {
		list    string
		filters []string
		base    params
	}{
		"/access_codes/list": {
			"access_codes",
			[]string{"access_grant_id", "access_grant_key", "access_method_id"},
			params{"device_id": device},
		},
		"/acs/entrances/list": {
			"acs_entrances",
			[]string{"acs_credential_id", "access_method_id", "space_id", "location_id"},
			params{},
		},
		"/connected_accounts/list": {"connected_accounts", []string{"space_id"}, params{}},
		"/devices/list":            {"devices", []string{"space_id", "unstable_location_id"}, params{}},
		"/locks/list":              {"locks", []string{"space_id", "unstable_location_id"}, params{}},
		"/user_identities/list":    {"user_identities", []string{"credential_manager_acs_system_id"}, params{}},
	} {
		list := func(in params) []any {
			t.Helper()
			var out map[string]any
			if status := s.Post(t, path, in, &out); status != http.StatusOK {
				t.Fatalf("%s: %d", path, status)
			}
			return out[c.list].([]any)
		}
		if len(list(c.base)) == 0 {
			t.Errorf("%s lists nothing", path)
		}
		for _, filter := range c.filters {
			in := maps.Clone(c.base)
			in[filter] = uuid.NewString()
			if got := list(in); len(got) > 0 {
				t.Errorf("%s by %s lists %d", path, filter, len(got))
			}
		}
	}
}
