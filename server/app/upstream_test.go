package app_test

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// downstream is a workspace whose locks are those of an upstream workspace.
type downstream struct {
	t      *testing.T
	server *apptest.Server
	up     *apptest.Server // another workspace
	upKey  string
	key    string // of the workspace
	lock   *apptest.Lock
	at     string // the lock's device_id upstream
	device string
}

// vendorAt returns the vendor with the URL of a test's server in place of the hosted one.
func vendorAt(base *string) adapter.Vendor {
	v := seam.Vendor()
	v.Login.Connect = func(entered map[string]string) (adapter.Connection, error) {
		return &seam.Connection{BaseURL: *base, APIKey: entered["api_key"]}, nil
	}
	return v
}

func startDownstream(t *testing.T, opts ...apptest.Option) *downstream {
	t.Helper()
	var base string
	d := &downstream{t: t, up: apptest.SharedProcess(t, apptest.WithProfiles("august"))}
	base = d.up.URL
	d.server = apptest.Start(t, append(
		opts,
		apptest.WithProfiles("august"),
		apptest.WithConnecting(app.Connecting{Vendors: []adapter.Vendor{vendorAt(&base)}}),
	)...)
	d.at = d.up.Device(t, "august")
	d.lock = d.up.Lock(t, d.at)
	d.upKey, _ = d.up.Credential(t, auth.NewCredential{Kind: domain.APIKey, Name: "downstream", Sandbox: true})
	w, err := d.server.App.Access.Accounts.CreateWorkspace(t.Context(), "Home", "Home", false)
	if err != nil {
		t.Fatal(err)
	}
	d.key, _ = d.server.Credential(t, auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{w.ID}})
	return d
}

func (d *downstream) post(path string, body map[string]any, out any) {
	d.t.Helper()
	if status := d.server.PostAs(d.t, d.key, path, body, out); status != http.StatusOK {
		d.t.Fatalf("%s: %d", path, status)
	}
}

// logIn enters an API key on a connect page and returns the page.
func (d *downstream) logIn(key string) string {
	d.t.Helper()
	var page api.ConnectWebviewResponse
	d.post("/connect_webviews/create", map[string]any{}, &page)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(page.ConnectWebview.URL+"/"+seam.Name, url.Values{"api_key": {key}})
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	if strings.Contains(string(text), key) {
		d.t.Error("the page shows the API key")
	}
	return string(text)
}

// awaitCode waits for a code downstream with a name.
func (d *downstream) awaitCode(name string) (id string) {
	d.t.Helper()
	apptest.Until(d.t, "the code "+name, func() bool {
		var out api.UnmanagedAccessCodesResponse
		d.post("/access_codes/unmanaged/list", map[string]any{"device_id": d.device}, &out)
		for _, c := range out.AccessCodes {
			if domain.Value(c.Name) == name {
				id = c.AccessCodeID
			}
		}
		return id != ""
	})
	return id
}

// adopt makes a code managed downstream and returns its access_code_id.
func (d *downstream) adopt(name string) string {
	d.t.Helper()
	id := d.awaitCode(name)
	d.post("/access_codes/unmanaged/convert_to_managed", map[string]any{"access_code_id": id}, nil)
	apptest.Until(d.t, name+" is managed", func() bool {
		return d.server.PostAs(
			d.t,
			d.key,
			"/access_codes/get",
			map[string]any{"access_code_id": id},
			nil,
		) == http.StatusOK
	})
	return id
}

// upstreamCode returns the code with a name that is managed upstream.
func (d *downstream) upstreamCode(name string) (code api.AccessCode, ok bool) {
	d.t.Helper()
	var out api.AccessCodesResponse
	d.up.Post(d.t, "/access_codes/list", map[string]any{"device_id": d.at}, &out)
	for _, c := range out.AccessCodes {
		if domain.Value(c.Name) == name {
			return c, true
		}
	}
	return code, false
}

