package spec_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// kinds are the lists of devices other than locks, with a type and a manufacturer of each.
var kinds = map[string]struct{ name, one, another, maker string }{
	"/noise_sensors/list": {"noise_sensors", "minut_sensor", "noiseaware_activity_zone", "Minut"},
	"/thermostats/list":   {"thermostats", "ecobee_thermostat", "nest_thermostat", "Ecobee"},
}

func TestDeviceKinds_EmptyLists(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	for path, kind := range kinds {
		for method, target := range map[string]string{
			http.MethodPost: path,
			http.MethodGet:  path + "?limit=5&device_ids=" + s.Device(t, "august"),
		} {
			var out params
			res := s.Send(t, method, target, apptest.Bearer(s.APIKey), "", &out)
			devices, listed := out["devices"].([]any)
			named, too := out[kind.name].([]any)
			if res.StatusCode != http.StatusOK || !listed || !too || len(devices)+len(named) != 0 || len(out) != 3 {
				t.Errorf("%s %s: %s %v", method, target, res.Status, out)
			}
		}
		for parameter, value := range map[string]any{
			"device_type":          "august_lock",
			"device_types":         []string{kind.one, "august_lock"},
			"manufacturer":         "august",
			"limit":                0,
			"device_ids":           "none",
			"connected_account_id": 5,
			"search":               "",
			"created_before":       "yesterday",
		} {
			if got := refused(t, s, s.APIKey, path, params{parameter: value}); got != "400 invalid_input" {
				t.Errorf("%s with %s %v: %s", path, parameter, value, got)
			}
		}
	}
}

func TestDeviceKinds_ListedInScope(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	connect := func(workspace string) (id string) {
		id = uuid.NewString()
		s.Exec(
			t,
			`insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed, due_at)
			values ($1, $2, 'sandbox', '', '', '', null)`,
			id,
			workspace,
		)
		return id
	}
	add := func(workspace, account, kind, maker string) (id string) {
		capability := "thermostat"
		if strings.Contains(kind, "minut") || strings.Contains(kind, "noise") {
			capability = "noise_sensor"
		}
		id = uuid.NewString()
		s.Exec(
			t,
			`insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online,
			capabilities, flags, is_managed, due_at) values ($1, $2, $3, $4, $5, '', $6, '', '', '', true,
			jsonb_build_object($7::text, '{}'::jsonb), '{}', true, null)`,
			id,
			workspace,
			account,
			uuid.New(),
			kind,
			maker,
			capability,
		)
		return id
	}
	other := s.Workspace(t, "Other").WorkspaceID
	account, unrelated, foreign := connect(s.WorkspaceID), connect(s.WorkspaceID), connect(other)
	token := session(t, s, params{"connected_account_ids": []string{account}}).Token
	for path, kind := range kinds {
		first, second := add(
			s.WorkspaceID,
			account,
			kind.one,
			kind.maker,
		), add(
			s.WorkspaceID,
			account,
			kind.another,
			"Else",
		)
		third, hidden := add(s.WorkspaceID, unrelated, kind.one, kind.maker), add(other, foreign, kind.one, kind.maker)
		for _, c := range []struct {
			in   params
			want []string
		}{
			{params{}, []string{first, second, third}},
			{params{"device_type": kind.another}, []string{second}},
			{params{"device_types": []string{kind.one}}, []string{first, third}},
			{params{"device_types": []string{kind.one}, "device_type": kind.another}, nil},
			{params{"device_types": []string{}}, nil},
			{params{"device_types": nil}, []string{first, second, third}},
			{params{"manufacturer": strings.ToLower(kind.maker)}, []string{first, third}},
			{params{"connected_account_id": account}, []string{first, second}},
			{params{"device_ids": []string{third, hidden, s.Device(t, "august")}}, []string{third}},
			{params{"limit": 2, "page_cursor": nil}, []string{first, second}},
			{params{"connected_account_id": foreign}, nil},
			{params{"space_id": uuid.NewString()}, nil},
		} {
			if got := devicesOf(t, s, s.APIKey, path, c.in); !slices.Equal(got, c.want) {
				t.Errorf("%s %v lists %q, want %q", path, c.in, got, c.want)
			}
		}
		for _, in := range []params{{}, {"device_ids": []string{second, first, third, hidden}}} {
			if got := devicesOf(t, s, token, path, in); !slices.Equal(got, []string{first, second}) {
				t.Errorf("%s %v lists %q to a session", path, in, got)
			}
		}
		var out map[string]any
		if s.Post(t, path, params{}, &out); len(out[kind.name].([]any)) != 3 {
			t.Errorf("%s has under %s %v", path, kind.name, out[kind.name])
		}
	}
}
