package spec_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// webview creates a webview.
func webview(t *testing.T, s *apptest.Server, in map[string]any) api.ConnectWebview {
	t.Helper()
	var out api.ConnectWebviewResponse
	if status := s.Post(t, "/connect_webviews/create", in, &out); status != http.StatusOK {
		t.Fatalf("create a webview with %v: %d", in, status)
	}
	return out.ConnectWebview
}

// webviewNow reads a webview.
func webviewNow(t *testing.T, s *apptest.Server, id string) api.ConnectWebview {
	t.Helper()
	var out api.ConnectWebviewResponse
	if status := s.Post(
		t,
		"/connect_webviews/get",
		map[string]any{"connect_webview_id": id},
		&out,
	); status != http.StatusOK {
		t.Fatalf("get the webview %s: %d", id, status)
	}
	return out.ConnectWebview
}

// enter posts a form of a webview's page like a browser without JavaScript, and follows no redirect.
func enter(t *testing.T, page, vendor string, entered map[string]string) (status int, location, body string) {
	t.Helper()
	form := url.Values{}
	for name, value := range entered {
		form.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		page+"/"+vendor,
		strings.NewReader(form.Encode()),
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location"), string(b)
}

func as(person string) map[string]string {
	return map[string]string{"email": person + "@example.com", "password": "1234"}
}

var mistyped = map[string]string{"email": "jane@example.com", "password": "mistyped-secret"}

// logins are steps of an account with logins.
var logins = []step{
	{"an account is connected", nothing, life[0].want},
	{"a person mistypes a password", func(t *testing.T, s *tale) {
		s.webview = webview(t, s.s, map[string]any{"customer_key": "acme"})
		enter(t, s.webview.URL, "nuki", mistyped)
	}, []string{"connect_webview.login_failed"}},
	{
		"and types it well", func(t *testing.T, s *tale) { enter(t, s.webview.URL, "nuki", as("jane")) },
		append([]string{"connected_account.successful_login", "connect_webview.login_succeeded"}, life[0].want[:6]...),
	},
	{
		"nothing is left to do on the page",
		func(t *testing.T, s *tale) { enter(t, s.webview.URL, "nuki", as("john")) },
		nil,
	},
	{
		"the first account is disconnected",
		func(t *testing.T, s *tale) { s.lock.Account(t, "revoke") },
		[]string{"connected_account.disconnected"},
	},
	{
		"its owner logs in again",
		func(t *testing.T, s *tale) {
			enter(t, webview(t, s.s, nil).URL, "sandbox", as("jane"))
		},
		[]string{
			"connected_account.successful_login",
			"connect_webview.login_succeeded",
			"connected_account.connected",
			"connected_account.completed_first_sync_after_reconnection",
		},
	},
}

func TestWebview_CreateReadListDelete(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	first := webview(t, s, nil)
	if first.Status != "pending" || first.LoginSuccessful || first.ConnectedAccountID != nil ||
		!first.AnyProviderAllowed ||
		len(first.AcceptedProviders) != 0 ||
		!first.AutomaticallyManageNewDevices ||
		first.WaitForDeviceCreation ||
		first.DeviceSelectionMode != "none" ||
		first.WorkspaceID != s.WorkspaceID ||
		!strings.HasPrefix(first.URL, s.URL+"/connect/") ||
		!slices.Equal(first.AcceptedCapabilities, []api.AccountCapability{"lock"}) {
		t.Errorf("%+v", first)
	}
	second := webview(
		t,
		s,
		map[string]any{
			"accepted_providers": []string{"august", "yale", "wyze"},
			"excluded_providers": []string{"yale"},
			"customer_key":       "acme",
			"custom_metadata": map[string]any{
				"flat": "7",
				"gone": nil,
			},
			"custom_redirect_url":              "https://app.example/back?x=1",
			"automatically_manage_new_devices": false,
		},
	)
	if second.AnyProviderAllowed || !slices.Equal(second.AcceptedProviders, []string{"august"}) ||
		second.CustomerKey != "acme" ||
		second.AutomaticallyManageNewDevices ||
		!maps.Equal(second.CustomMetadata, api.Metadata{"flat": "7"}) ||
		*second.CustomRedirectURL != "https://app.example/back?x=1" ||
		second.CustomRedirectFailureURL != nil {
		t.Errorf("%+v", second)
	}
	third := webview(
		t,
		s,
		map[string]any{"provider_category": "consumer_smartlocks", "accepted_capabilities": []string{"lock", "camera"}},
	)
	if third.AnyProviderAllowed || !slices.Contains(third.AcceptedProviders, "ttlock") {
		t.Errorf("%+v", third)
	}

	var seen []string
	for cursor := ""; ; {
		in := map[string]any{"limit": 1}
		if cursor != "" {
			in["page_cursor"] = cursor
		}
		var page api.ConnectWebviewsResponse
		if status := s.Post(
			t,
			"/connect_webviews/list",
			in,
			&page,
		); status != http.StatusOK ||
			len(page.ConnectWebviews) != 1 {
			t.Fatalf("%d, %d webviews", status, len(page.ConnectWebviews))
		}
		seen = append(seen, page.ConnectWebviews[0].URL)
		if !page.Pagination.HasNextPage {
			break
		}
		cursor = *page.Pagination.NextPageCursor
	}
	if !slices.Equal(seen, []string{first.URL, second.URL, third.URL}) {
		t.Errorf("the pages have %v", seen)
	}
	for name, c := range map[string]struct {
		in   map[string]any
		want []string
	}{
		"of a customer": {map[string]any{"customer_key": "acme"}, []string{second.ConnectWebviewID}},
		"of another":    {map[string]any{"customer_key": "else"}, nil},
		"with metadata": {
			map[string]any{"custom_metadata_has": map[string]any{"flat": "7"}},
			[]string{second.ConnectWebviewID},
		},
		"with other":          {map[string]any{"custom_metadata_has": map[string]any{"flat": "8"}}, nil},
		"found by vendor":     {map[string]any{"search": "TTLOCK"}, []string{third.ConnectWebviewID}},
		"found by customer":   {map[string]any{"search": "acm"}, []string{second.ConnectWebviewID}},
		"found automatically": {map[string]any{"search": first.ConnectWebviewID}, []string{first.ConnectWebviewID}},
		"not found":           {map[string]any{"search": "back?x"}, nil},
		"of a user":           {map[string]any{"user_identifier_key": "jane"}, nil},
	} {
		var out api.ConnectWebviewsResponse
		s.Post(t, "/connect_webviews/list", c.in, &out)
		var got []string
		for _, w := range out.ConnectWebviews {
			got = append(got, w.ConnectWebviewID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		in    map[string]any
		field string
	}{
		"a script": {map[string]any{"custom_redirect_url": "javascript:alert(1)"}, "custom_redirect_url"},
		"no host":  {map[string]any{"custom_redirect_url": "https:///x"}, "custom_redirect_url"},
		"a host of a header": {
			map[string]any{"custom_redirect_failure_url": "https://x;script-src/"},
			"custom_redirect_failure_url",
		},
		"a user":                 {map[string]any{"custom_redirect_url": "https://a:b@app.example/"}, "custom_redirect_url"},
		"a relative place":       {map[string]any{"custom_redirect_url": "/back"}, "custom_redirect_url"},
		"no vendor":              {map[string]any{"accepted_providers": []string{"wyze"}}, "accepted_providers"},
		"no vendor of that kind": {map[string]any{"provider_category": "cameras"}, "provider_category"},
		"no such devices":        {map[string]any{"accepted_capabilities": []string{"camera"}}, "accepted_capabilities"},
		"a selection":            {map[string]any{"device_selection_mode": "single"}, "device_selection_mode"},
		"metadata":               {map[string]any{"custom_metadata": map[string]any{"a.b": "c"}}, "custom_metadata"},
	} {
		var f failure
		if status := s.Post(
			t,
			"/connect_webviews/create",
			c.in,
			&f,
		); status != http.StatusBadRequest || f.Error.Type != "invalid_input" ||
			f.Error.ValidationErrors[c.field] == nil {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}

	if status := s.Post(
		t,
		"/connect_webviews/delete",
		map[string]any{"connect_webview_id": first.ConnectWebviewID},
		nil,
	); status != http.StatusOK {
		t.Fatalf("delete: %d", status)
	}
	for _, path := range []string{"/connect_webviews/get", "/connect_webviews/delete"} {
		var f failure
		if status := s.Post(
			t,
			path,
			map[string]any{"connect_webview_id": first.ConnectWebviewID},
			&f,
		); status != http.StatusNotFound ||
			f.Error.Type != "connect_webview_not_found" {
			t.Errorf("%s of a deleted one: %d %+v", path, status, f.Error)
		}
	}
	if status, _, _ := enter(t, first.URL, "august", as("jane")); status != http.StatusNotFound {
		t.Errorf("its page: %d", status)
	}
	forged := second.URL[:len(second.URL)-3] + "AAA"
	if status, _, _ := enter(t, forged, "august", as("jane")); status != http.StatusNotFound {
		t.Errorf("a page with another token: %d", status)
	}
}

func TestWebview_LoginConnectsAccount(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	w := webview(
		t,
		s,
		map[string]any{
			"accepted_providers":               []string{"nuki", "yale"},
			"customer_key":                     "acme",
			"custom_metadata":                  map[string]any{"flat": "7"},
			"automatically_manage_new_devices": false,
			"custom_redirect_url":              "https://app.example/back?x=1",
			"wait_for_device_creation":         true,
		},
	)
	if status, _, _ := enter(t, w.URL, "august", as("jane")); status != http.StatusNotFound {
		t.Errorf("a vendor that is not offered: %d", status)
	}
	status, to, body := enter(t, w.URL, "nuki", mistyped)
	if status != http.StatusUnprocessableEntity || to != "" || !strings.Contains(body, "password is wrong") ||
		strings.Contains(body, "mistyped-secret") {
		t.Errorf("a wrong password: %d %s %s", status, to, body)
	}
	if got := webviewNow(
		t,
		s,
		w.ConnectWebviewID,
	); got.Status != "failed" || got.LoginSuccessful || *got.SelectedProvider != "nuki" ||
		got.ConnectedAccountID != nil {
		t.Errorf("%+v", got)
	}
	if status, to, _ = enter(
		t,
		w.URL,
		"nuki",
		as("jane"),
	); status != http.StatusSeeOther ||
		!strings.HasSuffix(to, "/waiting") {
		t.Fatalf("a good password: %d %s", status, to)
	}
	var got api.ConnectWebview
	apptest.Until(
		t,
		"the webview is authorized",
		func() bool { got = webviewNow(t, s, w.ConnectWebviewID); return got.Status == "authorized" },
	)
	if !got.LoginSuccessful || got.AuthorizedAt == nil || got.ConnectedAccountID == nil {
		t.Fatalf("%+v", got)
	}
	workspace := uuid.MustParse(s.WorkspaceID)
	var told []audit.Entry
	for e, err := range s.App.Access.Audit.Audit(t.Context(), audit.Filter{
		Actor:       audit.ByPage,
		WorkspaceID: &workspace,
	}) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, e)
	}
	if len(told) != 1 || told[0].ActorID.String() != w.ConnectWebviewID || told[0].RequestID == nil ||
		!slices.ContainsFunc(
			told[0].Subjects,
			func(x audit.Subject) bool { return x.ID.String() == *got.ConnectedAccountID },
		) {
		t.Errorf("the login in the audit log: %+v", told)
	}
	about := map[string]any{"connect_webview_id": w.ConnectWebviewID}
	var devices api.UnmanagedDevicesResponse
	if s.Post(
		t,
		"/devices/unmanaged/list",
		about,
		&devices,
	); len(devices.Devices) != 1 ||
		devices.Devices[0].ConnectedAccountID != *got.ConnectedAccountID {
		t.Errorf("once it is authorized, its devices are %+v", devices.Devices)
	}
	var account api.ConnectedAccountResponse
	s.Post(t, "/connected_accounts/get", map[string]any{"connected_account_id": *got.ConnectedAccountID}, &account)
	if account.ConnectedAccount.AccountType != "nuki" || account.ConnectedAccount.AccountTypeDisplayName != "Nuki" {
		t.Errorf("type %s (%s), want that of the vendor", account.ConnectedAccount.AccountType,
			account.ConnectedAccount.AccountTypeDisplayName)
	}
	if a := account.ConnectedAccount; a.CustomerKey != "acme" ||
		!maps.Equal(a.CustomMetadata, api.Metadata{"flat": "7"}) ||
		a.AutomaticallyManageNewDevices ||
		a.UserIdentifier.Email != "jane@example.com" ||
		a.UserIdentifier.APIURL != "" {
		t.Errorf("%+v", a)
	}
	for path, want := range map[string]int{"/devices/list": 0, "/locks/list": 0} {
		var out api.DevicesResponse
		if s.Post(t, path, about, &out); len(out.Devices) != want {
			t.Errorf("%s: %d devices of the webview", path, len(out.Devices))
		}
	}
	var events api.EventsResponse
	s.Post(
		t,
		"/events/list",
		map[string]any{"since": "2020-01-01T00:00:00Z", "connect_webview_id": w.ConnectWebviewID},
		&events,
	)
	var types []string
	for _, e := range events.Events {
		types = append(types, e.EventType)
	}
	if want := []string{
		"connect_webview.login_failed",
		"connected_account.created",
		"connected_account.connected",
		"connected_account.successful_login",
		"connect_webview.login_succeeded",
	}; !slices.Equal(
		types,
		want,
	) {
		t.Errorf("its events are %v", types)
	}

	// The redirect target.
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Get(
		w.URL + "/waiting",
	)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if want := "https://app.example/back?connect_webview_id=" + w.ConnectWebviewID + "&connected_account_id=" + *got.ConnectedAccountID + "&x=1"; res.Header.Get(
		"Location",
	) != want {
		t.Errorf("the person is sent to %s, want %s", res.Header.Get("Location"), want)
	}
	if status, to, _ := enter(
		t,
		w.URL,
		"nuki",
		as("john"),
	); status != http.StatusSeeOther || strings.Contains(to, "app.example") ||
		len(accounts(t, s, map[string]any{})) != 2 {
		t.Errorf("a second login: %d %s", status, to)
	}
}

func TestWebview_LoginRepairsAccount(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	account := accounts(t, s, map[string]any{})[0].ConnectedAccountID
	named := map[string]any{"connected_account_id": account}
	if status := s.Post(t, "/connected_accounts/simulate/disconnect", named, nil); status != http.StatusOK {
		t.Fatalf("simulate: %d", status)
	}
	again := func() api.ConnectWebview {
		t.Helper()
		w := webview(
			t,
			s,
			map[string]any{"wait_for_device_creation": true, "custom_metadata": map[string]any{"back": true}},
		)
		if status, to, body := enter(t, w.URL, "sandbox", as("jane")); status != http.StatusSeeOther {
			t.Fatalf("log in again: %d %s %s", status, to, body)
		}
		apptest.Until(
			t,
			"the account is there",
			func() bool { return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized" },
		)
		return webviewNow(t, s, w.ConnectWebviewID)
	}
	if w := again(); *w.ConnectedAccountID != account {
		t.Errorf("it is another account: %s", *w.ConnectedAccountID)
	}
	if got := accounts(
		t,
		s,
		map[string]any{},
	); len(got) != 1 || len(got[0].Errors) != 0 ||
		got[0].CustomMetadata["back"] != true {
		t.Errorf("the accounts are %+v", got)
	}
	if len(get(t, s, device).Errors) != 0 {
		t.Error("its device still has the error")
	}

	if status := s.Post(t, "/connected_accounts/delete", named, nil); status != http.StatusOK {
		t.Fatalf("delete: %d", status)
	}
	w := again()
	if *w.ConnectedAccountID == account {
		t.Error("a deleted account is there again")
	}
	var devices api.DevicesResponse
	if s.Post(
		t,
		"/devices/list",
		map[string]any{"connect_webview_id": w.ConnectWebviewID},
		&devices,
	); len(devices.Devices) != 1 ||
		devices.Devices[0].DeviceID == device {
		t.Errorf("its devices are %+v", devices.Devices)
	}
}

func TestWebview_Ends(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithAccess(func(o *access.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}))
	guessed := webview(
		t,
		s,
		map[string]any{
			"custom_redirect_url":         "https://app.example/back",
			"custom_redirect_failure_url": "https://app.example/failed",
		},
	)
	for n := range 10 {
		if status, _, _ := enter(t, guessed.URL, "nuki", mistyped); status != http.StatusUnprocessableEntity {
			t.Fatalf("try %d: %d", n+1, status)
		}
	}
	for name, entered := range map[string]map[string]string{
		"a wrong password":   mistyped,
		"the right password": as("jane"),
	} {
		if status, to, _ := enter(
			t,
			guessed.URL,
			"nuki",
			entered,
		); status != http.StatusSeeOther ||
			to != "https://app.example/failed?connect_webview_id="+guessed.ConnectWebviewID {
			t.Errorf("%s after ten wrong ones: %d %s", name, status, to)
		}
	}
	plain := webview(t, s, nil)
	if status, _, _ := enter(
		t,
		plain.URL,
		"nuki",
		map[string]string{"email": "jane@example.com"},
	); status != http.StatusUnprocessableEntity {
		t.Errorf("no password: %d", status)
	}
	if webviewNow(t, s, plain.ConnectWebviewID).Status != "pending" {
		t.Error("a webview without a login has failed")
	}
	ahead.Store(int64(8 * 24 * time.Hour))
	if status, _, body := enter(
		t,
		plain.URL,
		"nuki",
		as("jane"),
	); status != http.StatusNotFound ||
		!strings.Contains(body, "has expired") {
		t.Errorf("after eight days: %d", status)
	}
	if len(accounts(t, s, map[string]any{})) != 1 {
		t.Error("a person has logged in")
	}
}

// In a workspace with real locks, gateways can be connected only if the operator allows it. Addresses in the server's
// own network need a second permission.
func TestWebview_GatewaysNeedPermission(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	workspace, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Real", "", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{workspace.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var f failure
	if status := s.PostAs(
		t,
		key,
		"/connect_webviews/create",
		map[string]any{"accepted_providers": []string{"zwave_js"}},
		&f,
	); status != http.StatusBadRequest ||
		!strings.Contains(f.Error.Message, "--connect-gateways") {
		t.Errorf("%d %+v", status, f.Error)
	}
}

func TestWebview_GatewayAddressesAreGuarded(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(gateway.Close)
	address := strings.Replace(gateway.URL, "http", "ws", 1)
	for name, c := range map[string]struct {
		allow []netip.Prefix
		says  string
		asked int
	}{
		"an address of the server's own": {nil, "We could not reach Z-Wave JS at this address", 0},
		"one that the operator allows": {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "rejects this " +
			"user and password", 1},
		"one in a network that is not allowed": {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "We could not " +
			"reach Z-Wave JS at this address", 0},
	} {
		s := apptest.Start(
			t,
			apptest.WithProfiles("august"),
			apptest.WithConnecting(app.Connecting{Gateways: true, AllowPrefixes: c.allow}),
		)
		workspace, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Real", "", false)
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := s.App.Access.Auth.IssueCredential(
			t.Context(),
			auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{workspace.ID}},
		)
		if err != nil {
			t.Fatal(err)
		}
		var out api.ConnectWebviewResponse
		if status := s.PostAs(t, key, "/connect_webviews/create", nil, &out); status != http.StatusOK {
			t.Fatalf("%s: create: %d", name, status)
		}
		status, _, body := enter(
			t,
			out.ConnectWebview.URL,
			"zwave_js",
			map[string]string{"url": address, "username": "u", "password": "mistyped-secret"},
		)
		if status != http.StatusUnprocessableEntity || !strings.Contains(body, c.says) ||
			strings.Contains(body, "mistyped-secret") {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if len(asked) != c.asked {
			t.Errorf("%s: the gateway was asked %d times", name, len(asked))
		}
		for len(asked) > 0 {
			<-asked
		}
		broker := strings.Replace(gateway.URL, "http", "mqtt", 1)
		if status, _, _ := enter(
			t,
			out.ConnectWebview.URL,
			"zigbee2mqtt",
			map[string]string{"broker": broker, "topic": "zigbee2mqtt"},
		); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: a broker that is none: %d", name, status)
		}
		if status, _, _ := enter(t, out.ConnectWebview.URL, "august", as("jane")); status != http.StatusNotFound {
			t.Errorf("%s: a simulated vendor: %d", name, status)
		}
	}
}
