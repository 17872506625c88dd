package spec_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A client that reads a long list slowly gets nothing that was read from the database after its credential ended or
// lost access. The response is visibly incomplete.
func TestRevocation_EndsLongLists(t *testing.T) {
	t.Parallel()
	s, db := keyedServer(t)
	account, empty := uuid.New(), uuid.New()
	for _, id := range []uuid.UUID{account, empty} {
		run(
			t,
			db,
			`insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed, customer_key, due_at)
			values ($1, $2, 'sandbox', '', '', '', 'acme', null)`,
			id,
			s.WorkspaceID,
		)
	}
	const locks = 3000 // a thousand are more than an unread connection buffers
	run(
		t,
		db,
		`insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online,
			capabilities, flags, is_managed, due_at)
		select gen_random_uuid(), $1, $2, i::text, 'august_lock', '', '', '', '', repeat('x', 500), true, '{}', '{}', true, null from generate_series(1, $3) i`,
		s.WorkspaceID,
		account,
		locks,
	)
	key, keyIs := s.Credential(
		t,
		auth.NewCredential{Kind: domain.APIKey, WorkspaceIDs: []uuid.UUID{uuid.MustParse(s.WorkspaceID)}},
	)
	all := params{"connected_account_ids": []string{account.String(), empty.String()}}
	revoked, over, another, stays := session(t, s, all), session(t, s, all), session(t, s, all), session(t, s, all)
	less := session(t, s, params{"customer_key": "acme"})
	// In another transaction: a client with an unread response waits with its next request.
	ends := func(statement string, args ...any) func() { return func() { run(t, db, statement, args...) } }
	revoke := func(c api.ClientSession) func() {
		return ends("update client_sessions set revoked_at = now() where client_session_id = $1", c.ClientSessionID)
	}
	for _, c := range []struct {
		name, token string
		end         func()
		whole       bool
	}{
		{"nothing happens", stays.Token, func() {}, true},
		{"another session is revoked", stays.Token, revoke(another), true},
		{"the session is revoked", revoked.Token, revoke(revoked), false},
		{
			"the session ends",
			over.Token,
			ends("update client_sessions set expires_at = now() where client_session_id = $1", over.ClientSessionID),
			false,
		},
		{"an account becomes another customer's", less.Token, ends("update connected_accounts set customer_key = 'else' "+
			"where connected_account_id = $1", empty), false},
		{"the key is revoked", key, func() {
			if err := s.App.Access.Auth.RevokeCredential(t.Context(), keyIs.ID); err != nil {
				t.Fatal(err)
			}
		}, false},
		{
			"the workspace is suspended",
			stays.Token,
			ends("update workspaces set is_suspended = true where workspace_id = $1", s.WorkspaceID),
			false,
		},
	} {
		text, err := readAfter(t, s, "/locks/list", c.token, c.end)
		if got := strings.Count(text, `"device_id"`); (err == nil) != c.whole || c.whole && got != 2*locks {
			t.Errorf("%s: %d locks are read, %v", c.name, got, err)
		}
	}
}

// readAfter reads a response to its end after something has happened.
func readAfter(t *testing.T, s *apptest.Server, path, token string, happens func()) (string, error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{}} // a connection of its own
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = apptest.Bearer(token)
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("answered %s", res.Status)
	}
	happens()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}
