package spec_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// An account that the workspace assigns to another customer leaves the scope of the first one, however it was
// connected.
func TestScope_AccountOfAnotherCustomer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first func(person string) params                                                          // session of the first customer
		page  func(t *testing.T, s *apptest.Server, token string) api.ConnectWebview              // how the account is connected
		then  func(t *testing.T, s *apptest.Server, mine api.ClientSession, w api.ConnectWebview) // before the account is reassigned
	}{
		"on a page of the workspace": {
			page: func(t *testing.T, s *apptest.Server, _ string) api.ConnectWebview {
				return webview(t, s, params{"customer_key": "first"})
			},
		},
		"on a page of its own": {
			page: func(t *testing.T, s *apptest.Server, token string) api.ConnectWebview {
				return page(t, s, token, params{})
			},
		},
		"on a deleted page": {
			page: func(t *testing.T, s *apptest.Server, token string) api.ConnectWebview {
				return page(t, s, token, params{})
			},
			then: func(t *testing.T, s *apptest.Server, _ api.ClientSession, w api.ConnectWebview) {
				s.Post(t, "/connect_webviews/delete", params{"connect_webview_id": w.ConnectWebviewID}, nil)
			},
		},
		"by a person, on a deleted page": {
			first: func(person string) params {
				return params{"customer_key": "first", "user_identity_id": person}
			},
			page: func(t *testing.T, s *apptest.Server, token string) api.ConnectWebview {
				return page(t, s, token, params{})
			},
			then: func(t *testing.T, s *apptest.Server, _ api.ClientSession, w api.ConnectWebview) {
				s.Post(t, "/connect_webviews/delete", params{"connect_webview_id": w.ConnectWebviewID}, nil)
			},
		},
		"granted": {
			page: func(t *testing.T, s *apptest.Server, _ string) api.ConnectWebview {
				return webview(t, s, params{"customer_key": "first"})
			},
			then: func(t *testing.T, s *apptest.Server, mine api.ClientSession, _ api.ConnectWebview) {
				s.Post(t, "/client_sessions/grant_access", params{
					"client_session_id":     mine.ClientSessionID,
					"connected_account_ids": []string{accounts(t, s, params{"customer_key": "first"})[0].ConnectedAccountID},
				}, nil)
			},
		},
		"a device granted to a person": {
			first: func(person string) params {
				return params{"customer_key": "first", "user_identity_id": person}
			},
			page: func(t *testing.T, s *apptest.Server, _ string) api.ConnectWebview {
				return webview(t, s, params{"customer_key": "first"})
			},
			then: func(t *testing.T, s *apptest.Server, mine api.ClientSession, _ api.ConnectWebview) {
				madeBy(t, s, "/user_identities/grant_access_to_device", "", params{
					"user_identity_id": mine.UserIdentityID,
					"device_id":        devicesOf(t, s, mine.Token, "/devices/list", params{})[0],
				})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Shared(t, apptest.WithProfiles("august"))
			var person api.UserIdentityResponse
			s.Post(t, "/user_identities/create", params{"full_name": "Jane"}, &person)
			own := params{"customer_key": "first"}
			if c.first != nil {
				own = c.first(person.UserIdentity.UserIdentityID)
			}
			mine := session(t, s, own)
			w := c.page(t, s, mine.Token)
			if status, _, _ := enter(t, w.URL, "nuki", as("jane")); status >= 400 {
				t.Fatalf("log in: %d", status)
			}
			apptest.Until(
				t,
				"it sees the account that it has connected",
				func() bool { return len(devicesOf(t, s, mine.Token, "/devices/list", params{})) > 0 },
			)
			account := accounts(t, s, params{"customer_key": "first"})[0].ConnectedAccountID
			if c.then != nil {
				c.then(t, s, mine, w)
			}
			s.Post(
				t,
				"/connected_accounts/update",
				params{"connected_account_id": account, "customer_key": "first"},
				nil,
			)
			if got := devicesOf(t, s, mine.Token, "/devices/list", params{}); len(got) == 0 {
				t.Fatal("an account of the same customer has left the scope")
			}
			s.Post(
				t,
				"/connected_accounts/update",
				params{"connected_account_id": account, "customer_key": "second"},
				nil,
			)
			for who, token := range map[string]string{"the session": mine.Token, "a new one": session(t, s, own).Token} {
				if got := devicesOf(t, s, token, "/devices/list", params{}); got != nil {
					t.Errorf("%s of the first customer sees %v", who, got)
				}
				if got := refused(
					t,
					s,
					token,
					"/connected_accounts/delete",
					params{"connected_account_id": account},
				); got != "404 connected_account_not_found" {
					t.Errorf("%s of the first customer deletes it: %s", who, got)
				}
			}
			if got := devicesOf(
				t,
				s,
				session(t, s, params{"customer_key": "second"}).Token,
				"/devices/list",
				params{},
			); len(
				got,
			) == 0 {
				t.Error("the second customer does not see it")
			}
			// A new login proves ownership and gives access.
			again := page(t, s, mine.Token, params{})
			if status, _, _ := enter(t, again.URL, "nuki", as("jane")); status >= 400 {
				t.Fatalf("log in again: %d", status)
			}
			apptest.Until(
				t,
				"it sees the account after the new login",
				func() bool { return len(devicesOf(t, s, mine.Token, "/devices/list", params{})) > 0 },
			)
		})
	}
}
