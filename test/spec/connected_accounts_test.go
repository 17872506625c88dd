package spec_test

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// accounts lists the accounts of the workspace that match conditions.
func accounts(t *testing.T, s *apptest.Server, conditions map[string]any) []api.ConnectedAccount {
	t.Helper()
	var out api.ConnectedAccountsResponse
	if status := s.Post(t, "/connected_accounts/list", conditions, &out); status != http.StatusOK {
		t.Fatalf("list the accounts: %d", status)
	}
	return out.ConnectedAccounts
}

// connect adds an account with its own locks to the workspace.
func connect(t *testing.T, s *apptest.Server, n account.NewAccount) string {
	t.Helper()
	n.WorkspaceID, n.Adapter = uuid.MustParse(s.WorkspaceID), account.SandboxAdapter
	n.Config = []byte(`{"key":"` + uuid.NewString() + `","profiles":["nuki"]}`)
	id, err := s.App.Access.Accounts.ConnectAccount(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

func TestConnectedAccounts_ReadAndList(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	first := accounts(t, s, map[string]any{})[0]
	if first.DisplayName == "" || first.AccountType != "sandbox" || !first.AutomaticallyManageNewDevices ||
		first.UserIdentifier.Email != "jane@example.com" ||
		len(first.Errors) != 0 {
		t.Errorf("%+v", first)
	}
	for name, by := range map[string]map[string]any{
		"identifier": {"connected_account_id": first.ConnectedAccountID},
		"email":      {"email": "Jane@example.com"},
	} {
		var got api.ConnectedAccountResponse
		if status := s.Post(
			t,
			"/connected_accounts/get",
			by,
			&got,
		); status != http.StatusOK ||
			got.ConnectedAccount.ConnectedAccountID != first.ConnectedAccountID {
			t.Errorf("by %s: %d %+v", name, status, got)
		}
	}
	second := connect(t, s, account.NewAccount{DisplayName: "Warehouse"})
	third := connect(t, s, account.NewAccount{DisplayName: "Annex"})

	var seen []string
	for cursor := ""; ; {
		var page api.ConnectedAccountsResponse
		in := map[string]any{"limit": 1}
		if cursor != "" {
			in["page_cursor"] = cursor
		}
		if status := s.Post(
			t,
			"/connected_accounts/list",
			in,
			&page,
		); status != http.StatusOK ||
			len(page.ConnectedAccounts) != 1 {
			t.Fatalf("%d, %d accounts", status, len(page.ConnectedAccounts))
		}
		seen = append(seen, page.ConnectedAccounts[0].ConnectedAccountID)
		if !page.Pagination.HasNextPage {
			break
		}
		cursor = *page.Pagination.NextPageCursor
	}
	if want := []string{first.ConnectedAccountID, second, third}; !slices.Equal(seen, want) {
		t.Errorf("the pages have %v, want %v", seen, want)
	}

	for name, c := range map[string]struct {
		path   string
		body   map[string]any
		status int
		kind   string
	}{
		"neither": {"/connected_accounts/get", map[string]any{}, 400, "invalid_input"},
		"both": {
			"/connected_accounts/get",
			map[string]any{"connected_account_id": first.ConnectedAccountID, "email": "jane@example.com"},
			400,
			"invalid_input",
		},
		"no email": {"/connected_accounts/get", map[string]any{"email": "jane"}, 400, "invalid_input"},
		"no such": {
			"/connected_accounts/get",
			map[string]any{"connected_account_id": uuid.NewString()},
			404,
			"connected_account_not_found",
		},
		"unowned": {
			"/connected_accounts/get",
			map[string]any{"email": "joe@example.com"},
			404,
			"connected_account_not_found",
		},
		"update none": {
			"/connected_accounts/update",
			map[string]any{"connected_account_id": uuid.NewString()},
			404,
			"connected_account_not_found",
		},
		"delete none": {
			"/connected_accounts/delete",
			map[string]any{"connected_account_id": uuid.NewString()},
			404,
			"connected_account_not_found",
		},
		"sync none": {
			"/connected_accounts/sync",
			map[string]any{"connected_account_id": uuid.NewString()},
			404,
			"connected_account_not_found",
		},
		"no name": {
			"/connected_accounts/update",
			map[string]any{"connected_account_id": second, "display_name": ""},
			400,
			"invalid_input",
		},
		"no such kind": {
			"/connected_accounts/update",
			map[string]any{"connected_account_id": second, "accepted_capabilities": []string{"teapot"}},
			400,
			"invalid_input",
		},
	} {
		var f failure
		if status := s.Post(t, c.path, c.body, &f); status != c.status || f.Error.Type != c.kind {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
}

func TestConnectedAccounts_Description(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	mine := connect(t, s, account.NewAccount{DisplayName: "Warehouse"})
	update := func(change map[string]any) api.ConnectedAccount {
		t.Helper()
		in := maps.Clone(change)
		in["connected_account_id"] = mine
		var out api.ConnectedAccountResponse
		if status := s.Post(t, "/connected_accounts/update", in, &out); status != http.StatusOK {
			t.Fatalf("%v: %d", change, status)
		}
		return out.ConnectedAccount
	}
	update(
		map[string]any{
			"display_name":    "Cellar",
			"customer_key":    "acme",
			"custom_metadata": map[string]any{"floor": "2", "wet": true, "gone": "soon"},
		},
	)
	got := update(map[string]any{"custom_metadata": map[string]any{"floor": "-1", "gone": nil}})
	if got.DisplayName != "Cellar" || got.CustomerKey != "acme" ||
		!maps.Equal(got.CustomMetadata, api.Metadata{"floor": "-1", "wet": true}) {
		t.Errorf("%+v", got)
	}
	got = update(map[string]any{"custom_metadata": map[string]any{"floor": ""}})
	if !maps.Equal(got.CustomMetadata, api.Metadata{"wet": true}) {
		t.Errorf("metadata %v", got.CustomMetadata)
	}
	for name, conditions := range map[string]map[string]any{
		"metadata": {"custom_metadata_has": map[string]any{"wet": true}},
		"customer": {"customer_key": "acme"},
		"search":   {"search": "cell"},
	} {
		if found := accounts(t, s, conditions); len(found) != 1 || found[0].ConnectedAccountID != mine {
			t.Errorf("by %s: %d accounts", name, len(found))
		}
	}
	for name, conditions := range map[string]map[string]any{
		"metadata":           {"custom_metadata_has": map[string]any{"wet": false}},
		"customer":           {"customer_key": "other"},
		"search":             {"search": "attic"},
		"search for a field": {"search": "email\":"},
		"space":              {"space_id": uuid.NewString()},
	} {
		if found := accounts(t, s, conditions); len(found) != 0 {
			t.Errorf("by another %s: %d accounts", name, len(found))
		}
	}
	var devices api.DevicesResponse
	apptest.Until(t, "the customer's devices", func() bool {
		s.Post(t, "/devices/list", map[string]any{"customer_key": "acme"}, &devices)
		return len(devices.Devices) == 1
	})
	if devices.Devices[0].DeviceID == device || devices.Devices[0].ConnectedAccountID != mine {
		t.Errorf("%+v", devices.Devices)
	}
	its := devices.Devices[0].DeviceID
	s.Post(t, "/devices/update", map[string]any{"device_id": its, "name": "Cellar door"}, nil)
	var events api.EventsResponse
	s.Post(
		t,
		"/events/list",
		map[string]any{"since": "2020-01-01T00:00:00Z", "device_id": its, "event_type": "device.name_changed"},
		&events,
	)
	if len(events.Events) != 1 ||
		!reflect.DeepEqual(
			events.Events[0].AdditionalProperties["connected_account_custom_metadata"],
			map[string]any{"wet": true},
		) ||
		events.Events[0].AdditionalProperties["customer_key"] != "acme" {
		t.Errorf("its events: %+v", events.Events)
	}
	for name, bad := range map[string]map[string]any{
		"a dot":        {"a.b": "c"},
		"a long key":   {strings.Repeat("k", 41): "v"},
		"a long value": {"k": strings.Repeat("v", 501)},
		"a number":     {"k": 1},
		"no key":       {"": "v"},
	} {
		var f failure
		if status := s.Post(
			t,
			"/connected_accounts/update",
			map[string]any{"connected_account_id": mine, "custom_metadata": bad},
			&f,
		); status != http.StatusBadRequest || f.Error.Type != "invalid_input" ||
			f.Error.ValidationErrors["custom_metadata"] == nil {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
	many := map[string]any{}
	for i := range 50 {
		many["k"+strings.Repeat("x", i)[:min(i, 30)]+uuid.NewString()[:8]] = "v"
	}
	var f failure
	if status := s.Post(
		t,
		"/connected_accounts/update",
		map[string]any{"connected_account_id": mine, "custom_metadata": many},
		&f,
	); status != http.StatusBadRequest ||
		!strings.Contains(f.Error.Message, "51") {
		t.Errorf("51 keys: %d %+v", status, f.Error)
	}
}

func TestConnectedAccounts_SyncDisconnectDelete(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	lock := s.Lock(t, device)
	account := accounts(t, s, map[string]any{})[0].ConnectedAccountID
	named := map[string]any{"connected_account_id": account}
	since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)

	lock.Control(
		t,
		http.MethodPost,
		"/name",
		map[string]any{"name": "Renamed by its owner"},
	) // without a push from the cloud
	if status := s.Post(t, "/connected_accounts/sync", named, nil); status != http.StatusOK {
		t.Fatalf("sync: %d", status)
	}
	apptest.Until(t, "the new name", func() bool {
		var got api.DeviceResponse
		s.Post(t, "/devices/get", map[string]any{"device_id": device}, &got)
		return got.Device.DisplayName == "Renamed by its owner"
	})

	var made api.AccessCodeCreatedResponse
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": device, "code": "746283", "sync": true},
		&made,
	); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	if status := s.Post(t, "/connected_accounts/simulate/disconnect", named, nil); status != http.StatusOK {
		t.Fatalf("simulate: %d", status)
	}
	says := func(errs []api.Problem) bool {
		return slices.ContainsFunc(errs, func(p api.Problem) bool {
			return p.ErrorCode == "account_disconnected" && p.IsConnectedAccountError && p.Message != ""
		})
	}
	if d, c := get(
		t,
		s,
		device,
	), code(
		t,
		s,
		made.AccessCode.AccessCodeID,
	); !says(d.Errors) || !says(c.Errors) ||
		c.Status != "unknown" {
		t.Errorf("the device says %v, its code %v and %s", d.Errors, c.Errors, c.Status)
	}
	lock.Account(t, "restore")
	s.Post(t, "/connected_accounts/sync", named, nil)
	apptest.Until(t, "the account works again", func() bool {
		c := code(t, s, made.AccessCode.AccessCodeID)
		return len(get(t, s, device).Errors) == 0 && len(c.Errors) == 0 && c.Status == "set"
	})
	if status := s.Post(t, "/connected_accounts/simulate/disconnect", named, nil); status != http.StatusOK {
		t.Fatalf("simulate again: %d", status)
	}
	var got api.ConnectedAccountResponse
	if s.Post(
		t,
		"/connected_accounts/get",
		named,
		&got,
	); len(got.ConnectedAccount.Errors) != 1 || got.ConnectedAccount.Errors[0].ErrorCode != "account_disconnected" ||
		!got.ConnectedAccount.Errors[0].IsConnectedAccountError {
		t.Errorf("%+v", got.ConnectedAccount.Errors)
	}

	if status := s.Post(t, "/connected_accounts/delete", named, nil); status != http.StatusOK {
		t.Fatalf("delete: %d", status)
	}
	if status := s.Post(t, "/connected_accounts/delete", named, nil); status != http.StatusNotFound {
		t.Errorf("deleted again: %d", status)
	}
	if c := code(t, s, made.AccessCode.AccessCodeID); says(c.Errors) {
		t.Error("its code has the error of a deleted account")
	}
	if left := accounts(t, s, map[string]any{}); len(left) != 0 {
		t.Errorf("%d accounts are left", len(left))
	}
	if status := s.Post(t, "/devices/get", map[string]any{"device_id": device}, nil); status != http.StatusNotFound {
		t.Errorf("its device: %d", status)
	}
	if again := s.StartAnother(
		t,
	); again.App.Sandbox.WorkspaceID.String() != s.WorkspaceID ||
		again.App.Sandbox.APIKey != "" {
		t.Error("after a restart there is another sandbox")
	}
	for _, kind := range []string{"connected_account.disconnected", "connected_account.deleted", "device.removed"} {
		var events api.EventsResponse
		s.Post(t, "/events/list", map[string]any{"since": since, "event_type": kind}, &events)
		if want := map[string]int{"connected_account.disconnected": 2}[kind]; len(events.Events) != max(want, 1) {
			t.Errorf("%d events %s", len(events.Events), kind)
		}
	}
}
