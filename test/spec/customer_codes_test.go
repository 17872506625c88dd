package spec_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A customer's codes are those on the devices of its accounts, for every client.
func TestCodes_FilterByCustomer(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	first, lock := s.Connect(t, "nuki")
	second, door := s.Connect(t, "yale")
	var made []string
	for _, device := range []string{lock, door, lock} {
		made = append(
			made,
			madeBy(t, s, "/access_codes/create", "access_code", params{
				"device_id": device,
				"name":      "Guest",
			})["access_code_id"].(string),
		)
	}
	madeBy(
		t,
		s,
		"/access_codes/create",
		"access_code",
		params{"device_id": s.Device(t, "august"), "name": "Guest"},
	) // without a customer
	for account, key := range map[string]string{first: "acme", second: "acme"} {
		madeBy(t, s, "/connected_accounts/update", "", params{"connected_account_id": account, "customer_key": key})
	}
	session := session(t, s, params{"connected_account_ids": []string{second}})
	for name, c := range map[string]struct {
		token string
		in    params
		want  []string
	}{
		"all":                         {s.APIKey, params{}, made},
		"of a device":                 {s.APIKey, params{"device_id": lock}, []string{made[0], made[2]}},
		"of a device with a customer": {s.APIKey, params{"device_id": s.Device(t, "august")}, nil},
		"some": {
			s.APIKey,
			params{"access_code_ids": []string{made[1], made[2], uuid.NewString()}},
			made[1:],
		},
		"none of these":           {s.APIKey, params{"access_code_ids": []string{}}, nil},
		"found by name":           {s.APIKey, params{"search": "gue"}, made},
		"not found by name":       {s.APIKey, params{"search": "host"}, nil},
		"as far as he is reached": {session.Token, params{}, made[1:2]},
		"of another":              {s.APIKey, params{"customer_key": "else"}, nil},
		"one after another":       {s.APIKey, params{"limit": 2}, made},
		"and of a grant":          {s.APIKey, params{"access_grant_key": "x"}, nil},
	} {
		if c.in["customer_key"] == nil {
			c.in["customer_key"] = "acme"
		}
		if got := listedCodes(t, s, c.token, c.in); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for _, in := range []params{{"device_id": uuid.NewString()}, {"device_id": lock}} { // the lock is not in scope
		in["customer_key"] = "acme"
		if got := refused(t, s, session.Token, "/access_codes/list", in); got != "404 device_not_found" {
			t.Errorf("%v: %s", in, got)
		}
	}
}

// listedCodes returns the ids of the codes on all pages.
func listedCodes(t *testing.T, s *apptest.Server, token string, in params) (ids []string) {
	t.Helper()
	for more := true; more; {
		var out api.AccessCodesResponse
		if status := s.PostAs(t, token, "/access_codes/list", in, &out); status != http.StatusOK {
			t.Fatalf("list the codes by %v: %d", in, status)
		}
		for _, c := range out.AccessCodes {
			ids = append(ids, c.AccessCodeID)
		}
		if more = out.Pagination.HasNextPage; more {
			in["page_cursor"] = *out.Pagination.NextPageCursor
		}
	}
	return ids
}
