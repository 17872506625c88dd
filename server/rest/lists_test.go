package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestEmptyAndForeignFiltersListNothing(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august", "schlage"))
	const foreign = "00000000-0000-4000-8000-000000000000"
	account, _ := must(t, s, "/devices/get", "device", in{"device_id": s.Device(t, "august")})["connected_account_id"].(string)
	for query, want := range map[string]int{
		"":                                      2,
		"device_ids=":                           0,
		"device_types=":                         0,
		"include_if=":                           2, // all of no conditions hold
		"exclude_if=":                           2,
		"device_type=august_lock":               1,
		"device_types=august_lock,schlage_lock": 2,
		"device_types=august_lock,schlage_lock&device_type=schlage_lock": 1,
		"device_types=august_lock&device_type=schlage_lock":              0,
		"device_ids=" + s.Device(t, "august"):                            1,
		"device_ids=" + foreign:                                          0,
		"connected_account_id=" + foreign:                                0,
		// Identifiers are the same in capitals.
		"connected_account_id=" + strings.ToUpper(account) + "&connected_account_ids=" + account: 2,
		"connected_account_id=" + account + "&connected_account_ids=" + strings.ToUpper(account): 2,
		"connected_account_id=" + account + "&connected_account_ids=" + foreign:                  0,
		"customer_key=x":                      0,
		"space_id=" + foreign:                 0,
		"custom_metadata_has.a=b":             0,
		"include_if=can_remotely_unlock":      2,
		"exclude_if=can_remotely_unlock":      0,
		"created_before=2020-01-01T00:00:00Z": 0,
		"search=no+such+name":                 0,
	} {
		_, out := call(t, s, http.MethodGet, "/devices/list?"+query, nil)
		if list, ok := out["devices"].([]any); !ok || len(list) != want {
			t.Errorf("%q lists %d devices, want %d: %v", query, len(list), want, out["error"])
		}
	}
	s.AccessSystem(t)
	for path, place := range map[string]string{"/devices/list": "unstable_location_id", "/locks/list": "unstable_location_id", "/acs/entrances/list": "location_id"} {
		for _, c := range []struct {
			value any
			found bool
		}{{foreign, false}, {nil, true}} {
			_, out := call(t, s, http.MethodPost, path, in{place: c.value})
			list, ok := out[map[bool]string{true: "acs_entrances", false: "devices"}[place == "location_id"]].([]any)
			if !ok || (len(list) > 0) != c.found {
				t.Errorf("%s %s %v lists %d: %v", path, place, c.value, len(list), out["error"])
			}
		}
	}
}

func TestPagesOfCodesFollowNextPageURL(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	all := s.UnmanagedCodes(t, s.Device(t, "august"))
	path := "/access_codes/unmanaged/list?limit=1&device_id=" + s.Device(t, "august")
	for i := range all {
		status, out := call(t, s, http.MethodGet, path, nil)
		list, _ := out["access_codes"].([]any)
		if status != http.StatusOK || len(list) != 1 || list[0].(in)["access_code_id"] != all[i].AccessCodeID {
			t.Fatalf("page %d: status %d: %v", i, status, out)
		}
		page, _ := out["pagination"].(in)
		if more := i < len(all)-1; page["has_next_page"] != more {
			t.Fatalf("page %d of %d: %v", i, len(all), page)
		}
		next, _ := page["next_page_url"].(string)
		path = strings.TrimPrefix(next, s.URL)
	}
}

func TestCursorOfOneListIsRefusedByAnother(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	params := in{"device_id": s.Device(t, "august"), "limit": 1}
	page := must(t, s, "/access_codes/unmanaged/list", "pagination", params)
	params["page_cursor"] = page["next_page_cursor"]
	status, out := call(t, s, http.MethodPost, "/access_codes/list", params)
	if reason, _ := out["error"].(in); status != http.StatusBadRequest ||
		reason["type"] != "mismatched_page_parameters" {
		t.Errorf("status %d: %v", status, out)
	}
}