// A workspace with an upstream workspace adopts, changes, creates, and deletes the codes there, and reports what
// happens at the door.
func TestUpstream_Story(t *testing.T) {
	t.Parallel()
	var run secretscan.Run
	d := startDownstream(t, run.Configure(t))
	run.Learn("upstream key", d.upKey)
	var made api.AccessCodeResponse
	d.up.Post(t, "/access_codes/create", map[string]any{"device_id": d.at, "name": "Owner 2", "code": "4839"}, &made)

	if text := d.logIn("seam_nothing"); !strings.Contains(text, "rejects this API key") {
		t.Errorf("the page of a wrong key is %s", text)
	}
	d.logIn(d.upKey)
	apptest.Until(t, "the lock", func() bool {
		var out api.DevicesResponse
		d.post("/devices/list", map[string]any{}, &out)
		for _, one := range out.Devices {
			d.device = one.DeviceID
		}
		return d.device != ""
	})

	// A code that is managed upstream keeps its identifier and PIN there.
	id := d.adopt("Owner 2")
	d.post("/access_codes/update", map[string]any{"access_code_id": id, "code": "5948"}, nil)
	apptest.Until(t, "the changed PIN", func() bool {
		c, ok := d.upstreamCode("Owner 2")
		return ok && c.AccessCodeID == made.AccessCode.AccessCodeID && d.lock.Has(t, "5948")
	})

	var adopted api.AccessCodeResponse
	d.post("/access_codes/get", map[string]any{"access_code_id": id}, &adopted)
	if adopted.AccessCode.UpstreamAccessCodeID != made.AccessCode.AccessCodeID {
		t.Errorf("the adopted code names %q upstream", adopted.AccessCode.UpstreamAccessCodeID)
	}

	// A code that is unmanaged upstream becomes managed there first.
	d.lock.Control(t, http.MethodPost, "/keypad/codes", map[string]string{"name": "Neighbor", "code": "7261"})
	id = d.adopt("Neighbor")
	if _, ok := d.upstreamCode("Neighbor"); !ok {
		t.Error("the code is unmanaged upstream")
	}
	d.post("/access_codes/update", map[string]any{"access_code_id": id, "name": "Ms. Neighbor"}, nil)
	apptest.Until(t, "the name upstream", func() bool {
		_, ok := d.upstreamCode("Ms. Neighbor")
		return ok && d.lock.Has(t, "7261")
	})

	d.post("/access_codes/create", map[string]any{"device_id": d.device, "name": "Guest", "code": "6173"}, &made)
	apptest.Until(t, "the new code", func() bool { return d.lock.Has(t, "6173") })
	d.lock.Enter(t, "6173", nil)
	apptest.Until(t, "the event of the entry", func() bool {
		var out struct {
			Events []struct {
				CodeID string `json:"access_code_id"`
				Method string `json:"method"`
			} `json:"events"`
		}
		d.post("/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "event_type": "lock.unlocked"}, &out)
		for _, e := range out.Events {
			if e.CodeID == made.AccessCode.AccessCodeID && e.Method == "keycode" {
				return true
			}
		}
		return false
	})
	d.post("/access_codes/delete", map[string]any{"access_code_id": made.AccessCode.AccessCodeID}, nil)
	apptest.Until(t, "the deletion", func() bool { return !d.lock.Has(t, "6173") })
	d.checkWebhook()
	run.Check(t, d.server.App, nil)
}

// checkWebhook requires that the account has one webhook upstream.
func (d *downstream) checkWebhook() {
	d.t.Helper()
	var out struct {
		Webhooks []struct {
			URL string `json:"url"`
		} `json:"webhooks"`
	}
	d.up.Post(d.t, "/webhooks/list", map[string]any{}, &out)
	if len(out.Webhooks) != 1 || !strings.HasPrefix(out.Webhooks[0].URL, d.server.URL+"/vendors/") {
		d.t.Fatalf("the webhooks upstream are %+v", out.Webhooks)
	}
}

// A device that is unmanaged upstream is not listed. The account says so until the device is managed upstream.
func TestUpstream_WarnsOfUnmanagedDevices(t *testing.T) {
	t.Parallel()
	d := startDownstream(t)
	manage := func(path string, managed bool) {
		t.Helper()
		body := map[string]any{"device_id": d.at, "is_managed": managed}
		if status := d.up.Post(t, path, body, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	manage("/devices/update", false)
	d.logIn(d.upKey)
	warnings := func() []api.Problem {
		var listed api.ConnectedAccountsResponse
		d.post("/connected_accounts/list", map[string]any{}, &listed)
		if len(listed.ConnectedAccounts) != 1 {
			t.Fatalf("%d accounts", len(listed.ConnectedAccounts))
		}
		var got api.ConnectedAccountResponse
		id := listed.ConnectedAccounts[0].ConnectedAccountID
		d.post("/connected_accounts/get", map[string]any{"connected_account_id": id}, &got)
		return got.ConnectedAccount.Warnings
	}
	apptest.Until(t, "the warning", func() bool {
		all := warnings()
		return len(all) == 1 && all[0].WarningCode == seam.UnmanagedUpstream &&
			strings.Contains(all[0].Message, "list them: 1. Make them managed")
	})
	manage("/devices/unmanaged/update", true)
	apptest.Until(t, "the end of the warning", func() bool { return len(warnings()) == 0 })
}

// home returns the workspace downstream.
func (d *downstream) home() string {
	d.t.Helper()
	own := &seam.Connection{BaseURL: d.server.URL, APIKey: d.key}
	found, err := own.Check(d.t.Context(), adapter.Env{})
	if err != nil {
		d.t.Fatal(err)
	}
	return found.Username
}

// When two workspaces have become the upstream of each other, for example at the same time, each refuses the requests of
// the other. Requests of others pass.
func TestUpstream_RefusesLoopsOfTwoAtRunTime(t *testing.T) {
	t.Parallel()
	d := startDownstream(t)
	d.logIn(d.upKey)
	list := func(via string) error {
		a := seam.New(seam.Config{BaseURL: d.server.URL, APIKey: d.key, Workspace: via})
		defer func() { _ = a.Close() }()
		_, err := a.Devices(t.Context())
		return err
	}
	err := list(d.up.WorkspaceID)
	if adapter.ClassOf(err) != adapter.GatewayDown || !strings.Contains(err.Error(), "upstream of each other") {
		t.Errorf("the upstream workspace reads its downstream: %v", err)
	}
	if err := list(
		"someone, " + uuid.NewString() + ", " + d.up.WorkspaceID,
	); adapter.ClassOf(
		err,
	) != adapter.GatewayDown {
		t.Errorf("the upstream workspace among others: %v", err)
	}
	for _, via := range []string{"", "no workspace", uuid.NewString()} {
		if err := list(via); err != nil {
			t.Errorf("a request via %q: %v", via, err)
		}
	}
	var listed api.ConnectedAccountsResponse
	d.post("/connected_accounts/list", map[string]any{}, &listed)
	account := map[string]any{"connected_account_id": listed.ConnectedAccounts[0].ConnectedAccountID}
	d.post("/connected_accounts/delete", account, nil)
	if err := list(d.up.WorkspaceID); err != nil {
		t.Errorf("after the account was deleted: %v", err)
	}
}

// An account that gets another API key is checked for loops as a new one.
func TestUpstream_ReconnectRefusesLoops(t *testing.T) {
	t.Parallel()
	d := startDownstream(t)
	d.logIn(d.upKey)
	admin := app.Admin{
		Access:     d.server.App.Access,
		Connecting: app.Connecting{Vendors: []adapter.Vendor{seam.Vendor()}},
	}
	all, err := admin.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a app.ConnectedAccount) bool { return a.Adapter == seam.Name })
	reconnect := func(key string) error {
		to := &seam.Connection{BaseURL: d.server.URL, APIKey: key}
		return admin.Reconnect(t.Context(), all[i].ID, "upstream", to)
	}
	if err := reconnect(d.key); adapter.ClassOf(err) != adapter.Invalid || !strings.Contains(err.Error(), "its own") {
		t.Errorf("a workspace became its own upstream: %v", err)
	}
	w, err := admin.Access.Accounts.CreateWorkspace(t.Context(), "Other", "Other", false)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := d.server.Credential(t, auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{w.ID}})
	if _, err := admin.Connect(
		t.Context(),
		w.ID,
		"",
		&seam.Connection{BaseURL: d.server.URL, APIKey: d.key},
	); err != nil {
		t.Fatal(err)
	}
	if err := reconnect(other); adapter.ClassOf(err) != adapter.Invalid ||
		!strings.Contains(err.Error(), "as its own upstream") {
		t.Errorf("a workspace became the upstream of its upstream: %v", err)
	}
}

// A workspace can neither be its own upstream nor that of its own upstream.
func TestUpstream_RefusesLoops(t *testing.T) {
	t.Parallel()
	d := startDownstream(t)
	own, home := &seam.Connection{BaseURL: d.server.URL, APIKey: d.key}, d.home()
	if _, err := own.Check(t.Context(), adapter.Env{Workspace: home}); adapter.ClassOf(err) != adapter.Invalid {
		t.Errorf("a workspace became its own upstream: %v", err)
	}
	loop := seam.New(seam.Config{BaseURL: d.server.URL, APIKey: d.key, Workspace: home})
	t.Cleanup(func() { _ = loop.Close() })
	if _, err := loop.Devices(t.Context()); adapter.ClassOf(err) != adapter.GatewayDown {
		t.Errorf("the server answers its own workspace: %v", err)
	}
	d.logIn(d.upKey)
	if _, err := own.Check(
		t.Context(),
		adapter.Env{Workspace: d.up.WorkspaceID},
	); adapter.ClassOf(
		err,
	) != adapter.Invalid {
		t.Errorf("a workspace became the upstream of its upstream: %v", err)
	}
}
