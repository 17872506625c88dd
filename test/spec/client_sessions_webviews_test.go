package spec_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// page creates a webview as a client session.
func page(t *testing.T, s *apptest.Server, token string, in params) api.ConnectWebview {
	t.Helper()
	var out api.ConnectWebviewResponse
	if status := s.PostAs(t, token, "/connect_webviews/create", in, &out); status != http.StatusOK {
		t.Fatalf("create a webview: %d", status)
	}
	return out.ConnectWebview
}

func pagesOf(t *testing.T, s *apptest.Server, token string, in params) (ids []string) {
	t.Helper()
	var out api.ConnectWebviewsResponse
	if status := s.PostAs(t, token, "/connect_webviews/list", in, &out); status != http.StatusOK {
		t.Fatalf("list the webviews: %d", status)
	}
	for _, w := range out.ConnectWebviews {
		ids = append(ids, w.ConnectWebviewID)
	}
	return ids
}

// An end user's session gets access to the accounts that the user connects. Other sessions do not.
func TestClientSession_GetsConnectedAccounts(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	var person api.UserIdentityResponse
	s.Post(t, "/user_identities/create", params{"full_name": "Jane"}, &person)
	identity := person.UserIdentity.UserIdentityID
	jane := session(t, s, params{"user_identifier_key": "jane", "user_identity_id": identity})
	joe := session(t, s, params{"user_identifier_key": "joe"})
	if jane.UserIdentityID != identity || !slices.Equal(jane.UserIdentityIds, []string{identity}) {
		t.Errorf("whose it is: %+v", jane)
	}
	w := page(t, s, jane.Token, params{"wait_for_device_creation": true})
	other := webview(t, s, params{})
	for who, c := range map[string]struct {
		token string
		in    params
		want  []string
	}{
		"jane": {jane.Token, params{}, []string{w.ConnectWebviewID}}, "joe": {joe.Token, params{}, nil},
		"the workspace":          {s.APIKey, params{}, []string{w.ConnectWebviewID, other.ConnectWebviewID}},
		"the workspace, of jane": {s.APIKey, params{"user_identifier_key": "jane"}, []string{w.ConnectWebviewID}},
		"the workspace, of none": {s.APIKey, params{"user_identifier_key": "unknown"}, nil},
	} {
		if got := pagesOf(t, s, c.token, c.in); !slices.Equal(got, c.want) {
			t.Errorf("%s sees %v, want %v", who, got, c.want)
		}
	}
	for _, token := range []string{joe.Token, session(t, s, params{"customer_key": "acme"}).Token} {
		if got := refused(
			t,
			s,
			token,
			"/connect_webviews/get",
			params{"connect_webview_id": w.ConnectWebviewID},
		); got != "404 connect_webview_not_found" {
			t.Errorf("another's webview: %s", got)
		}
	}
	if got := refused(
		t,
		s,
		jane.Token,
		"/connect_webviews/create",
		params{"customer_key": "acme"},
	); got != "400 invalid_input" {
		t.Errorf("for another customer: %s", got)
	}
	if got := refused(
		t,
		s,
		jane.Token,
		"/connect_webviews/delete",
		params{"connect_webview_id": w.ConnectWebviewID},
	); got != "403 forbidden" {
		t.Errorf("delete: %s", got)
	}
	if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status >= 400 {
		t.Fatalf("log in: %d", status)
	}
	var account string
	apptest.Until(t, "the account is connected", func() bool {
		var now api.ConnectWebviewResponse
		s.PostAs(t, jane.Token, "/connect_webviews/get", params{"connect_webview_id": w.ConnectWebviewID}, &now)
		if now.ConnectWebview.LoginSuccessful {
			account = *now.ConnectWebview.ConnectedAccountID
		}
		return account != ""
	})
	mine := devicesOf(t, s, jane.Token, "/devices/list", params{})
	if len(mine) == 0 || slices.Contains(mine, s.Device(t, "august")) {
		t.Errorf("jane sees %v", mine)
	}
	if got := devicesOf(t, s, joe.Token, "/devices/list", params{}); got != nil {
		t.Errorf("joe sees %v", got)
	}
	// Another session of the same person has access, too, and so has a session with the webview.
	again := session(t, s, params{"user_identity_ids": []string{identity}})
	given := session(t, s, params{"connect_webview_ids": []string{w.ConnectWebviewID}})
	for name, c := range map[string]api.ClientSession{"of the same identity": again, "with the webview": given} {
		if got := devicesOf(
			t,
			s,
			c.Token,
			"/devices/list",
			params{},
		); !slices.Equal(got, mine) || !slices.Equal(c.ConnectedAccountIds, []string{account}) ||
			!slices.Equal(c.ConnectWebviewIds, []string{w.ConnectWebviewID}) ||
			c.DeviceCount != len(mine) {
			t.Errorf("%s: sees %v, and is %+v", name, got, c)
		}
	}
	var same api.ClientSessionResponse
	s.Post(t, "/client_sessions/get_or_create", params{"user_identity_id": identity}, &same)
	if same.ClientSession.ClientSessionID != again.ClientSessionID {
		t.Errorf("asked for by the identity: %s, want %s", same.ClientSession.ClientSessionID, again.ClientSessionID)
	}
	var list api.ClientSessionsResponse
	if s.Post(t, "/client_sessions/list", params{"user_identity_id": identity}, &list); len(list.ClientSessions) != 2 {
		t.Errorf("%d sessions of the identity", len(list.ClientSessions))
	}
	// Deleting the webview does not remove the access.
	s.Post(t, "/connect_webviews/delete", params{"connect_webview_id": w.ConnectWebviewID}, nil)
	if got := devicesOf(t, s, jane.Token, "/devices/list", params{}); !slices.Equal(got, mine) {
		t.Errorf("without the webview jane sees %v", got)
	}
	for name, in := range map[string]params{
		"404 user_identity_not_found":   {"user_identity_id": uuid.NewString()},
		"404 connect_webview_not_found": {"connect_webview_ids": []string{w.ConnectWebviewID}},
	} {
		if got := refused(t, s, s.APIKey, "/client_sessions/create", in); got != name {
			t.Errorf("%v: %s", in, got)
		}
	}
	s.Post(t, "/user_identities/create", params{"full_name": "Joe"}, &person)
	if got := refused(
		t,
		s,
		s.APIKey,
		"/client_sessions/grant_access",
		params{"client_session_id": jane.ClientSessionID, "user_identity_id": person.UserIdentity.UserIdentityID},
	); got != "400 invalid_input" {
		t.Errorf("jane's session becomes joe's: %s", got)
	}
}
