package spec_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
)

// paged is a list with pages: the key of its rows, the id of a row, and the required parameters. make creates at least
// three rows in it.
type paged struct {
	key, id string
	params  map[string]any
	make    func(t *testing.T, s *apptest.Server)
}

// pagedLists returns all lists of the contract with a page_cursor.
func pagedLists(device string) map[string]paged {
	onDevice := map[string]any{"device_id": device}
	three := func(path string, params func(i int) map[string]any) func(*testing.T, *apptest.Server) {
		return func(t *testing.T, s *apptest.Server) {
			for i := range 3 {
				var out any
				if status := s.Post(t, path, params(i), &out); status != http.StatusOK {
					t.Fatalf("%s: %d %v", path, status, out)
				}
			}
		}
	}
	codes := three("/access_codes/create", func(i int) map[string]any {
		return map[string]any{"device_id": device, "name": fmt.Sprint("Guest ", i)}
	})
	return map[string]paged{
		"/devices/list":           {"devices", "device_id", nil, func(*testing.T, *apptest.Server) {}},
		"/devices/unmanaged/list": {"devices", "device_id", nil, withLocks(3, true)},
		"/connected_accounts/list": {
			"connected_accounts",
			"connected_account_id",
			nil,
			func(t *testing.T, s *apptest.Server) {
				for range 2 {
					withLocks(1, false)(t, s)
				}
			},
		},
		"/user_identities/list": {
			"user_identities",
			"user_identity_id",
			nil,
			three("/user_identities/create", func(i int) map[string]any {
				return map[string]any{"full_name": fmt.Sprint("Person ", i)}
			}),
		},
		"/acs/users/list": {"acs_users", "acs_user_id", nil, func(t *testing.T, s *apptest.Server) {
			y := s.AccessSystem(t)
			for range 3 {
				settled(t, s, newUser(t, s, y, nil).AcsUserID)
			}
		}},
		"/acs/users/unmanaged/list": {
			"acs_users",
			"acs_user_id",
			nil,
			func(t *testing.T, s *apptest.Server) { s.AccessSystem(t); s.AccessSystem(t) },
		},
		"/acs/entrances/list": {
			"acs_entrances",
			"acs_entrance_id",
			nil,
			func(t *testing.T, s *apptest.Server) { s.AccessSystem(t) },
		},
		"/client_sessions/list": {
			"client_sessions",
			"client_session_id",
			map[string]any{"without_user_identifier_key": true},
			three("/client_sessions/create", func(int) map[string]any { return nil }),
		},
		"/connect_webviews/list": {
			"connect_webviews",
			"connect_webview_id",
			nil,
			three("/connect_webviews/create", func(int) map[string]any { return nil }),
		},
		"/access_codes/list":    {"access_codes", "access_code_id", onDevice, codes},
		"/action_attempts/list": {"action_attempts", "action_attempt_id", onDevice, codes},
		"/access_codes/unmanaged/list": {
			"access_codes",
			"access_code_id",
			onDevice,
			three("/access_codes/simulate/create_unmanaged_access_code", func(i int) map[string]any {
				return map[string]any{"device_id": device, "name": "Found", "code": fmt.Sprint(700001 + i)}
			}),
		},
	}
}

// withLocks connects an account with simulated locks and waits for them.
func withLocks(locks int, seeOnly bool) func(*testing.T, *apptest.Server) {
	return func(t *testing.T, s *apptest.Server) {
		id, err := s.App.Access.Accounts.ConnectAccount(
			t.Context(),
			account.NewAccount{
				WorkspaceID: uuid.MustParse(s.WorkspaceID),
				Adapter:     account.SandboxAdapter,
				DisplayName: "More",
				Unmanaged:   seeOnly,
				Config: fmt.Appendf(
					nil,
					`{"key":%q,"profiles":["nuki"],"locks_per_profile":%d}`,
					uuid.NewString(),
					locks,
				),
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		path := "/devices/list"
		if seeOnly {
			path = "/devices/unmanaged/list"
		}
		apptest.Until(t, "the locks have appeared", func() bool {
			var out map[string]any
			s.Post(t, path, map[string]any{"connected_account_id": id.String()}, &out)
			devices, _ := out["devices"].([]any)
			return len(devices) == locks
		})
	}
}

// Part 4.3, rules 1 to 4, for every list with pages: a walk visits each row once, with any page size, and only a cursor
// of the same request is accepted.
func TestPart4_3_EveryListWithPages(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"), apptest.WithLocks(3))
	lists := pagedLists(s.Device(t, "august"))
	doc, err := rest.Document()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		schema := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Value
		empty := path == "/user_identities/unmanaged/list"
		if _, known := lists[path]; !known && !empty && schema.Properties["page_cursor"] != nil {
			t.Errorf("the pages of %s are not tried", path)
		}
	}
	for path, l := range lists { // first for all lists, since creating rows of one may create rows of another
		if l.make(t, s); t.Failed() {
			t.Fatalf("fill %s", path)
		}
	}
	for path, l := range lists {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			l.walk(t, s, path, lists)
		})
	}
}

