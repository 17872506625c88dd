package spec_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A stored response is not replayed to a session whose scope no longer contains its objects.
func TestIdempotency_NoReplayOutOfScope(t *testing.T) {
	t.Parallel()
	one, db := keyedServer(t)
	two := one.StartAnother(t)
	account, device := one.Connect(t, "nuki")
	other, _ := one.Connect(t, "august")
	customer := func(account, key string) {
		t.Helper()
		if status := one.Post(
			t,
			"/connected_accounts/update",
			params{"connected_account_id": account, "customer_key": key},
			nil,
		); status != http.StatusOK {
			t.Fatalf("update the account: %d", status)
		}
	}
	customer(account, "c1")
	const path, key, pin = "/access_codes/create", "order 67", "739158"
	mine, keyed := session(
		t,
		one,
		params{"customer_key": "c1"},
	), fmt.Sprintf(
		`{"device_id":%q,"name":"Left","code":%q}`,
		device,
		pin,
	)
	first := sent(t, one, mine.Token, path, key, keyed)
	if first.status != http.StatusOK || !strings.Contains(first.body, pin) {
		t.Fatalf("%+v", first)
	}
	customer(account, "c2")
	for _, s := range []string{"nothing else in reach", "another in reach"} {
		a := sent(t, two, mine.Token, path, key, keyed)
		if a.kind(t) != "422 idempotency_key_reused" || strings.Contains(a.body, pin) ||
			!strings.Contains(a.body, "has lost access to") {
			t.Errorf("out of reach, %s: %+v", s, a)
		}
		customer(other, "c1")
	}
	customer(account, "c1") // the scope is larger now
	if again := sent(t, two, mine.Token, path, key, keyed); again.body != first.body || !again.replayed {
		t.Errorf("in reach again: %+v, want %+v", again, first)
	}
	// Keys from an earlier version have no scope.
	run(t, db, "update idempotency_keys set request_mac = substr(request_mac, 1, 16)")
	if a := sent(
		t,
		two,
		mine.Token,
		path,
		key,
		keyed,
	); a.kind(t) != "422 idempotency_key_reused" ||
		strings.Contains(a.body, pin) {
		t.Errorf("of a version before: %+v", a)
	}
	if n := codesNamed(t, one, db, "Left"); n != 1 {
		t.Errorf("%d codes", n)
	}
}

// A publishable key is public. An Idempotency-Key of one visitor does not block others.
func TestIdempotency_PublishableKeyVisitorsAreSeparate(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	public, _, err := s.App.Access.Auth.IssueCredential(
		t.Context(),
		auth.NewCredential{Kind: domain.PublishableKey, WorkspaceIDs: []uuid.UUID{uuid.MustParse(s.WorkspaceID)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Seam-Publishable-Key": {public}, "Idempotency-Key": {"signup-42"}}
	for _, path := range []string{"/client_sessions/create", "/client_sessions/get_or_create"} {
		tokens := map[string]bool{}
		for n, turnedAway := 0, false; !turnedAway; n++ { // one visitor repeats a key in a loop
			res := s.Send(t, http.MethodPost, path, header, `{"user_identifier_key":"unknown"}`, nil)
			if turnedAway = res.StatusCode == http.StatusTooManyRequests; n > 200 {
				t.Fatalf("%s is answered %d times", path, n)
			}
		}
		for _, person := range []string{"mallory", "jane", "joe"} {
			body, _ := json.Marshal(params{"user_identifier_key": path + person})
			var made, again api.ClientSessionResponse
			if res := s.Send(
				t,
				http.MethodPost,
				path,
				header,
				string(body),
				&made,
			); res.StatusCode != http.StatusOK ||
				*made.ClientSession.UserIdentifierKey != path+person {
				t.Errorf("%s of %s: %s %+v", path, person, res.Status, made)
			}
			if res := s.Send(
				t,
				http.MethodPost,
				path,
				header,
				string(body),
				&again,
			); res.Header.Get("Idempotency-Replayed") != "true" ||
				again.ClientSession.Token != made.ClientSession.Token {
				t.Errorf("%s of %s again: %s %+v", path, person, res.Status, again)
			}
			tokens[made.ClientSession.Token] = true
		}
		if len(tokens) != 3 {
			t.Errorf("%s: three have %d sessions", path, len(tokens))
		}
	}
}
