package spec_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// later sends a request in the background.
func later(t *testing.T, s *apptest.Server, path string, in params) <-chan string {
	out := make(chan string, 1)
	go func() { out <- refused(t, s, s.APIKey, path, in) }()
	return out
}

func TestRace_SessionOfPersonBeingDeleted(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	jane := newPerson(t, s, params{"full_name": "Jane"})
	account := accounts(t, s, params{})[0].ConnectedAccountID
	gate := s.Gate(t, "before update of user_identity_id", "client_sessions", "true")
	made := make(chan api.ClientSessionResponse, 1)
	go func() {
		var out api.ClientSessionResponse
		s.Post(
			t,
			"/client_sessions/get_or_create",
			params{"user_identity_id": jane.UserIdentityID, "connected_account_ids": []string{account}},
			&out,
		)
		made <- out
	}()
	gate.Await(1, "update client_sessions")
	deleted := later(t, s, "/user_identities/delete", params{"user_identity_id": jane.UserIdentityID})
	gate.Await(1, "from user_identities")
	gate.Open()
	if got := <-deleted; got != "200 " {
		t.Fatal(got)
	}
	token := (<-made).ClientSession.Token
	if got := refused(t, s, token, "/devices/list", params{}); got != "401 client_session_not_found" {
		t.Errorf("the session of a person being deleted: %s", got)
	}
}

// Granting access to an object and deleting it are serialized.
func TestRace_GrantAndDelete(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		table, waits string
		grant, end   func(webview, session, account string) (string, params)
	}{
		"the webview": {"client_session_webviews", "from connect_webviews", func(webview, _, _ string) (string, params) {
			return "/client_sessions/create", params{"connect_webview_ids": []string{webview}}
		}, func(webview, _, _ string) (string, params) {
			return "/connect_webviews/delete", params{"connect_webview_id": webview}
		}},
		"the session": {
			"client_session_accounts",
			"delete from client_sessions",
			func(_, _, account string) (string, params) {
				return "/client_sessions/get_or_create", params{
					"user_identifier_key":   "jane",
					"connected_account_ids": []string{account},
				}
			},
			func(_, session, _ string) (string, params) {
				return "/client_sessions/delete", params{"client_session_id": session}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, apptest.WithProfiles("august"))
			account := accounts(t, s, params{})[0].ConnectedAccountID
			w, c := webview(
				t,
				s,
				nil,
			).ConnectWebviewID, session(
				t,
				s,
				params{"user_identifier_key": "jane"},
			).ClientSessionID
			gate := s.Gate(t, "before insert", test.table, "true")
			path, in := test.grant(w, c, account)
			granted := later(t, s, path, in)
			gate.Await(1, "insert into "+test.table)
			path, in = test.end(w, c, account)
			ended := later(t, s, path, in)
			gate.Await(1, test.waits)
			gate.Open()
			if got := <-granted; got != "200 " {
				t.Errorf("granted: %s", got)
			}
			if got := <-ended; got != "200 " {
				t.Errorf("ended: %s", got)
			}
			if got := refused(t, s, s.APIKey, path, in); !strings.HasPrefix(got, "404 ") {
				t.Errorf("ended again: %s", got)
			}
		})
	}
}

func TestRace_LoginDuringReset(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, nil)
	gate := s.Gate(t, "after insert", "connected_accounts", "new.user_identifier ->> 'email' = 'john@example.com'")
	loggedIn := make(chan int, 1)
	go func() { status, _, _ := enter(t, w.URL, "nuki", as("john")); loggedIn <- status }()
	gate.Await(1, "into connected_accounts")
	reset := later(t, s, "/workspaces/reset_sandbox", params{})
	gate.Await(1, "from workspaces")
	gate.Open()
	if status := <-loggedIn; status != http.StatusSeeOther {
		t.Errorf("the login: %d", status)
	}
	if got := <-reset; got != "200 " {
		t.Errorf("the reset: %s", got)
	}
	if list := accounts(t, s, params{}); len(list) != 1 || list[0].UserIdentifier.Email == "john@example.com" {
		t.Errorf("after the reset there are %+v", list)
	}
}

func TestRace_RequestDuringReset(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	var made api.AccessCodeCreatedResponse
	s.Post(t, "/access_codes/create", params{"device_id": device, "sync": true}, &made)
	gate := s.Gate(t, "before insert", "action_attempts", "new.device_id is null")
	reset := later(t, s, "/workspaces/reset_sandbox", params{})
	gate.Await(1, "into action_attempts")
	asked := []<-chan string{
		later(t, s, "/access_codes/delete", params{"access_code_id": made.AccessCode.AccessCodeID}),
		later(t, s, "/locks/unlock_door", params{"device_id": device}),
	}
	gate.Await(3, "")
	gate.Open()
	if got := <-reset; got != "200 " {
		t.Errorf("the reset: %s", got)
	}
	for _, one := range asked {
		if got := <-one; !strings.HasPrefix(got, "404 ") {
			t.Error(got)
		}
	}
}