func (l paged) walk(t *testing.T, s *apptest.Server, path string, lists map[string]paged) {
	ask := func(more map[string]any) (int, map[string]any) {
		params := maps.Clone(l.params)
		if params == nil {
			params = map[string]any{}
		}
		maps.Copy(params, more)
		var out map[string]any
		return s.Post(t, path, params, &out), out
	}
	status, all := ask(nil)
	want := l.ids(all)
	if page, _ := all["pagination"].(map[string]any); status != http.StatusOK || len(want) < 3 ||
		page["has_next_page"] != false ||
		page["next_page_cursor"] != nil ||
		page["next_page_url"] != nil {
		t.Fatalf("all of it: %d with %d rows and %v", status, len(want), all["pagination"])
	}
	for _, limit := range []any{1, 2, len(want), len(want) + 1, "2"} {
		var got []string
		more := map[string]any{"limit": limit, "page_cursor": nil}
		for pages := 0; ; pages++ {
			status, out := ask(more)
			page, _ := out["pagination"].(map[string]any)
			if status != http.StatusOK || page == nil || pages > len(want) {
				t.Fatalf("page %d of %v: %d %v", pages, limit, status, out["error"])
			}
			ids := l.ids(out)
			got = append(got, ids...)
			if page["has_next_page"] != true {
				break
			}
			if n := fmt.Sprint(len(ids)); n != fmt.Sprint(limit) {
				t.Errorf("a page of %v has %s rows", limit, n)
			}
			next, _ := page["next_page_url"].(string)
			var byURL map[string]any
			s.Send(t, http.MethodGet, strings.TrimPrefix(next, s.URL), apptest.Bearer(s.APIKey), "", &byURL)
			more["page_cursor"] = page["next_page_cursor"]
			if _, out := ask(more); !slices.Equal(l.ids(byURL), l.ids(out)) {
				t.Errorf("next_page_url answers %v, and the cursor %v", l.ids(byURL), l.ids(out))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %v: %v, want %v", limit, got, want)
		}
	}
	_, first := ask(map[string]any{"limit": 1})
	cursor := first["pagination"].(map[string]any)["next_page_cursor"]
	for name, more := range map[string]map[string]any{
		"another limit": {"limit": 2, "page_cursor": cursor},
		"no limit":      {"page_cursor": cursor},
	} {
		if status, out := ask(more); status != http.StatusBadRequest || kind(out) != "mismatched_page_parameters" {
			t.Errorf("%s: %d %v", name, status, out["error"])
		}
	}
	for name, more := range map[string]map[string]any{
		"no cursor":      {"page_cursor": "x"},
		"no rows":        {"limit": 0},
		"less than none": {"limit": -1},
		"half a row":     {"limit": 1.5},
	} {
		if status, out := ask(more); status != http.StatusBadRequest || kind(out) != "invalid_input" {
			t.Errorf("%s: %d %v", name, status, out["error"])
		}
	}
	for other, o := range lists {
		params := maps.Clone(o.params)
		if params == nil {
			params = map[string]any{}
		}
		params["limit"], params["page_cursor"] = 1, cursor
		var out map[string]any
		if status := s.Post(
			t,
			other,
			params,
			&out,
		); other != path &&
			(status != http.StatusBadRequest || kind(out) != "mismatched_page_parameters") {
			t.Errorf("at %s: %d %v", other, status, out["error"])
		}
	}
}

// ids returns the ids of the rows in a response, in order.
func (l paged) ids(out map[string]any) (ids []string) {
	rows, _ := out[l.key].([]any)
	for _, row := range rows {
		id, _ := row.(map[string]any)[l.id].(string)
		ids = append(ids, id)
	}
	return ids
}

func kind(out map[string]any) any {
	reason, _ := out["error"].(map[string]any)
	return reason["type"]
}
