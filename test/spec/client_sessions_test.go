package spec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

type params = map[string]any

// session makes a client session.
func session(t *testing.T, s *apptest.Server, in params) api.ClientSession {
	t.Helper()
	var out api.ClientSessionResponse
	if status := s.Post(t, "/client_sessions/create", in, &out); status != http.StatusOK || !out.Ok {
		t.Fatalf("create a client session: %d", status)
	}
	return out.ClientSession
}

// refused sends a request that must fail and returns the error.
func refused(t *testing.T, s *apptest.Server, token, path string, in params) string {
	t.Helper()
	var f failure
	status := s.PostAs(t, token, path, in, &f)
	return fmt.Sprintf("%d %s", status, f.Error.Type)
}

func devicesOf(t *testing.T, s *apptest.Server, token, path string, in params) (ids []string) {
	t.Helper()
	var out api.DevicesResponse
	if status := s.PostAs(t, token, path, in, &out); status != http.StatusOK {
		t.Fatalf("%s: %d", path, status)
	}
	for _, d := range out.Devices {
		ids = append(ids, d.DeviceID)
	}
	return ids
}

// An end user's session works with the locks of its account until it expires.
func TestClientSession_AccountScope(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account, device := s.Connect(t, "nuki")
	c := session(t, s, params{"user_identifier_key": "jane", "connected_account_ids": []string{account}})
	if c.Token == "" || c.WorkspaceID != s.WorkspaceID || *c.UserIdentifierKey != "jane" ||
		!slices.Equal(c.ConnectedAccountIds, []string{account}) ||
		c.DeviceCount != 1 ||
		len(c.ConnectWebviewIds) != 0 ||
		!c.ExpiresAt.After(time.Now().Add(300*24*time.Hour)) ||
		!strings.HasPrefix(c.Token, "seam_cst") {
		t.Errorf("created: %+v", c)
	}
	for _, path := range []string{"/devices/list", "/locks/list"} {
		if got := devicesOf(t, s, c.Token, path, params{}); !slices.Equal(got, []string{device}) {
			t.Errorf("%s: %v, want %s", path, got, device)
		}
	}
	var made api.AccessCodeCreatedResponse
	if status := s.PostAs(
		t,
		c.Token,
		"/access_codes/create",
		params{"device_id": device, "name": "Mine", "sync": true},
		&made,
	); status != http.StatusOK ||
		made.AccessCode.Status != "set" {
		t.Fatalf("create a code: %d %+v", status, made.AccessCode)
	}
	for path, in := range map[string]params{
		"/action_attempts/get":    {"action_attempt_id": made.ActionAttempt.ActionAttemptID},
		"/access_codes/get":       {"access_code_id": made.AccessCode.AccessCodeID},
		"/access_codes/update":    {"access_code_id": made.AccessCode.AccessCodeID, "name": "Ours", "sync": true},
		"/locks/unlock_door":      {"device_id": device, "sync": true},
		"/connected_accounts/get": {"connected_account_id": account},
		"/workspaces/get":         {},
	} {
		if status := s.PostAs(t, c.Token, path, in, nil); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	var list api.EventsResponse
	s.PostAs(t, c.Token, "/events/list", params{"since": "2020-01-01"}, &list)
	seen := false
	for _, e := range list.Events {
		if e.AdditionalProperties["connected_account_id"] != account {
			t.Errorf("an event of another account: %s", e.EventType)
		}
		seen = seen || e.EventType == "access_code.set_on_device"
	}
	if !seen {
		t.Errorf("of %d events none is about the code", len(list.Events))
	}
	var workspaces api.WorkspacesResponse
	if s.PostAs(
		t,
		c.Token,
		"/workspaces/list",
		params{},
		&workspaces,
	); len(workspaces.Workspaces) != 1 ||
		workspaces.Workspaces[0].WorkspaceID != s.WorkspaceID {
		t.Errorf("workspaces: %+v", workspaces)
	}
	// The JavaScript SDK sends this header in addition to Authorization.
	header := http.Header{"Client-Session-Token": {c.Token}}
	var self api.ClientSessionResponse
	if res := s.Send(
		t,
		http.MethodGet,
		"/client_sessions/get",
		header,
		"",
		&self,
	); res.StatusCode != http.StatusOK ||
		self.ClientSession.ClientSessionID != c.ClientSessionID {
		t.Errorf("itself: %s %+v", res.Status, self.ClientSession)
	}
	for path, in := range map[string]params{
		"/devices/get":            {"device_id": s.Device(t, "august")},
		"/locks/unlock_door":      {"device_id": s.Device(t, "august")},
		"/access_codes/create":    {"device_id": s.Device(t, "august")},
		"/connected_accounts/get": {"email": "jane@example.com"},
		"/client_sessions/get":    {"client_session_id": session(t, s, params{}).ClientSessionID},
	} {
		if got := refused(t, s, c.Token, path, in); !strings.HasPrefix(got, "404 ") {
			t.Errorf("%s of another account: %s", path, got)
		}
	}
	if got := refused(t, s, c.Token, "/webhooks/list", params{}); got != "403 forbidden" {
		t.Errorf("objects of the workspace: %s", got)
	}
	if status := s.PostAs(
		t,
		c.Token,
		"/access_codes/delete",
		params{"access_code_id": made.AccessCode.AccessCodeID, "sync": true},
		nil,
	); status != http.StatusOK {
		t.Errorf("delete the code: %d", status)
	}
}

// What a session may do is decided for each request.
func TestClientSession_ChangesApplyImmediately(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	mine := s.Device(t, "august")
	var d api.DeviceResponse
	s.Post(t, "/devices/get", params{"device_id": mine}, &d)
	c := session(t, s, params{"user_identifier_key": "jane"})
	if got := devicesOf(t, s, c.Token, "/devices/list", params{}); got != nil {
		t.Errorf("an empty session sees %v", got)
	}
	var out api.ClientSessionResponse
	if status := s.Post(
		t,
		"/client_sessions/grant_access",
		params{"user_identifier_key": "jane", "connected_account_ids": []string{d.Device.ConnectedAccountID}},
		&out,
	); status != http.StatusOK ||
		!slices.Equal(out.ClientSession.ConnectedAccountIds, []string{d.Device.ConnectedAccountID}) ||
		out.ClientSession.DeviceCount != 1 {
		t.Errorf("grant: %d %+v", status, out.ClientSession)
	}
	if got := devicesOf(t, s, c.Token, "/devices/list", params{}); !slices.Equal(got, []string{mine}) {
		t.Errorf("after the grant it sees %v", got)
	}
	if status := s.Post(
		t,
		"/client_sessions/get",
		params{"user_identifier_key": "jane"},
		&out,
	); status != http.StatusOK ||
		out.ClientSession.Token != c.Token {
		t.Errorf("by the end user: %d", status)
	}
	if status := s.Post(
		t,
		"/client_sessions/revoke",
		params{"client_session_id": c.ClientSessionID},
		nil,
	); status != http.StatusOK {
		t.Errorf("revoke: %d", status)
	}
	if got := refused(t, s, c.Token, "/devices/list", params{}); got != "401 client_session_revoked" {
		t.Errorf("revoked: %s", got)
	}
	again := session(t, s, params{"user_identifier_key": "jane"}) // who has no session now
	if status := s.Post(
		t,
		"/client_sessions/delete",
		params{"client_session_id": again.ClientSessionID},
		nil,
	); status != http.StatusOK {
		t.Errorf("delete: %d", status)
	}
	var told api.EventsResponse
	s.Post(t, "/events/list", params{"since": "2020-01-01", "event_type": "client_session.deleted"}, &told)
	if len(told.Events) != 1 || told.Events[0].AdditionalProperties["client_session_id"] != again.ClientSessionID {
		t.Errorf("events of the deletion: %+v", told.Events)
	}
	if got := refused(t, s, again.Token, "/devices/list", params{}); got != "401 client_session_not_found" {
		t.Errorf("deleted: %s", got)
	}
	if got := refused(
		t,
		s,
		s.APIKey,
		"/client_sessions/get",
		params{"client_session_id": again.ClientSessionID},
	); got != "404 client_session_not_found" {
		t.Errorf("read a deleted one: %s", got)
	}
	short := session(t, s, params{"expires_at": time.Now().Add(time.Hour)})
	expire(t, s, short)
	if got := refusedOr(t, s, short.Token); got != "401 client_session_expired" {
		t.Errorf("a session that is over: %s", got)
	}
	for name, in := range map[string]params{
		"in the past":       {"expires_at": "2020-01-01T00:00:00Z"},
		"a customer's id":   {"customer_id": "x"},
		"empty key":         {"user_identifier_key": ""},
		"no uuid":           {"connected_account_ids": []string{"x"}},
		"neither is named":  {},
		"two user identity": {"user_identity_ids": []string{uuid.NewString(), uuid.NewString()}},
	} {
		path := "/client_sessions/create"
		if len(in) == 0 {
			path = "/client_sessions/get"
		}
		if got := refused(t, s, s.APIKey, path, in); got != "400 invalid_input" {
			t.Errorf("%s: %s", name, got)
		}
	}
	var list api.ClientSessionsResponse
	s.Post(t, "/client_sessions/list", params{}, &list)
	if len(list.ClientSessions) != 0 {
		t.Errorf("%d sessions are listed that have ended", len(list.ClientSessions))
	}
}

// expire ends the lifetime of a session.
func expire(t *testing.T, s *apptest.Server, c api.ClientSession) {
	t.Helper()
	s.Exec(t, "update client_sessions set expires_at = now() where client_session_id = $1", c.ClientSessionID)
}

func refusedOr(t *testing.T, s *apptest.Server, token string) string {
	t.Helper()
	return refused(t, s, token, "/devices/list", params{})
}

// An end user has one session at a time, however many requests create one.
func TestClientSession_OnePerEndUser(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account, device := s.Connect(t, "nuki")
	results := make(chan api.ClientSession)
	for range 8 {
		go func() {
			var out api.ClientSessionResponse
			s.Post(t, "/client_sessions/get_or_create", params{"user_identifier_key": "jane"}, &out)
			results <- out.ClientSession
		}()
	}
	first := <-results
	for range 7 {
		if c := <-results; c.ClientSessionID != first.ClientSessionID || c.Token != first.Token {
			t.Errorf("another session: %s", c.ClientSessionID)
		}
	}
	if got := refused(
		t,
		s,
		s.APIKey,
		"/client_sessions/create",
		params{"user_identifier_key": "jane"},
	); got != "400 client_session_token_already_exists" {
		t.Errorf("create another: %s", got)
	}
	var put api.ClientSessionResponse
	if res := s.Send(
		t,
		http.MethodPut,
		"/client_sessions/create",
		apptest.Bearer(s.APIKey),
		`{"user_identifier_key":"jane"}`,
		&put,
	); res.StatusCode != http.StatusOK ||
		put.ClientSession.Token != first.Token {
		t.Errorf("PUT: %s", res.Status)
	}
	var more api.ClientSessionResponse
	s.Post(
		t,
		"/client_sessions/get_or_create",
		params{"user_identifier_key": "jane", "connected_account_ids": []string{account}},
		&more,
	)
	if more.ClientSession.ClientSessionID != first.ClientSessionID ||
		!slices.Equal(more.ClientSession.ConnectedAccountIds, []string{account}) {
		t.Errorf("with an account: %+v", more.ClientSession)
	}
	unknown := session(t, s, params{})
	for name, c := range map[string]struct {
		in   params
		want []string
	}{
		"all":                {params{}, []string{first.ClientSessionID, unknown.ClientSessionID}},
		"of jane":            {params{"user_identifier_key": "jane"}, []string{first.ClientSessionID}},
		"of an unknown user": {params{"without_user_identifier_key": true}, []string{unknown.ClientSessionID}},
		"one":                {params{"client_session_id": unknown.ClientSessionID}, []string{unknown.ClientSessionID}},
		"not one":            {params{"client_session_id": "x"}, nil},
		"no identity":        {params{"user_identity_id": uuid.NewString()}, nil},
		"no webview":         {params{"connect_webview_id": uuid.NewString()}, nil},
	} {
		var out api.ClientSessionsResponse
		s.Post(t, "/client_sessions/list", c.in, &out)
		var ids []string
		for _, one := range out.ClientSessions {
			ids = append(ids, one.ClientSessionID)
		}
		if !slices.Equal(ids, c.want) {
			t.Errorf("%s: %v, want %v", name, ids, c.want)
		}
	}
	for path, in := range map[string]params{
		"/devices/list": {"user_identifier_key": "jane"},
		"/locks/list":   {"user_identifier_key": "jane"},
	} {
		if got := devicesOf(t, s, s.APIKey, path, in); !slices.Equal(got, []string{device}) {
			t.Errorf("%s of jane: %v", path, got)
		}
	}
	if got := devicesOf(t, s, s.APIKey, "/devices/list", params{"user_identifier_key": "joe"}); got != nil {
		t.Errorf("devices without a session: %v", got)
	}
}

// A session that names another person gets the answer for an unknown person, even if both have the same scope. With a
// publishable key, knowing a user_identifier_key is enough to get that person's session.
func TestClientSession_HidesOtherPeople(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account, device := s.Connect(t, "nuki")
	s.Post(t, "/access_codes/create", params{"device_id": device, "name": "Guest"}, nil)
	both := []string{account}
	session(t, s, params{"user_identifier_key": "b0b-s3cret", "connected_account_ids": both})
	alice := session(t, s, params{"user_identifier_key": "alice", "connected_account_ids": both})
	asked := map[string]params{
		"/devices/list":                {},
		"/locks/list":                  {},
		"/devices/unmanaged/list":      {},
		"/connected_accounts/list":     {},
		"/connect_webviews/list":       {},
		"/access_codes/list":           {"device_id": device},
		"/access_codes/unmanaged/list": {"device_id": device},
	}
	customers := session(
		t,
		s,
		params{"customer_key": "c", "user_identifier_key": "carol", "connected_account_ids": both},
	)
	for path, in := range asked {
		answer := func(token, key string) string {
			in := maps.Clone(in)
			in["user_identifier_key"] = key
			var out json.RawMessage
			if status := s.PostAs(t, token, path, in, &out); status != http.StatusOK {
				return fmt.Sprint(status)
			}
			return string(out)
		}
		for _, token := range []string{alice.Token, customers.Token} {
			if bob, unknown := answer(token, "b0b-s3cret"), answer(token, "unknown"); bob != unknown {
				t.Errorf("%s answers about a person %.300s, and about an unknown one %.300s", path, bob, unknown)
			}
		}
	}
	if got := devicesOf(
		t,
		s,
		alice.Token,
		"/devices/list",
		params{"user_identifier_key": "alice"},
	); !slices.Equal(
		got,
		[]string{device},
	) {
		t.Errorf("of herself she sees %v", got)
	}
	if got := devicesOf(
		t,
		s,
		s.APIKey,
		"/devices/list",
		params{"user_identifier_key": "b0b-s3cret"},
	); !slices.Equal(
		got,
		[]string{device},
	) {
		t.Errorf("the workspace sees of him %v", got)
	}
}

// Codes with a common key share a PIN. A session must not learn the PIN of locks outside its scope through the key.
func TestClientSession_CommonCodeKeyIsScoped(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account, device := s.Connect(t, "august")
	s.Post(
		t,
		"/access_codes/create",
		params{"device_id": s.Device(t, "august"), "code": "7410", "common_code_key": "shared", "sync": true},
		nil,
	)
	c := session(t, s, params{"connected_account_ids": []string{account}})
	for _, key := range []string{"shared", "unowned"} { // the answers must be alike
		if got := refused(
			t,
			s,
			c.Token,
			"/access_codes/create",
			params{"device_id": device, "common_code_key": key, "code": "4711"},
		); got != "400 invalid_input" {
			t.Errorf("join %s: %s", key, got)
		}
	}
	if got := refused(
		t,
		s,
		c.Token,
		"/access_codes/update_multiple",
		params{"common_code_key": "shared", "name": "Taken over"},
	); got != "404 access_code_not_found" {
		t.Errorf("change it: %s", got)
	}
	if got := refused(
		t,
		s,
		c.Token,
		"/access_codes/create_multiple",
		params{"device_ids": []string{device, s.Device(t, "august")}},
	); got != "404 device_not_found" {
		t.Errorf("create on both: %s", got)
	}
	// A generated key cannot be guessed, and the session can keep using it.
	var made api.AccessCodesResponse
	if status := s.PostAs(
		t,
		c.Token,
		"/access_codes/create_multiple",
		params{"device_ids": []string{device}},
		&made,
	); status != http.StatusOK || len(made.AccessCodes) != 1 ||
		made.AccessCodes[0].CommonCodeKey == nil {
		t.Fatalf("a key of its own: %d", status)
	}
	if status := s.PostAs(
		t,
		c.Token,
		"/access_codes/update_multiple",
		params{"common_code_key": *made.AccessCodes[0].CommonCodeKey, "name": "Renamed"},
		nil,
	); status != http.StatusOK {
		t.Errorf("change the codes of it: %d", status)
	}
}

// Sessions can get access to objects of their workspace only.
func TestClientSession_NoForeignGrants(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	var d api.DeviceResponse
	s.Post(t, "/devices/get", params{"device_id": s.Device(t, "august")}, &d)
	other, err := s.App.Access.Accounts.CreateWorkspace(t.Context(), "Other", "", true)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{other.ID}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var own api.ClientSessionResponse
	s.PostAs(t, key, "/client_sessions/create", params{}, &own)
	accounts := []string{d.Device.ConnectedAccountID}
	for path, in := range map[string]params{
		"/client_sessions/create":        {"connected_account_ids": accounts},
		"/client_sessions/get_or_create": {"connected_account_ids": accounts},
		"/client_sessions/grant_access": {
			"connected_account_ids": accounts,
			"client_session_id":     own.ClientSession.ClientSessionID,
		},
	} {
		if got := refused(t, s, key, path, in); got != "404 connected_account_not_found" {
			t.Errorf("%s: %s", path, got)
		}
	}
	mine := session(t, s, params{"connected_account_ids": accounts})
	for _, path := range []string{
		"/client_sessions/grant_access",
		"/client_sessions/revoke",
		"/client_sessions/delete",
		"/client_sessions/get",
	} {
		if got := refused(
			t,
			s,
			key,
			path,
			params{"connected_account_ids": accounts, "client_session_id": mine.ClientSessionID},
		); got != "404 client_session_not_found" {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := devicesOf(t, s, mine.Token, "/devices/list", params{}); len(got) != 1 {
		t.Errorf("it was touched: %v", got)
	}
	customer := session(t, s, params{"customer_key": "a customer"})
	if got := devicesOf(t, s, customer.Token, "/devices/list", params{}); got != nil {
		t.Errorf("a customer without accounts sees %v", got)
	}
	s.Post(
		t,
		"/connected_accounts/update",
		params{"connected_account_id": accounts[0], "customer_key": "a customer"},
		nil,
	)
	if got := devicesOf(t, s, customer.Token, "/devices/list", params{}); len(got) != 1 {
		t.Errorf("a customer with an account sees %v", got)
	}
}
