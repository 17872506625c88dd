package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// acme is a vendor of locks that only this test registers, under a name that the API knows. A login consumes a password, and yields tokens of which each
// lists the devices three times.
type acme struct {
	*httptest.Server
	mu     sync.Mutex
	issued int
	uses   int
	lists  int
}

func startAcme(t *testing.T) *acme {
	t.Helper()
	a := &acme{}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *acme) token() string { return "access-" + strings.Repeat("x", a.issued) }

// ServeHTTP serves /token and /locks.
func (a *acme) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.URL.Path == "/token" && (r.FormValue("password") == "secret" || r.FormValue("refresh_token") == a.token()+"-r"):
		a.issued++
		a.uses = 0
		json.NewEncoder(w).Encode(adapter.Tokens{Access: a.token(), Refresh: a.token() + "-r"})
	case r.URL.Path == "/locks" && r.Header.Get("Authorization") == "Bearer "+a.token() && a.uses < 3:
		a.uses++
		a.lists++
		json.NewEncoder(w).Encode([]string{"front"})
	default:
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func (a *acme) counts() (issued, lists int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.issued, a.lists
}

func (a *acme) vendor() adapter.Vendor {
	return adapter.Vendor{
		Adapter:     "acme",
		Name:        "tedee",
		DisplayName: "Acme",
		Usage:       "connect an Acme account",
		NeedsClient: true,
		Categories:  []string{adapter.CategoryBeta, adapter.CategorySmartlocks},
		Accepts:     []string{adapter.Locks},
		Can:         capability.Set{OnlineCodes: true, Lock: true},
		Login: &adapter.Login{
			Fields: []login.Field{
				{Name: "user", Label: "User", Kind: "text"},
				{Name: "password", Label: "Password", Kind: "password"},
			},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				return &acmeConnection{acme: a, User: entered["user"], password: entered["password"]}, nil
			},
			SecretField: "password",
		},
		New:          func() adapter.Connection { return &acmeConnection{acme: a} },
		Verification: adapter.Verification{Level: adapter.VerifiedDocumentation, Date: "2026-05"},
		CallsPerHour: 4000,
		AppPush: func(r *http.Request) (adapter.AppPush, error) {
			lock := r.FormValue("lock")
			if lock == "" {
				return adapter.AppPush{}, errors.New("no lock")
			}
			e := adapter.Event{Kind: adapter.DeviceListed, Device: adapter.DeviceRef(lock)}
			return adapter.AppPush{Events: []adapter.AppEvent{{Event: e}}, Response: "success"}, nil
		},
	}
}

type acmeConnection struct {
	acme     *acme
	User     string `json:"user"`
	password string
}

func (c *acmeConnection) Adapter() string { return "acme" }

func (c *acmeConnection) Address() string { return "acme " + c.User }

func (c *acmeConnection) Apply(adapter.Settings) error { return nil }

func (c *acmeConnection) Check(ctx context.Context, env adapter.Env) (found adapter.Checked, err error) {
	tokens, err := c.request(ctx, env, url.Values{"password": {c.password}})
	if err != nil {
		return found, err
	}
	found.Username, found.DisplayName = c.User, "Acme of "+c.User
	found.Credentials, err = json.Marshal(tokens)
	return found, err
}

func (c *acmeConnection) request(ctx context.Context, env adapter.Env, form url.Values) (t adapter.Tokens, err error) {
	if env.Client != (adapter.Client{ID: "our-id", Secret: "our-secret"}) {
		return t, adapter.Errorf(adapter.Invalid, "no client")
	}
	body := strings.NewReader(form.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.acme.URL+"/token", body)
	if err != nil {
		return t, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return t, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return t, adapter.Errorf(adapter.AuthRevoked, "Acme refuses the login")
	}
	return t, json.NewDecoder(res.Body).Decode(&t)
}

