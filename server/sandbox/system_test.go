package sandbox_test

import (
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// The state of a system survives a restart, and is deleted with its account.
func TestAccessSystemIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, sandbox.Options{Dir: dir}, "august")
	first, err := b.EnsureAccessAccount(sandbox.AccessSpec{Key: "offices", Systems: 2})
	if err != nil || len(first.Systems) != 2 || first.Systems[0].Name == first.Systems[1].Name {
		t.Fatalf("%+v %v", first, err)
	}
	path := "/systems/" + first.Systems[0].ID
	var made object
	for range 2 { // the same external_id is the same user
		var status int
		if status, made = b.callAs(t, first.Token, http.MethodPost, path+"/users",
			object{"external_id": "x", "full_name": "Jane"}); status != http.StatusOK {
			t.Fatalf("create: %d %v", status, made)
		}
	}
	for name, c := range map[string]struct {
		method, path string
		body         object
		status       int
		code         string
	}{
		"no name": {http.MethodPost, path + "/users", object{}, 422, "INVALID_USER"},
		"no group": {
			http.MethodPost, path + "/users",
			object{"full_name": "X", "group_ids": []string{"y"}},
			422,
			"INVALID_USER",
		},
		"no entrance": {
			http.MethodPost, path + "/users",
			object{"full_name": "X", "entrance_ids": []string{"y"}},
			422,
			"INVALID_USER",
		},
		"backwards": {
			http.MethodPost, path + "/users",
			object{"full_name": "X", "starts_at": "2030-01-02T00:00:00Z", "ends_at": "2030-01-01T00:00:00Z"},
			422,
			"INVALID_USER",
		},
		"no user":            {http.MethodPut, path + "/users/unknown", object{"full_name": "X"}, 404, "USER_NOT_FOUND"},
		"delete none":        {http.MethodDelete, path + "/users/unknown", nil, 404, "USER_NOT_FOUND"},
		"no group to delete": {http.MethodDelete, path + "/groups/unknown", nil, 404, "GROUP_NOT_FOUND"},
		"unlock none":        {http.MethodPost, path + "/entrances/unknown/unlock", nil, 404, "ENTRANCE_NOT_FOUND"},
		"no system":          {http.MethodGet, "/systems/none", nil, 404, "SYSTEM_NOT_FOUND"},
		"no knob": {
			http.MethodPut, "/sandbox" + path + "/faults",
			object{"failure_rate": object{"flood": 1}},
			400, "INVALID_REQUEST",
		},
	} {
		if status, out := b.callAs(t, first.Token, c.method, c.path, c.body); status != c.status ||
			out["error_code"] != c.code {
			t.Errorf("%s: %d %v", name, status, out)
		}
	}
	if status, _ := b.call(t, http.MethodGet, path, nil); status != http.StatusNotFound {
		t.Errorf("the system of another account: %d", status)
	}
	b.Close()

	b = open(t, sandbox.Options{Dir: dir}, "august")
	again, err := b.EnsureAccessAccount(sandbox.AccessSpec{Key: "offices", Systems: 2})
	if err != nil || again.Token != first.Token {
		t.Fatalf("%+v %v", again, err)
	}
	count := func() (n int) {
		_, out := b.callAs(t, again.Token, http.MethodGet, path, nil)
		users, _ := out["users"].([]any)
		return len(users)
	}
	if n := count(); n != 3 {
		t.Errorf("%d users after a restart, want two initial ones and one", n)
	}
	if err := b.Forget("offices"); err != nil {
		t.Fatal(err)
	}
	if status, _ := b.callAs(t, again.Token, http.MethodGet, path, nil); status != http.StatusUnauthorized {
		t.Errorf("a deleted account: %d", status)
	}
	if _, err := b.EnsureAccessAccount(sandbox.AccessSpec{Key: "offices", Systems: 2}); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 2 {
		t.Errorf("%d users on a deleted system", n)
	}
}
