package spec_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// systemVendor is the device_provider_name of the simulated vendor of access systems.
const systemVendor = "sandbox_access_system"

// shown reads a page like a browser without JavaScript.
func shown(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A webview offers access systems if it asks for their capability, their vendor's category, or their vendor.
func TestWebview_OffersAccessSystems(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	var listed api.DeviceProvidersResponse
	s.Post(t, "/devices/list_device_providers", map[string]any{"provider_category": "access_control_systems"}, &listed)
	if len(listed.DeviceProviders) != 1 || listed.DeviceProviders[0].DeviceProviderName != systemVendor {
		t.Fatalf("the vendors of access systems are %+v", listed.DeviceProviders)
	}
	systems, locks := []api.AccountCapability{"access_control"}, []api.AccountCapability{"lock"}
	both := []api.AccountCapability{"access_control", "lock"}
	for name, c := range map[string]struct {
		in    map[string]any
		takes []api.AccountCapability
		nuki  bool
	}{
		"by capability":           {map[string]any{"accepted_capabilities": systems}, systems, false},
		"by the kind of vendor":   {map[string]any{"provider_category": "access_control_systems"}, systems, false},
		"by the vendor":           {map[string]any{"accepted_providers": []string{systemVendor}}, systems, false},
		"with locks":              {map[string]any{"accepted_capabilities": both}, both, true},
		"by a vendor, with locks": {map[string]any{"accepted_providers": []string{"nuki", systemVendor}}, both, true},
		"with all stable ones":    {map[string]any{"provider_category": "stable"}, append(both, "thermostat"), true},
		"locks alone":             {nil, locks, true},
		"locks of a kind":         {map[string]any{"provider_category": "consumer_smartlocks"}, locks, true},
		"all but one":             {map[string]any{"excluded_providers": []string{"august"}}, locks, true},
		"locks of all vendors": {
			map[string]any{"provider_category": "stable", "accepted_capabilities": locks},
			locks,
			true,
		},
	} {
		w := webview(t, s, c.in)
		if !slices.Equal(w.AcceptedCapabilities, c.takes) {
			t.Errorf("%s: takes %v, want %v", name, w.AcceptedCapabilities, c.takes)
		}
		asked := slices.Contains(c.takes, "access_control")
		if listed := slices.Contains(w.AcceptedProviders, systemVendor); listed && !asked {
			t.Errorf("%s: accepts %v", name, w.AcceptedProviders)
		}
		for vendor, want := range map[string]bool{systemVendor: asked, "nuki": c.nuki} {
			if got := strings.Contains(shown(t, w.URL+"/"+vendor), "Log in to"); got != want {
				t.Errorf("%s: %s is offered: %v", name, vendor, got)
			}
		}
	}
	var f failure
	in := map[string]any{"accepted_providers": []string{systemVendor}, "accepted_capabilities": locks}
	if status := s.Post(
		t,
		"/connect_webviews/create",
		in,
		&f,
	); status != http.StatusBadRequest ||
		f.Error.ValidationErrors["accepted_providers"] == nil {
		t.Errorf("locks of a vendor that has none: %d %+v", status, f.Error)
	}
}

// Logging in to a vendor of access systems connects the systems with their users. Logging in again repairs the account.
func TestWebview_ConnectsAccessSystems(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	asked := map[string]any{
		"accepted_capabilities":    []string{"access_control"},
		"wait_for_device_creation": true,
		"customer_key":             "acme",
	}
	w := webview(t, s, asked)
	if status, _, body := enter(
		t,
		w.URL,
		systemVendor,
		mistyped,
	); status != http.StatusUnprocessableEntity ||
		!strings.Contains(body, "password is wrong") {
		t.Errorf("a wrong password: %d %s", status, body)
	}
	if status, to, body := enter(
		t,
		w.URL,
		systemVendor,
		as("john"),
	); status != http.StatusSeeOther ||
		!strings.HasSuffix(to, "/waiting") {
		t.Fatalf("a good password: %d %s %s", status, to, body)
	}
	apptest.Until(
		t,
		"the webview is authorized",
		func() bool { w = webviewNow(t, s, w.ConnectWebviewID); return w.Status == "authorized" },
	)
	account := accounts(t, s, map[string]any{"customer_key": "acme"})
	if len(account) != 1 || account[0].ConnectedAccountID != *w.ConnectedAccountID ||
		account[0].AccountType != systemVendor ||
		!slices.Equal(account[0].AcceptedCapabilities, []api.AccountCapability{"access_control"}) ||
		account[0].UserIdentifier.Email != "john@example.com" ||
		*w.SelectedProvider != systemVendor {
		t.Fatalf("%+v; the webview is %+v", account, w)
	}
	of := map[string]any{"connected_account_id": *w.ConnectedAccountID}
	system := func() api.AcsSystem {
		t.Helper()
		var out api.AcsSystemsResponse
		if s.Post(t, "/acs/systems/list", of, &out); len(out.AcsSystems) != 1 {
			t.Fatalf("once the webview is authorized, the systems are %+v", out.AcsSystems)
		}
		return out.AcsSystems[0]
	}
	id := system().AcsSystemID
	var unmanaged api.UnmanagedAcsUsersResponse
	var entrances api.AcsEntrancesResponse
	var groups api.AcsAccessGroupsResponse
	apptest.Until(t, "the system is read", func() bool {
		on := map[string]any{"acs_system_id": id}
		s.Post(t, "/acs/users/unmanaged/list", on, &unmanaged)
		s.Post(t, "/acs/entrances/list", on, &entrances)
		s.Post(t, "/acs/access_groups/list", on, &groups)
		return len(unmanaged.AcsUsers) == 2 && len(entrances.AcsEntrances) == 3 && len(groups.AcsAccessGroups) == 2
	})
	told := func() (types []string) {
		var out api.EventsResponse
		s.Post(
			t,
			"/events/list",
			map[string]any{"since": "2020-01-01T00:00:00Z", "connected_account_id": *w.ConnectedAccountID},
			&out,
		)
		for _, e := range out.Events {
			types = append(types, e.EventType)
		}
		return types
	}
	events := told()
	want := []string{
		"connected_account.created",
		"connected_account.connected",
		"connected_account.successful_login",
		"acs_system.added",
		"acs_system.connected",
		"connect_webview.login_succeeded",
		"connected_account.completed_first_sync",
		"acs_entrance.added",
		"acs_entrance.added",
		"acs_entrance.added",
	}
	if !slices.Equal(events, want) {
		t.Errorf("events %v", events)
	}

	if status := s.Post(t, "/connected_accounts/simulate/disconnect", of, nil); status != http.StatusOK {
		t.Fatalf("disconnect: %d", status)
	}
	s.Post(t, "/connected_accounts/sync", of, nil)
	apptest.Until(
		t,
		"the vendor refuses the account",
		func() bool { return len(accounts(t, s, map[string]any{"customer_key": "acme"})[0].Errors) > 0 },
	)
	waiting := newUser(t, s, &apptest.AccessSystem{ID: id}, nil)
	again := webview(t, s, asked)
	if status, _, body := enter(t, again.URL, systemVendor, as("john")); status != http.StatusSeeOther {
		t.Fatalf("log in again: %d %s", status, body)
	}
	apptest.Until(
		t,
		"the account is there again",
		func() bool { again = webviewNow(t, s, again.ConnectWebviewID); return again.Status == "authorized" },
	)
	if *again.ConnectedAccountID != *w.ConnectedAccountID || system().AcsSystemID != id {
		t.Errorf("it is another account or system: %+v", again)
	}
	settled(t, s, waiting.AcsUserID)
	if a := accounts(
		t,
		s,
		map[string]any{"customer_key": "acme"},
	); len(a) != 1 || len(a[0].Errors) != 0 ||
		len(system().Errors) != 0 {
		t.Errorf("the account is %+v, its system %+v", a, system())
	}
}