func (c *acmeConnection) Open(_ context.Context, env adapter.Env) (adapter.Adapter, error) {
	a := &acmeAdapter{acme: c.acme, budget: env.Budget, events: adapter.NewEventQueue()}
	a.tokens = &adapter.TokenSource{
		Secrets: env.Secrets,
		Refresh: func(ctx context.Context, old adapter.Tokens) (adapter.Tokens, error) {
			return c.request(ctx, env, url.Values{"refresh_token": {old.Refresh}})
		},
	}
	return a, nil
}

// acmeAdapter implements the parts of an adapter that the tests need.
type acmeAdapter struct {
	adapter.Adapter
	acme   *acme
	tokens *adapter.TokenSource
	budget adapter.Budget
	events *adapter.EventQueue
}

func (a *acmeAdapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	token, err := a.tokens.Token(ctx)
	for try := 0; err == nil; try++ {
		var req *http.Request
		var res *http.Response
		if req, err = http.NewRequestWithContext(ctx, http.MethodGet, a.acme.URL+"/locks", nil); err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		if err := a.budget.Take(ctx); err != nil {
			return nil, err
		}
		if res, err = http.DefaultClient.Do(req); err != nil {
			return nil, err
		}
		res.Body.Close()
		switch {
		case res.StatusCode == http.StatusOK:
			return []adapter.Device{{
				Ref:          "front",
				Name:         "Front",
				Type:         "tedee_lock",
				Provider:     "tedee",
				Online:       true,
				Capabilities: capability.Set{Lock: true},
			}}, nil
		case try > 0:
			return nil, adapter.Errorf(adapter.AuthRevoked, "Acme refuses the token")
		}
		token, err = a.tokens.Renew(ctx, token)
	}
	return nil, err
}

func (a *acmeAdapter) Device(ctx context.Context, _ adapter.DeviceRef) (adapter.Device, error) {
	all, err := a.Devices(ctx)
	if err != nil {
		return adapter.Device{}, err
	}
	return all[0], nil
}

func (a *acmeAdapter) Events() <-chan adapter.Event { return a.events.Events() }

func (a *acmeAdapter) ReceiveEvent(e adapter.Event) bool { return a.events.Send(e) }

func (a *acmeAdapter) Close() error {
	a.events.Close()
	return nil
}

