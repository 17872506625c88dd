package spec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// saidTo returns a response without the id of its request.
func saidTo(t *testing.T, s *apptest.Server, token, path string, in params) string {
	t.Helper()
	var out params
	status := s.PostAs(t, token, path, in, &out)
	if failed, ok := out["error"].(params); ok {
		delete(failed, "request_id")
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(status, " ", string(text))
}

// pendingOn returns the number of pending attempts of a device.
func pendingOn(t *testing.T, s *apptest.Server, device string) (n int) {
	t.Helper()
	var begun struct {
		ActionAttempts []api.ActionAttempt `json:"action_attempts"`
	}
	s.Post(t, "/action_attempts/list", params{"device_id": device}, &begun)
	for _, a := range begun.ActionAttempts {
		if a.Status == "pending" {
			n++
		}
	}
	return n
}

// The response of a waiting request depends on the scope at its end: objects that have left the scope are answered like
// absent ones, whatever happened to them.
func TestScope_RecheckedAfterWait(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	other := s.StartAnother(t)
	const before, after = "246813", "975318"
	without := strings.NewReplacer(before, "(the PIN)", after, "(the new PIN)")
	type lost struct {
		name, account, device, token string
		end                          func()
		requests                     map[string]params // waiting requests, by path
	}
	begin := func(name, profile string, in func(account string) (string, func())) *lost {
		l := &lost{name: name}
		l.account, l.device = s.Connect(t, profile)
		l.token, l.end = in(l.account)
		code := func(n int) string {
			made := madeBy(
				t,
				s,
				"/access_codes/create",
				"access_code",
				params{
					"device_id": l.device,
					"name":      fmt.Sprint("Old ", n),
					"code":      fmt.Sprint(135710 + n),
					"sync":      true,
				},
			)
			return made["access_code_id"].(string)
		}
		found := func(n int) string {
			made := madeBy(t, s, "/access_codes/simulate/create_unmanaged_access_code", "access_code",
				params{"device_id": l.device, "name": fmt.Sprint("Theirs ", n), "code": fmt.Sprint(864210 + n)})
			return made["access_code_id"].(string)
		}
		l.requests = map[string]params{
			"/access_codes/create":                       {"device_id": l.device, "name": "Guest", "code": before},
			"/access_codes/update":                       {"access_code_id": code(1), "name": "Renamed"},
			"/access_codes/delete":                       {"access_code_id": code(2)},
			"/access_codes/unmanaged/convert_to_managed": {"access_code_id": found(1)},
			"/access_codes/unmanaged/update":             {"access_code_id": found(2), "is_managed": true},
			"/access_codes/unmanaged/delete":             {"access_code_id": found(3)},
		}
		madeBy(t, s, "/devices/simulate/disconnect", "", params{"device_id": l.device})
		return l
	}
	granted := func(end func(account, session string)) func(string) (string, func()) {
		return func(account string) (string, func()) {
			jane := session(t, s, params{"connected_account_ids": []string{account}})
			return jane.Token, func() { end(account, jane.ClientSessionID) }
		}
	}
	for _, l := range []*lost{
		begin("an account becomes another customer's", "nuki", func(account string) (string, func()) {
			madeBy(t, s, "/connected_accounts/update", "", params{"connected_account_id": account, "customer_key": "acme"})
			return session(t, s, params{"customer_key": "acme"}).Token, func() {
				madeBy(t, other, "/connected_accounts/update", "", params{
					"connected_account_id": account,
					"customer_key":         "another",
				})
			}
		}),
		begin("a grant is taken away", "nuki", granted(func(account, session string) {
			s.Exec(t, "delete from client_session_accounts where client_session_id = $1 and connected_account_id = $2", session, account)
		})),
		begin("an account is deleted", "nuki", granted(func(account, _ string) {
			madeBy(t, other, "/connected_accounts/delete", "", params{"connected_account_id": account})
		})),
		begin("the access to a device ends", "nuki", func(account string) (string, func()) {
			lock := params{
				"user_identity_id": newPerson(t, s, params{}).UserIdentityID,
				"device_id":        devicesOf(t, s, s.APIKey, "/devices/list", params{"connected_account_id": account})[0],
			}
			madeBy(t, s, "/user_identities/grant_access_to_device", "", lock)
			jane := session(t, s, params{"user_identity_id": lock["user_identity_id"]})
			return jane.Token, func() { madeBy(t, other, "/user_identities/revoke_access_to_device", "", lock) }
		}),
		begin("the workspace is suspended", "nuki", func(string) (string, func()) {
			return s.APIKey, func() { madeBy(t, other, "/workspaces/update", "", params{"is_suspended": true}) }
		}),
	} {
		answers := map[string]chan string{}
		for path, in := range l.requests {
			in, answered := maps.Clone(in), make(chan string, 1)
			in["sync"], answers[path] = true, answered
			go func() { answered <- saidTo(t, s, l.token, path, in) }()
		}
		apptest.Until(t, l.name+": all wait", func() bool { return pendingOn(t, s, l.device) == len(l.requests) })
		l.end()
		var codes api.AccessCodesResponse
		s.Post(t, "/access_codes/list", params{"device_id": l.device}, &codes)
		if i := slices.IndexFunc(
			codes.AccessCodes,
			func(c api.AccessCode) bool { return c.Code != nil && *c.Code == before },
		); i >= 0 { // while there is one
			madeBy(
				t,
				s,
				"/access_codes/update",
				"",
				params{"access_code_id": codes.AccessCodes[i].AccessCodeID, "code": after},
			)
		}
		for path, in := range l.requests {
			got, want := <-answers[path], saidTo(t, s, l.token, path, in)
			if got != want || strings.HasPrefix(want, fmt.Sprint(http.StatusOK)) || strings.Contains(got, after) {
				t.Errorf(
					"%s: %s that waits is answered\n%s\nand a new one\n%s",
					l.name,
					path,
					without.Replace(got),
					want,
				)
			}
		}
	}
}

// This also holds for simulations, which wait until their effect is observed.
func TestScope_RecheckedAfterSimulation(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	account, device := s.Connect(t, "nuki")
	jane := session(t, s, params{"customer_key": "acme", "connected_account_ids": []string{account}})
	g := s.Gate(t, "before update", "devices", "new.online <> old.online")
	answered, of := make(chan string, 1), params{"device_id": device}
	go func() { answered <- saidTo(t, s, jane.Token, "/devices/simulate/disconnect", of) }()
	g.Await(1, "devices")
	s.Exec(t, "delete from client_session_accounts where client_session_id = $1", jane.ClientSessionID)
	g.Open()
	if got, want := <-answered, saidTo(
		t,
		s,
		jane.Token,
		"/devices/simulate/disconnect",
		of,
	); got != want ||
		!strings.HasPrefix(want, fmt.Sprint(http.StatusNotFound)) {
		t.Errorf("one that waits is answered\n%s\nand a new one\n%s", got, want)
	}
}
