package spec_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Whatever ends a credential or reduces its scope applies immediately at every instance: no instance caches valid
// credentials.
func TestRevocation_AppliesImmediatelyAtEveryInstance(t *testing.T) {
	t.Parallel()
	first, db := keyedServer(t)
	instances := []*apptest.Server{first, first.StartAnother(t), first.StartAnother(t)}
	account, device := first.Connect(t, "nuki")
	customers, theirs := first.Connect(t, "tedee")
	madeBy(
		t,
		first,
		"/connected_accounts/update",
		"",
		params{"connected_account_id": customers, "customer_key": "acme"},
	)
	revoke := func(c auth.Credential) func() {
		return func() {
			if err := first.App.Access.Auth.RevokeCredential(
				t.Context(),
				c.ID,
			); err != nil { // like `deviceaccess-server keys revoke`
				t.Fatal(err)
			}
		}
	}
	in := func(token string) http.Header {
		return http.Header{"Authorization": {"Bearer " + token}, "Seam-Workspace": {first.WorkspaceID}}
	}
	post := func(path string, in params) func() { return func() { madeBy(t, first, path, "", in) } }
	outlive := func(table, column, id string) func() { // expires without a wait
		return func() {
			if n := count(
				t,
				db,
				"with over as (update "+table+" set expires_at = now() where "+column+" = $1 returning 1) select count(*) from over",
				id,
			); n != 1 {
				t.Errorf("%d of %s are over", n, table)
			}
		}
	}
	reached := params{"connected_account_ids": []string{account}}
	issue := func(kind domain.CredentialKind) (string, auth.Credential) {
		return first.Credential(
			t,
			auth.NewCredential{Kind: kind, WorkspaceIDs: []uuid.UUID{uuid.MustParse(first.WorkspaceID)}},
		)
	}
	key, keyIs := issue(domain.APIKey)
	pat, patIs := issue(domain.PAT)
	console, consoleIs := issue(domain.ConsoleSession)
	public, publicIs := issue(domain.PublishableKey)
	old, oldIs := first.Credential(
		t,
		auth.NewCredential{
			Kind:         domain.APIKey,
			Lifetime:     time.Hour,
			WorkspaceIDs: []uuid.UUID{uuid.MustParse(first.WorkspaceID)},
		},
	)
	another, _ := issue(domain.PublishableKey)
	revoked, deleted, over, stays := session(
		t,
		first,
		reached,
	), session(
		t,
		first,
		reached,
	), session(
		t,
		first,
		reached,
	), session(
		t,
		first,
		reached,
	)
	customer := session(t, first, params{"customer_key": "acme"})
	opened, given := webview(t, first, params{}), webview(t, first, params{})
	sees := session(t, first, params{"connect_webview_ids": []string{given.ConnectWebviewID}})

	for _, c := range []struct {
		name   string
		header http.Header
		path   string
		in     params
		end    func()
		want   string
	}{
		{"an API key is revoked", in(key), "/devices/list", params{}, revoke(keyIs), "401 unauthorized"},
		{
			"the lifetime of an API key ends",
			in(old),
			"/devices/list",
			params{},
			outlive("credentials", "credential_id", oldIs.ID.String()),
			"401 unauthorized",
		},
		{"a PAT is revoked", in(pat), "/devices/list", params{}, revoke(patIs), "401 unauthorized"},
		{"a console session is revoked", in(console), "/devices/list", params{}, revoke(consoleIs), "401 unauthorized"},
		{
			"a publishable key is revoked",
			http.Header{"Seam-Publishable-Key": {public}},
			"/client_sessions/get_or_create",
			params{"user_identifier_key": "jane"},
			revoke(publicIs),
			"401 invalid_publishable_key",
		},
		{
			"publishable keys are switched off",
			http.Header{"Seam-Publishable-Key": {another}},
			"/client_sessions/get_or_create",
			params{"user_identifier_key": "jane"},
			post("/workspaces/update", params{"is_publishable_key_auth_enabled": false}),
			"401 invalid_publishable_key",
		},
		{
			"a client session is revoked",
			in(revoked.Token),
			"/devices/get",
			params{"device_id": device},
			post("/client_sessions/revoke", params{"client_session_id": revoked.ClientSessionID}),
			"401 client_session_revoked",
		},
		{
			"a client session is deleted",
			in(deleted.Token),
			"/devices/get",
			params{"device_id": device},
			post("/client_sessions/delete", params{"client_session_id": deleted.ClientSessionID}),
			"401 client_session_not_found",
		},
		{
			"a client session ends",
			in(over.Token),
			"/devices/get",
			params{"device_id": device},
			outlive("client_sessions", "client_session_id", over.ClientSessionID),
			"401 client_session_expired",
		},
		{
			"an account becomes another customer's",
			in(customer.Token),
			"/devices/get",
			params{"device_id": theirs},
			post("/connected_accounts/update", params{"connected_account_id": customers, "customer_key": "another"}),
			"404 device_not_found",
		},
		{
			"a webview is deleted",
			in(sees.Token),
			"/connect_webviews/get",
			params{"connect_webview_id": given.ConnectWebviewID},
			post("/connect_webviews/delete", params{"connect_webview_id": given.ConnectWebviewID}),
			"404 connect_webview_not_found",
		},
		{
			"an account is deleted",
			in(stays.Token),
			"/devices/get",
			params{"device_id": device},
			post("/connected_accounts/delete", params{"connected_account_id": account}),
			"404 device_not_found",
		},
		{
			"the workspace is suspended",
			in(first.APIKey),
			"/devices/list",
			params{},
			post("/workspaces/update", params{"is_suspended": true}),
			"403 workspace_suspended",
		},
	} {
		answers := func(want string) {
			t.Helper()
			for i, s := range instances {
				var f failure
				res := s.Send(t, http.MethodPost, c.path, c.header, string(mustJSON(t, c.in)), &f)
				if got := fmt.Sprint(res.StatusCode, " ", f.Error.Type); got != want {
					t.Errorf("%s: instance %d answers %s, want %s", c.name, i, got, want)
				}
			}
		}
		answers("200 ")
		c.end()
		answers(c.want)
	}
	// Pages of a suspended workspace, or of a deleted webview, are not served by any instance.
	for i, s := range instances {
		for name, page := range map[string]string{"suspended": opened.URL, "deleted": given.URL} {
			path := page[len(first.URL):]
			if res := s.Send(t, http.MethodGet, path, nil, "", nil); res.StatusCode != http.StatusNotFound {
				t.Errorf("instance %d shows the page that is %s: %s", i, name, res.Status)
			}
		}
	}
}