// realWorkspace creates a workspace that is no sandbox, and returns its key.
func realWorkspace(t *testing.T, s *apptest.Server) (key string) {
	t.Helper()
	w, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err = s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{w.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A vendor that is registered once is listed, offered on connect pages, and logged in to there. Its tokens are renewed,
// and pushes to the operator's application arrive.
func TestVendor_RegisteredOnce(t *testing.T) {
	t.Parallel()
	cloud := startAcme(t)
	connecting := app.Connecting{
		Vendors: []adapter.Vendor{cloud.vendor()},
		Clients: map[string]adapter.Client{"acme": {ID: "our-id", Secret: "our-secret"}},
	}
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(connecting),
		func(c *app.Config) { c.MetricsListen = "127.0.0.1:0" })
	key := realWorkspace(t, s)

	var listed api.DeviceProvidersResponse
	s.PostAs(t, key, "/devices/list_device_providers", map[string]any{}, &listed)
	if all := listed.DeviceProviders; len(all) != 1 || all[0].DeviceProviderName != "tedee" ||
		!*all[0].CanRemotelyLock || *all[0].CanRemotelyUnlock || *all[0].CanSimulateRemoval {
		t.Fatalf("the providers are %+v", all)
	}
	s.Post(t, "/devices/list_device_providers", map[string]any{}, &listed)
	if slices.ContainsFunc(listed.DeviceProviders, func(p api.DeviceProvider) bool {
		return p.DeviceProviderName == "zwave_js"
	}) || len(listed.DeviceProviders) < 10 {
		t.Errorf("in the sandbox they are %+v", listed.DeviceProviders)
	}

	var page api.ConnectWebviewResponse
	s.PostAs(t, key, "/connect_webviews/create", map[string]any{}, &page)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	logIn := func(password string) int {
		t.Helper()
		form := url.Values{"user": {"jane"}, "password": {password}}
		res, err := client.PostForm(page.ConnectWebview.URL+"/tedee", form)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if status := logIn("wrong"); status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong password: %d", status)
	}
	if status := logIn("secret"); status != http.StatusSeeOther {
		t.Fatalf("the right password: %d", status)
	}
	var accounts api.ConnectedAccountsResponse
	s.PostAs(t, key, "/connected_accounts/list", map[string]any{}, &accounts)
	if all := accounts.ConnectedAccounts; len(all) != 1 || all[0].AccountType != "tedee" ||
		all[0].AccountTypeDisplayName != "Acme" || all[0].UserIdentifier.Username != "jane" ||
		all[0].DisplayName != "Acme of jane" || len(all[0].Warnings) != 1 ||
		all[0].Warnings[0].WarningCode != "adapter_not_verified" {
		t.Fatalf("the accounts are %+v", all)
	}
	apptest.Until(t, "its device is listed, and not managed", func() bool {
		var devices api.UnmanagedDevicesResponse
		s.PostAs(t, key, "/devices/unmanaged/list", map[string]any{}, &devices)
		return len(devices.Devices) == 1 && hasWarning(devices.Devices[0].Warnings, "adapter_not_verified")
	})
	res, err := http.Get(page.ConnectWebview.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	last, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(last), "are read-only") ||
		!strings.Contains(string(last), "never tested with the vendor") {
		t.Errorf("the last page does not say that the account is read-only: %v", err)
	}

	admin := app.Admin{Access: s.App.Access, Connecting: connecting}
	push, err := admin.AppPushURL(t.Context(), "acme", s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		url, lock string
		status    int
	}{
		"a wrong secret":    {push + "x", "front", http.StatusNotFound},
		"another vendor":    {strings.Replace(push, "acme", "zwavejs", 1), "front", http.StatusNotFound},
		"unreadable":        {push, "", http.StatusBadRequest},
		"an unknown device": {push, "back", http.StatusOK},
	} {
		if status := post(t, c.url, url.Values{"lock": {c.lock}}); status != c.status {
			t.Errorf("%s: %d, want %d", name, status, c.status)
		}
	}
	for n := range 5 { // more than one token allows
		_, before := cloud.counts()
		if status := post(t, push, url.Values{"lock": {"front"}}); status != http.StatusOK {
			t.Fatalf("push %d: %d", n, status)
		}
		apptest.Until(
			t,
			"the devices are read again",
			func() bool { _, lists := cloud.counts(); return lists > before },
		)
	}
	if issued, _ := cloud.counts(); issued < 2 {
		t.Errorf("%d tokens were issued", issued)
	}
	checkAcme(t, cloud, &admin)

	all, err := admin.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a app.ConnectedAccount) bool { return a.Adapter == "acme" })
	expectCallsLeft(t, s, all[i])
	if n, err := admin.ManageDevices(t.Context(), all[i].Account); n != 1 || err != nil {
		t.Errorf("%d devices have become managed, %v", n, err)
	}
	var devices api.DevicesResponse
	s.PostAs(t, key, "/devices/list", map[string]any{}, &devices)
	if all := devices.Devices; len(all) != 1 || !hasWarning(all[0].Warnings, "adapter_not_verified") {
		t.Errorf("the managed devices are %+v", all)
	}
	for _, path := range []string{"/devices/get", "/locks/get"} {
		if status := s.PostAs(
			t,
			key,
			path,
			map[string]any{"device_id": devices.Devices[0].DeviceID},
			nil,
		); status != 200 {
			t.Errorf("%s: %d", path, status)
		}
	}
	s.PostAs(t, key, "/locks/list", map[string]any{}, nil)
	s.PostAs(t, key, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z"}, nil)
	s.PostAs(t, key, "/connected_accounts/list", map[string]any{}, &accounts)
	if !accounts.ConnectedAccounts[0].AutomaticallyManageNewDevices {
		t.Error("new devices still start out unmanaged")
	}
}

