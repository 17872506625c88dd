package spec_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Null deletes a metadata key, so as a filter it matches objects without the key.
func TestMetadataFilter_Null(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account, first := s.Connect(t, "nuki")
	other, second := s.Connect(t, "nuki")
	bare := s.Device(t, "august")
	var old params
	s.Post(t, "/devices/get", params{"device_id": bare}, &old)
	madeBy(
		t,
		s,
		"/devices/update",
		"",
		params{"device_id": first, "custom_metadata": params{"floor": "2", "wet": true}},
	)
	madeBy(t, s, "/devices/update", "", params{"device_id": second, "custom_metadata": params{"wet": true}})
	madeBy(
		t,
		s,
		"/connected_accounts/update",
		"",
		params{"connected_account_id": account, "custom_metadata": params{"floor": "2", "wet": true}},
	)
	madeBy(
		t,
		s,
		"/connected_accounts/update",
		"",
		params{"connected_account_id": other, "custom_metadata": params{"wet": true}},
	)
	on := webview(t, s, params{"custom_metadata": params{"floor": "2", "wet": true}}).ConnectWebviewID
	off := webview(t, s, params{"custom_metadata": params{"wet": true}}).ConnectWebviewID
	without := webview(t, s, params{}).ConnectWebviewID
	accountOfBare := old["device"].(params)["connected_account_id"].(string)
	for _, c := range []struct {
		path, list, id    string
		has, hasNot, none string // with and without the key
	}{
		{"/devices/list", "devices", "device_id", first, second, bare},
		{"/locks/list", "locks", "device_id", first, second, bare},
		{"/connected_accounts/list", "connected_accounts", "connected_account_id", account, other, accountOfBare},
		{"/connect_webviews/list", "connect_webviews", "connect_webview_id", on, off, without},
	} {
		for _, filter := range []struct {
			in    params
			query string
			want  []string
		}{
			{params{"floor": nil}, "custom_metadata_has.floor=", []string{c.hasNot, c.none}},
			{params{"floor": nil, "wet": true}, "custom_metadata_has.floor=&custom_metadata_has.wet=true", []string{c.hasNot}},
			{params{"floor": nil, "wet": nil}, "custom_metadata_has.floor=&custom_metadata_has.wet=", []string{c.none}},
			{params{"floor": ""}, "", []string{c.hasNot, c.none}}, // an empty text deletes a key, too
			{params{"floor": "2", "wet": nil}, "custom_metadata_has.floor=2&custom_metadata_has.wet=", nil},
			{params{"another": nil}, "custom_metadata_has.another=", []string{c.has, c.hasNot, c.none}},
		} {
			slices.Sort(filter.want)
			var byBody, byQuery params
			s.Post(t, c.path, params{"custom_metadata_has": filter.in}, &byBody)
			answers := []params{byBody}
			if filter.query != "" {
				s.Send(t, http.MethodGet, c.path+"?"+filter.query, apptest.Bearer(s.APIKey), "", &byQuery)
				answers = append(answers, byQuery)
			}
			for _, out := range answers {
				var got []string
				rows, ok := out[c.list].([]any)
				for _, row := range rows {
					got = append(got, row.(params)[c.id].(string))
				}
				if slices.Sort(got); !ok || !slices.Equal(got, filter.want) {
					t.Errorf("%s %v: %v, want %v: %v", c.path, filter.in, got, filter.want, out["error"])
				}
			}
		}
	}
}
