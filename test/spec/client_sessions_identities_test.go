package spec_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestClientSession_PersonKeepsAccountsOfDeletedSessions(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string][]string{
		"the page":                       {"page"},
		"the session":                    {"session"},
		"the page, and then the session": {"page", "session"},
		"the session, and then the page": {"session", "page"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Shared(t, apptest.WithProfiles("august"))
			jane := newPerson(t, s, params{"full_name": "Jane"})
			phone := session(t, s, params{"user_identity_ids": []string{jane.UserIdentityID}})
			w := page(t, s, phone.Token, params{"wait_for_device_creation": true})
			if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status >= 400 {
				t.Fatal(status)
			}
			browser := session(t, s, params{"user_identity_ids": []string{jane.UserIdentityID}})
			sees := func() int { return len(devicesOf(t, s, browser.Token, "/devices/list", params{})) }
			apptest.Until(t, "she sees her lock", func() bool { return sees() == 1 })
			for _, what := range ends {
				path, in := "/connect_webviews/delete", params{"connect_webview_id": w.ConnectWebviewID}
				if what == "session" {
					path, in = "/client_sessions/delete", params{"client_session_id": phone.ClientSessionID}
				}
				if got := refused(t, s, s.APIKey, path, in); got != "200 " {
					t.Fatalf("%s: %s", path, got)
				}
			}
			if n := sees(); n != 1 {
				t.Errorf("the other session of the same person sees %d locks", n)
			}
			if again := session(
				t,
				s,
				params{"user_identity_ids": []string{jane.UserIdentityID}},
			); again.DeviceCount != 1 {
				t.Errorf("a new session of the same person sees %d locks", again.DeviceCount)
			}
			if other := session(
				t,
				s,
				params{"user_identity_ids": []string{newPerson(t, s, params{"full_name": "Joe"}).UserIdentityID}},
			); other.DeviceCount != 0 {
				t.Errorf("another person's session sees %d locks", other.DeviceCount)
			}
		})
	}
}

func TestClientSession_PutOncePerPerson(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	jane := newPerson(t, s, params{"full_name": "Jane"})
	put := map[string]bool{}
	for range 2 {
		var out api.ClientSessionResponse
		s.Send(
			t,
			http.MethodPut,
			"/client_sessions/create",
			apptest.Bearer(s.APIKey),
			fmt.Sprintf(`{"user_identity_id":%q}`, jane.UserIdentityID),
			&out,
		)
		put[out.ClientSession.ClientSessionID] = true
	}
	if len(put) != 1 {
		t.Errorf("a repeated PUT creates %d sessions", len(put))
	}
}

// The database can store times after the year 9999, but JSON cannot represent them.
func TestClientSession_ExpiryOutOfRange(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	session(t, s, params{"user_identifier_key": "jane"})
	for _, at := range []string{"9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59"} {
		if got := refused(
			t,
			s,
			s.APIKey,
			"/client_sessions/create",
			params{"user_identifier_key": "joe", "expires_at": at},
		); got != "400 invalid_input" {
			t.Errorf("until %s: %s", at, got)
		}
	}
	if got := refused(
		t,
		s,
		s.APIKey,
		"/client_sessions/create",
		params{"user_identifier_key": "joe", "expires_at": "9999-12-31T23:59:59Z"},
	); got != "200 " {
		t.Errorf("for ever: %s", got)
	}
	if got := refused(t, s, s.APIKey, "/client_sessions/list", params{}); got != "200 " {
		t.Errorf("the list: %s", got)
	}
}