// expectCallsLeft fails unless the list of accounts and the metrics have the calls left of a bucket of 1000.
func expectCallsLeft(t *testing.T, s *apptest.Server, a app.ConnectedAccount) {
	t.Helper()
	if left, err := strconv.Atoi(a.CallsLeft); err != nil || left < 600 || left > 1000 {
		t.Errorf("the list says %q calls are left", a.CallsLeft)
	}
	series := `deviceaccess_account_calls_left{account="` + a.ID.String() + `",vendor="acme"} `
	apptest.Until(t, "the metrics have the calls left", func() bool {
		res, err := http.Get(s.App.MetricsURL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_, value, found := strings.Cut(string(text), series)
		value, _, _ = strings.Cut(value, "\n")
		left, err := strconv.Atoi(value)
		return found && err == nil && left >= 600 && left <= 1000
	})
}

func hasWarning(all []api.Problem, code string) bool {
	return slices.ContainsFunc(all, func(p api.Problem) bool { return p.WarningCode == code })
}

// checkAcme checks the account several times: the checks renew its login for the server as well.
func checkAcme(t *testing.T, cloud *acme, admin *app.Admin) {
	t.Helper()
	all, err := admin.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a app.ConnectedAccount) bool { return a.Adapter == "acme" })
	before, _ := cloud.counts()
	for range 4 { // more than one token allows
		lines := map[string]app.CheckLine{}
		report := func(l app.CheckLine) { lines[l.Subject] = l }
		if err := admin.Check(t.Context(), all[i], app.CheckOptions{Devices: 5, Report: report}); err != nil {
			t.Fatal(err)
		}
		if lines["login"].Status != app.CheckOK || lines["capabilities of front"].Result != "lock" ||
			!strings.Contains(lines["pushes"].Result, "push-url acme") ||
			!strings.Contains(lines["tested"].Result, "documentation of 2026-05, never against the vendor") {
			t.Fatalf("the check reports %+v", lines)
		}
	}
	if after, _ := cloud.counts(); after == before {
		t.Error("the checks renewed no login")
	}
}

func post(t *testing.T, to string, form url.Values) int {
	t.Helper()
	res, err := http.PostForm(to, form)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// Without the operator's registration, a vendor that needs one is not offered.
func TestVendor_NeedsClient(t *testing.T) {
	t.Parallel()
	cloud := startAcme(t)
	connecting := app.Connecting{Vendors: []adapter.Vendor{cloud.vendor()}}
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(connecting))
	key := realWorkspace(t, s)
	var listed api.DeviceProvidersResponse
	s.PostAs(t, key, "/devices/list_device_providers", map[string]any{}, &listed)
	if len(listed.DeviceProviders) != 0 {
		t.Errorf("the providers are %+v", listed.DeviceProviders)
	}
	if status := s.PostAs(t, key, "/connect_webviews/create", map[string]any{}, nil); status != http.StatusBadRequest {
		t.Errorf("a webview without vendors: %d", status)
	}
}

// An account that the operator connects starts out read-only, unless writes are allowed.
func TestConnect_ReadOnlyUnlessAllowed(t *testing.T) {
	t.Parallel()
	cloud := startAcme(t)
	connecting := app.Connecting{
		Vendors: []adapter.Vendor{cloud.vendor()},
		Clients: map[string]adapter.Client{"acme": {ID: "our-id", Secret: "our-secret"}},
	}
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(connecting))
	w, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	for user, allow := range map[string]bool{"jane": false, "joe": true} {
		admin := app.Admin{Access: s.App.Access, Connecting: connecting, AllowWrites: allow}
		c := &acmeConnection{acme: cloud, User: user, password: "secret"}
		id, err := admin.Connect(t.Context(), w.ID, user, c)
		if err != nil {
			t.Fatal(err)
		}
		p := domain.Principal{WorkspaceID: w.ID}
		a, err := s.App.Access.Accounts.GetConnectedAccount(t.Context(), p, id.String(), "")
		if err != nil || a.ManageNewDevices != allow {
			t.Errorf("%s: new devices are managed: %t, want %t, %v", user, a.ManageNewDevices, allow, err)
		}
	}
}