// A request that waits for its attempt gets no result if its credential is revoked, loses access, or its workspace is
// suspended, by any instance.
func TestRevocation_EndsWaitingRequests(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	other := s.StartAnother(t)
	device := s.Device(t, "august")
	var d struct {
		Device struct {
			Account string `json:"connected_account_id"`
		} `json:"device"`
	}
	s.Post(t, "/devices/get", params{"device_id": device}, &d)
	jane, joe := session(
		t,
		s,
		params{"connected_account_ids": []string{d.Device.Account}},
	), session(
		t,
		s,
		params{"connected_account_ids": []string{d.Device.Account}},
	)
	pat, is := s.Credential(t, auth.NewCredential{Kind: domain.PAT})
	g := s.Gate(t, "before update", "action_attempts", "new.status <> 'pending'")
	for i, c := range []struct {
		name   string
		header http.Header
		revoke func()
		want   string
	}{
		{"a client session", apptest.Bearer(jane.Token), func() {
			madeBy(t, other, "/client_sessions/revoke", "", params{"client_session_id": jane.ClientSessionID})
		}, "401 unauthorized"},
		{"a PAT", http.Header{"Authorization": {"Bearer " + pat}, "Seam-Workspace": {s.WorkspaceID}}, func() {
			if err := other.App.Access.Auth.RevokeCredential(t.Context(), is.ID); err != nil {
				t.Fatal(err)
			}
		}, "401 unauthorized"},
		{"a client session that reaches the lock no more", apptest.Bearer(joe.Token), func() {
			s.Exec(t, "delete from client_session_accounts where client_session_id = $1", joe.ClientSessionID)
		}, "404 device_not_found"},
		{"an API key of a workspace that is suspended", apptest.Bearer(s.APIKey), func() {
			madeBy(t, other, "/workspaces/update", "", params{"is_suspended": true})
		}, "403 workspace_suspended"},
	} {
		answered := make(chan string)
		go func() {
			var f failure
			res := s.Send(
				t,
				http.MethodPost,
				"/locks/lock_door",
				c.header,
				string(mustJSON(t, params{"device_id": device, "sync": true})),
				&f,
			)
			answered <- fmt.Sprint(res.StatusCode, " ", f.Error.Type)
		}()
		apptest.Until(t, c.name+" has its attempt", func() bool {
			var begun struct {
				ActionAttempts []api.ActionAttempt `json:"action_attempts"`
			}
			s.Post(t, "/action_attempts/list", params{"device_id": device}, &begun)
			return len(begun.ActionAttempts) == i+1
		})
		c.revoke()
		if got := <-answered; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	g.Open()
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
