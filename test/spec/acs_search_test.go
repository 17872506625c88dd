package spec_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Objects of access systems can be searched by parts of their names and ids, in any case, and users also by contact
// details.
func TestAcs_Search(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	y := s.AccessSystem(t)
	newUser(t, s, y, map[string]any{"full_name": "Robin Hood"}) // managed
	list := func(path, key, name, search string) (names []string) {
		t.Helper()
		var out map[string]any
		if status := s.Post(
			t,
			path,
			map[string]any{"acs_system_id": y.ID, "search": search},
			&out,
		); status != http.StatusOK {
			t.Fatalf("%s %q: %d %v", path, search, status, out)
		}
		rows, _ := out[key].([]any)
		for _, row := range rows {
			value, _ := row.(map[string]any)[name].(string)
			names = append(names, value)
		}
		return names
	}
	ids := list("/acs/users/unmanaged/list", "acs_users", "acs_user_id", "@example.com")
	if len(ids) != 2 {
		t.Fatalf("found by address: %v", ids)
	}
	for _, c := range []struct {
		path, key, name, search string
		want                    []string
	}{
		{"/acs/users/unmanaged/list", "acs_users", "full_name", "ROBIN", []string{"Robin Hale"}},
		{"/acs/users/unmanaged/list", "acs_users", "full_name", "sam.okafor@", []string{"Sam Okafor"}},
		{"/acs/users/unmanaged/list", "acs_users", "full_name", ids[0], []string{"Robin Hale"}},
		{"/acs/users/unmanaged/list", "acs_users", "full_name", "Robin Hood", nil},
		{"/acs/access_groups/list", "acs_access_groups", "name", "TECH", []string{"Technicians"}},
		{"/acs/access_groups/list", "acs_access_groups", "name", "n", []string{"Everyone", "Technicians"}},
		{"/acs/access_groups/list", "acs_access_groups", "name", groupNamed(t, s, y, "Everyone"), []string{"Everyone"}},
		{"/acs/access_groups/list", "acs_access_groups", "name", "%", nil},
	} {
		got := list(c.path, c.key, c.name, c.search)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %q: %v, want %v", c.path, c.search, got, c.want)
		}
	}
	if got := refused(
		t,
		s,
		s.APIKey,
		"/acs/access_groups/list",
		map[string]any{"search": ""},
	); got != "400 invalid_input" {
		t.Errorf("an empty search: %s", got)
	}
}