// No request of a client makes the server write to devices of an account that is read-only. The operator can, for all
// devices or for those that clients manage.
func TestReadOnlyAccount_OnlyTheOperatorAllowsWrites(t *testing.T) {
	t.Parallel()
	cloud := startAcme(t)
	connecting := app.Connecting{
		Vendors: []adapter.Vendor{cloud.vendor()},
		Clients: map[string]adapter.Client{"acme": {ID: "our-id", Secret: "our-secret"}},
	}
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(connecting))
	key := realWorkspace(t, s)
	logIn := func() {
		t.Helper()
		var page api.ConnectWebviewResponse
		s.PostAs(t, key, "/connect_webviews/create", map[string]any{"automatically_manage_new_devices": true}, &page)
		form := url.Values{"user": {"jane"}, "password": {"secret"}}
		if status := post(t, page.ConnectWebview.URL+"/tedee", form); status != http.StatusOK {
			t.Fatalf("log in: %d", status)
		}
	}
	device := ""
	awaitUnmanaged := func(what string) {
		t.Helper()
		apptest.Until(t, what, func() bool {
			var devices api.UnmanagedDevicesResponse
			s.PostAs(t, key, "/devices/unmanaged/list", map[string]any{}, &devices)
			if len(devices.Devices) != 1 || devices.Devices[0].DeviceID == device {
				return false
			}
			device = devices.Devices[0].DeviceID
			return true
		})
	}
	logIn()
	awaitUnmanaged("the device is unmanaged")
	logIn() // by another link, to the same account
	var accounts api.ConnectedAccountsResponse
	s.PostAs(t, key, "/connected_accounts/list", map[string]any{}, &accounts)
	if len(accounts.ConnectedAccounts) != 1 || accounts.ConnectedAccounts[0].AutomaticallyManageNewDevices {
		t.Fatalf("the accounts are %+v", accounts.ConnectedAccounts)
	}
	accountID := accounts.ConnectedAccounts[0].ConnectedAccountID
	manage := map[string]any{"is_managed": true}
	for path, body := range map[string]map[string]any{
		"/devices/unmanaged/update": manage,
		"/connected_accounts/update": {
			"connected_account_id":             accountID,
			"automatically_manage_new_devices": true,
		},
	} {
		if path == "/devices/unmanaged/update" {
			body["device_id"] = device
		}
		var refused api.ErrorResponse
		if status := s.PostAs(t, key, path, body, &refused); status != http.StatusForbidden ||
			refused.Error.Type != "writes_not_allowed" ||
			!strings.Contains(refused.Error.Message, "accounts allow-writes "+accountID) {
			t.Errorf("%s: %d %+v", path, status, refused.Error)
		}
	}
	rename := map[string]any{"device_id": device, "custom_metadata": map[string]any{"room": "1"}}
	if status := s.PostAs(t, key, "/devices/unmanaged/update", rename, nil); status != http.StatusOK {
		t.Errorf("metadata of an unmanaged device: %d", status)
	}

	// An account of an earlier version, or one whose row says otherwise, stays read-only as well.
	s.Exec(t, "update connected_accounts set manage_new_devices = true where connected_account_id = $1", accountID)
	s.PostAs(t, key, "/devices/delete", map[string]any{"device_id": device}, nil)
	awaitUnmanaged("the device reappears and is unmanaged")
	s.Exec(t, "update connected_accounts set manage_new_devices = false where connected_account_id = $1", accountID)

	manage["device_id"] = device
	id := uuid.MustParse(accountID)
	if err := s.App.Access.Accounts.AllowWrites(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	s.PostAs(t, key, "/connected_accounts/list", map[string]any{}, &accounts)
	if accounts.ConnectedAccounts[0].AutomaticallyManageNewDevices {
		t.Error("new devices are managed, although the operator left that to clients")
	}
	if status := s.PostAs(t, key, "/devices/unmanaged/update", manage, nil); status != http.StatusOK {
		t.Errorf("manage a device after the operator allowed writes: %d", status)
	}
}
