package spec_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A publishable key is public. Sessions without access that it creates are limited, and the limit affects no other
// client.
func TestClientSession_LimitOfPublicSessions(t *testing.T) {
	t.Parallel()
	const most = 4
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.UnclaimedSessions = most }),
	)
	account, device := s.Connect(t, "nuki")
	public, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.PublishableKey, WorkspaceIDs: []uuid.UUID{uuid.MustParse(s.WorkspaceID)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	send := func(path, person string, out any) *http.Response {
		return s.Send(
			t,
			http.MethodPost,
			path,
			http.Header{"Seam-Publishable-Key": {public}},
			fmt.Sprintf(`{"user_identifier_key":%q}`, person),
			out,
		)
	}
	another := func() int {
		made++
		return send("/client_sessions/create", fmt.Sprint("visitor ", made), nil).StatusCode
	}
	full := func(when string) {
		t.Helper()
		var f failure
		if res := send(
			"/client_sessions/get_or_create",
			"one too many",
			&f,
		); res.StatusCode != http.StatusTooManyRequests || f.Error.Type != "too_many_requests" ||
			res.Header.Get("Retry-After") == "" ||
			!strings.Contains(f.Error.Message, "/client_sessions/delete") {
			t.Errorf("%s: %s %+v", when, res.Status, f)
		}
	}
	for i := range most {
		if status := another(); status != http.StatusOK {
			t.Fatalf("session %d: %d", i, status)
		}
	}
	full("as many as there may be")
	var known api.ClientSessionResponse
	if res := send("/client_sessions/get_or_create", "visitor 1", &known); res.StatusCode != http.StatusOK {
		t.Errorf("an end user with a session: %s", res.Status)
	}
	for range most {
		session(t, s, params{}) // with an API key
	}
	granted := params{
		"client_session_id":     known.ClientSession.ClientSessionID,
		"connected_account_ids": []string{account},
	}
	if status := s.Post(t, "/client_sessions/grant_access", granted, nil); status != http.StatusOK {
		t.Fatalf("grant access: %d", status)
	}
	apptest.Until(t, "sessions with access do not count", func() bool { return another() == http.StatusOK })
	full("one in place of that which reaches something")
	if got := devicesOf(t, s, known.ClientSession.Token, "/devices/list", params{}); len(got) != 1 || got[0] != device {
		t.Errorf("that which reaches something sees %v", got)
	}
	var last api.ClientSessionResponse
	send("/client_sessions/get_or_create", "visitor 2", &last)
	if status := s.Post(
		t,
		"/client_sessions/revoke",
		params{"client_session_id": last.ClientSession.ClientSessionID},
		nil,
	); status != http.StatusOK {
		t.Fatalf("revoke: %d", status)
	}
	apptest.Until(t, "ended sessions do not count", func() bool { return another() == http.StatusOK })
	full("one in place of that which has ended")
	backend := session(t, s, params{})
	s.Exec(t, "update client_sessions set created_at = created_at - interval '1 hour'")
	apptest.Until(t, "sessions unused for an hour make room", func() bool { return another() == http.StatusOK })
	if got := devicesOf(t, s, known.ClientSession.Token, "/devices/list", params{}); len(got) != 1 || got[0] != device {
		t.Errorf("then that which reaches something sees %v", got)
	}
	devicesOf(t, s, backend.Token, "/devices/list", params{}) // a session created with an API key stays
}
