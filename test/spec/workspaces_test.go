package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func issue(t *testing.T, s *apptest.Server, kind domain.CredentialKind) string {
	t.Helper()
	token, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: kind, WorkspaceIDs: []uuid.UUID{uuid.MustParse(s.WorkspaceID)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A public page creates client sessions with a publishable key. The sessions have no access until the workspace grants
// it.
func TestClientSession_PublishableKeyCreatesEmpty(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	key := issue(t, s, domain.PublishableKey)
	var w api.WorkspaceResponse
	if s.Post(
		t,
		"/workspaces/get",
		params{},
		&w,
	); w.Workspace.PublishableKey != key || !w.Workspace.IsPublishableKeyAuthEnabled ||
		!strings.HasPrefix(key, "seam_pk") {
		t.Errorf("the workspace shows %+v", w.Workspace)
	}
	header := http.Header{"Seam-Publishable-Key": {key}}
	ask := func(header http.Header, path, body string) (string, api.ClientSession) {
		var out struct {
			failure
			ClientSession api.ClientSession `json:"client_session"`
		}
		res := s.Send(t, http.MethodPost, path, header, body, &out)
		return fmt.Sprintf("%d %s", res.StatusCode, out.Error.Type), out.ClientSession
	}
	got, c := ask(header, "/client_sessions/get_or_create", `{"user_identifier_key":"one that cannot be guessed"}`)
	if got != "200 " || len(c.ConnectedAccountIds) != 0 || c.WorkspaceID != s.WorkspaceID {
		t.Fatalf("get_or_create: %s %+v", got, c)
	}
	if seen := devicesOf(t, s, c.Token, "/devices/list", params{}); seen != nil {
		t.Errorf("it reaches %v", seen)
	}
	if got, again := ask(
		header,
		"/client_sessions/get_or_create",
		`{"user_identifier_key":"one that cannot be guessed"}`,
	); got != "200 " ||
		again.Token != c.Token {
		t.Errorf("again: %s", got)
	}
	var d api.DeviceResponse
	s.Post(t, "/devices/get", params{"device_id": s.Device(t, "august")}, &d)
	bearer := apptest.Bearer(key)
	for name, c := range map[string]struct {
		header           http.Header
		path, body, want string
	}{
		"an account": {
			header,
			"/client_sessions/get_or_create",
			fmt.Sprintf(`{"user_identifier_key":"x","connected_account_ids":[%q]}`, d.Device.ConnectedAccountID),
			"403 publishable_keys_must_create_empty_client_sessions",
		},
		"a customer": {
			header,
			"/client_sessions/create",
			`{"user_identifier_key":"x","customer_key":"c"}`,
			"403 publishable_keys_must_create_empty_client_sessions",
		},
		"a webview": {
			header,
			"/client_sessions/create",
			`{"user_identifier_key":"x","connect_webview_ids":["` + uuid.NewString() + `"]}`,
			"403 publishable_keys_must_create_empty_client_sessions",
		},
		"a longer life": {
			header,
			"/client_sessions/create",
			`{"user_identifier_key":"x","expires_at":"2099-01-01T00:00:00Z"}`,
			"403 publishable_keys_must_create_empty_client_sessions",
		},
		"unknown": {header, "/client_sessions/get_or_create", `{}`, "400 invalid_input"},
		"as a bearer": {
			bearer,
			"/client_sessions/get_or_create",
			`{"user_identifier_key":"x"}`,
			"400 publishable_key_header_required",
		},
		"another": {
			http.Header{"Seam-Publishable-Key": {"seam_pk1nosuch"}},
			"/client_sessions/get_or_create",
			`{"user_identifier_key":"x"}`,
			"401 invalid_publishable_key",
		},
		"an API key": {
			http.Header{"Seam-Publishable-Key": {s.APIKey}},
			"/client_sessions/get_or_create",
			`{"user_identifier_key":"x"}`,
			"401 invalid_publishable_key",
		},
		"for more": {header, "/devices/list", `{}`, "403 forbidden"},
		"for one that is": {
			header,
			"/client_sessions/get",
			`{"user_identifier_key":"one that cannot be guessed"}`,
			"403 forbidden",
		},
	} {
		if got, _ := ask(c.header, c.path, c.body); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got, _ := ask(
		http.Header{"Seam-Publishable-Key": {key}, "Authorization": {"Bearer " + s.APIKey}},
		"/client_sessions/create",
		`{}`,
	); got != "200 " {
		t.Errorf("with an API key: %s", got)
	}
	s.Post(t, "/workspaces/update", params{"is_publishable_key_auth_enabled": false}, nil)
	if got, _ := ask(
		header,
		"/client_sessions/get_or_create",
		`{"user_identifier_key":"one that cannot be guessed"}`,
	); got != "401 invalid_publishable_key" {
		t.Errorf("switched off: %s", got)
	}
}

// Part 4.2: workspaces are created, changed, and suspended.
func TestWorkspaces_CreateChangeSuspend(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	pat := issue(t, s, domain.PAT)
	var made api.WorkspaceResponse
	if status := s.PostAs(
		t,
		pat,
		"/workspaces/create",
		params{
			"name":                 "Beach house",
			"connect_partner_name": "Acme",
			"is_sandbox":           true,
			"connect_webview_customization": params{
				"logo_shape": "circle",
			},
			"webview_primary_button_color": "#123abc",
		},
		&made,
	); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	w := made.Workspace
	if w.Name != "Beach house" || *w.ConnectPartnerName != "Acme" || w.CompanyName != "Acme" || !w.IsSandbox ||
		w.IsSuspended ||
		w.PublishableKey != "" ||
		w.ConnectWebviewCustomization != (api.ConnectWebviewCustomization{
			LogoShape:          "circle",
			PrimaryButtonColor: "#123abc",
		}) {
		t.Errorf("created: %+v", w)
	}
	header := apptest.Bearer(pat)
	header["Seam-Workspace"] = []string{w.WorkspaceID}
	apptest.Until(t, "the sandbox has its lock", func() bool {
		var out api.DevicesResponse
		res := s.Send(t, http.MethodPost, "/devices/list", header, `{}`, &out)
		return res.StatusCode == http.StatusOK && len(out.Devices) == 1
	})
	var list api.WorkspacesResponse
	if s.PostAs(t, pat, "/workspaces/list", params{}, &list); len(list.Workspaces) != 2 {
		t.Errorf("the token may enter %d workspaces", len(list.Workspaces))
	}
	send := func(path, body string) string {
		var f failure
		res := s.Send(t, http.MethodPost, path, header, body, &f)
		return fmt.Sprintf("%d %s", res.StatusCode, f.Error.Type)
	}
	var blank failure
	if status := s.PostAs(
		t,
		pat,
		"/workspaces/create",
		params{"name": " \t"},
		&blank,
	); status != http.StatusBadRequest ||
		blank.Error.ValidationErrors["name"] == nil {
		t.Errorf("create one with a blank name: %d %+v", status, blank.Error)
	}
	if got := send("/workspaces/update", `{"name":"  "}`); got != "400 invalid_input" {
		t.Errorf("give it a blank name: %s", got)
	}
	if got := send(
		"/workspaces/update",
		`{"name":"Lake house","connect_webview_customization":{"success_message":"Thank you",
			"webview_logo_url":"https://logo.example"},"is_suspended":true}`, // unknown keys are ignored everywhere
	); got != "200 " {
		t.Errorf("update: %s", got)
	}
	if got := send("/devices/list", `{}`); got != "403 workspace_suspended" {
		t.Errorf("objects of a suspended workspace: %s", got)
	}
	var now api.WorkspaceResponse
	s.Send(t, http.MethodGet, "/workspaces/get", header, "", &now)
	if w := now.Workspace; w.Name != "Lake house" || *w.ConnectPartnerName != "Acme" || !w.IsSuspended ||
		w.ConnectWebviewCustomization != (api.ConnectWebviewCustomization{
			LogoShape:          "circle",
			PrimaryButtonColor: "#123abc",
			SuccessMessage:     "Thank you",
		}) {
		t.Errorf("changed: %+v", w)
	}
	if got := send("/workspaces/update", `{"is_suspended":false}`); got != "200 " {
		t.Errorf("end the suspension: %s", got)
	}
	if got := send("/devices/list", `{}`); got != "200 " {
		t.Errorf("after the suspension: %s", got)
	}
	if got := send("/workspaces/create", `{"name":"x"}`); got != "403 forbidden" {
		t.Errorf("create from within a workspace: %s", got)
	}
	for name, in := range map[string]params{
		"no name":         {},
		"an organisation": {"name": "x", "organization_id": uuid.NewString()},
		"a triangle":      {"name": "x", "webview_logo_shape": "triangle"},
		"a style":         {"name": "x", "webview_primary_button_color": "red;background:url(x)"},
	} {
		if got := refused(t, s, pat, "/workspaces/create", in); got != "400 invalid_input" {
			t.Errorf("%s: %s", name, got)
		}
	}
	inhabited, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Real", "", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{inhabited.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := refused(t, s, key, "/workspaces/reset_sandbox", params{}); got != "400 workspace_not_sandbox" {
		t.Errorf("reset a real one: %s", got)
	}
}

// tried is Post for goroutines, which cannot end the test; it returns 0 on failure.
func tried(t *testing.T, s *apptest.Server, path string, in, out any) int {
	body, err := json.Marshal(in)
	if err != nil {
		t.Error(err)
		return 0
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+s.APIKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && out != nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		t.Errorf("%s answers %s: %v", path, res.Status, err)
		return 0
	}
	return res.StatusCode
}

// After a reset in the middle of work, nothing old is left, and the new sandbox works.
func TestSandboxReset_DuringWork(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august", "nuki"), apptest.WithLocks(3), apptest.WithSpeed(20))
	before := devicesOf(t, s, s.APIKey, "/devices/list", params{})
	for _, device := range before[:2] {
		s.Post(t, "/access_codes/create", params{"device_id": device, "sync": true}, nil)
	}
	var hook api.WebhookResponse
	s.Post(t, "/webhooks/create", params{"url": "https://example.com/hook"}, &hook)
	var d api.DeviceResponse
	s.Post(t, "/devices/get", params{"device_id": before[0]}, &d)
	person := session(t, s, params{"connected_account_ids": []string{d.Device.ConnectedAccountID}})
	s.Post(t, "/user_identities/create", params{"full_name": "Jane"}, nil)

	var working sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop); working.Wait() })
	defer end()
	for _, device := range before { // codes are created and deleted on every lock
		working.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var made api.AccessCodeCreatedResponse
				for _, status := range []int{
					tried(t, s, "/access_codes/create", params{"device_id": device}, &made),
					tried(t, s, "/locks/unlock_door", params{"device_id": device}, nil),
					tried(t, s, "/access_codes/delete", params{"access_code_id": made.AccessCode.AccessCodeID}, nil),
				} {
					if status == 0 {
						return
					}
					if status >= 500 && status != http.StatusServiceUnavailable { // waited for a lock for too long
						t.Errorf("a request in the middle of a reset: %d", status)
					}
				}
			}
		})
	}
	var a api.ActionAttemptResponse
	for range 3 {
		if status := s.Post(
			t,
			"/workspaces/reset_sandbox",
			params{},
			&a,
		); status != http.StatusOK ||
			a.ActionAttempt.ActionType != "RESET_SANDBOX_WORKSPACE" {
			t.Fatalf("reset: %d %+v", status, a.ActionAttempt)
		}
	}
	ended := await(t, s, a.ActionAttempt)
	end()
	if result, _ := ended.Result.(map[string]any); ended.Status != api.ActionAttemptStatusSuccess || result == nil ||
		len(result) != 0 {
		t.Errorf("the attempt: %+v", ended)
	}
	after := devicesOf(t, s, s.APIKey, "/devices/list", params{})
	if len(after) != len(before) {
		t.Errorf("%d locks, want %d", len(after), len(before))
	}
	for _, id := range after {
		if slices.Contains(before, id) {
			t.Errorf("device %s still exists", id)
		}
	}
	if got := refused(t, s, person.Token, "/devices/list", params{}); got != "401 client_session_not_found" {
		t.Errorf("the client session: %s", got)
	}
	var hooks api.WebhooksResponse
	if s.Post(
		t,
		"/webhooks/list",
		params{},
		&hooks,
	); len(hooks.Webhooks) != 1 ||
		hooks.Webhooks[0].Secret != hook.Webhook.Secret {
		t.Errorf("webhooks: %+v", hooks.Webhooks)
	}
	// The new locks have only their factory codes, and they work.
	apptest.Until(
		t,
		"the codes of the new lock are read",
		func() bool { return len(s.UnmanagedCodes(t, after[0])) == 3 },
	)
	var made api.AccessCodeCreatedResponse
	if status := s.Post(
		t,
		"/access_codes/create",
		params{"device_id": after[0], "sync": true},
		&made,
	); status != http.StatusOK ||
		made.AccessCode.Status != "set" {
		t.Errorf("a code on a new lock: %d %s", status, made.AccessCode.Status)
	}
	var list api.EventsResponse
	s.Post(t, "/events/list", params{"since": "2020-01-01"}, &list)
	for _, e := range list.Events {
		if id, _ := e.AdditionalProperties["device_id"].(string); slices.Contains(before, id) {
			t.Errorf("an event from before, at %s: %s", e.CreatedAt.Format(time.StampMilli), e.EventType)
		}
	}
	if len(list.Events) == 0 {
		t.Error("no event is about the new device")
	}
}
