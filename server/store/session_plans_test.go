package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Listing a page of client sessions and counting unclaimed ones read only the rows they need.
func TestClientSessionsAreFoundInIndexes(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	if _, err := db.Pool.Exec(t.Context(), `
		insert into workspaces (workspace_id, name, is_sandbox) select gen_random_uuid(), 'w', true from generate_series(1, 20);
		insert into client_sessions (client_session_id, workspace_id, token_hash, token_sealed, user_identifier_key, expires_at, is_unclaimed, created_at)
			select gen_random_uuid(), workspace_id, sha256((workspace_id::text || i)::bytea), '', 'k' || i, now() + interval '1 year', i % 10 = 0, now() - i * interval '1 minute'
			from workspaces, generate_series(1, 2000) i;
		insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
			select gen_random_uuid(), workspace_id, 'sandbox', '', '', '' from workspaces, generate_series(1, 5);
		insert into client_session_accounts select distinct on (client_session_id) client_session_id, connected_account_id from client_sessions join connected_accounts using (workspace_id)
			where is_unclaimed and user_identifier_key like '%00';
		insert into connect_webviews (connect_webview_id, workspace_id, manage_new_devices, wait_for_devices, expires_at, created_by_session, is_unclaimed)
			select gen_random_uuid(), workspace_id, true, false, now(), client_session_id, is_unclaimed from client_sessions;
		insert into idempotency_keys (idempotency_key_id, workspace_id, credential_id, operation, key_mac, request_mac, answer_sealed, is_public)
			select gen_random_uuid(), workspace_id, client_session_id, '', '', '', '', is_unclaimed from client_sessions;
		analyze`); err != nil {
		t.Fatal(err)
	}
	var workspace uuid.UUID
	var session uuid.UUID
	if err := db.Pool.QueryRow(t.Context(), "select workspace_id, client_session_id from client_sessions limit 1").
		Scan(&workspace, &session); err != nil {
		t.Fatal(err)
	}
	page := dbsqlc.ListClientSessionsParams{
		WorkspaceID: workspace,
		AfterAt:     time.Now().Add(-1900 * time.Minute),
		MaxRows:     501,
	}
	person := page
	person.UserIdentifierKey = new("k7")
	count := dbsqlc.CountUnclaimedSessionsParams{WorkspaceID: workspace, MaxRows: 10_000}
	for name, test := range map[string]struct {
		replan bool
		list   func(*dbsqlc.Queries) error
		wanted string
		not    string
	}{
		"a page":          {true, func(q *dbsqlc.Queries) error { _, err := q.ListClientSessions(t.Context(), page); return err }, "(ROW(created_at, client_session_id) > ROW(", "Sort"},
		"of a person":     {true, func(q *dbsqlc.Queries) error { _, err := q.ListClientSessions(t.Context(), person); return err }, "(user_identifier_key = 'k7'::text)", "Seq Scan"},
		"those unclaimed": {false, func(q *dbsqlc.Queries) error { _, err := q.CountUnclaimedSessions(t.Context(), count); return err }, "client_sessions_unclaimed", "Seq Scan on client_sessions "},
		"those that reach": {false, func(q *dbsqlc.Queries) error {
			n, err := q.ClaimSessionsWithScope(t.Context(), dbsqlc.ClaimSessionsWithScopeParams{WorkspaceID: workspace, MaxRows: 1000})
			if n != 20 && err == nil {
				t.Errorf("%d sessions are found to reach something", n)
			}
			return err
		}, "client_sessions_unclaimed", "Seq Scan on client_sessions "},
		"unclaimed webviews": {false, func(q *dbsqlc.Queries) error {
			_, err := q.CountUnclaimedWebviews(t.Context(), dbsqlc.CountUnclaimedWebviewsParams{WorkspaceID: workspace, MaxRows: 10_000})
			return err
		}, "connect_webviews_unclaimed", "Seq Scan"},
		"forgotten webviews": {false, func(q *dbsqlc.Queries) error {
			_, err := q.DropForgottenWebviews(t.Context(), dbsqlc.DropForgottenWebviewsParams{WorkspaceID: workspace, MaxRows: 100})
			return err
		}, "connect_webviews_unclaimed", "Seq Scan"},
		"webviews of a session": {false, func(q *dbsqlc.Queries) error {
			return q.DropUnusedWebviewsOfSession(t.Context(), dbsqlc.DropUnusedWebviewsOfSessionParams{CreatedBySession: session, Kept: 19})
		}, "connect_webviews_of_session", "Seq Scan"},
		"public keys": {false, func(q *dbsqlc.Queries) error {
			_, err := q.CountPublicIdempotencyKeys(t.Context(), dbsqlc.CountPublicIdempotencyKeysParams{WorkspaceID: workspace, MaxRows: 10_000})
			return err
		}, "idempotency_keys_public", "Seq Scan"},
		"the oldest public keys": {false, func(q *dbsqlc.Queries) error {
			_, err := q.DropOldestPublicIdempotencyKeys(t.Context(), dbsqlc.DropOldestPublicIdempotencyKeysParams{WorkspaceID: workspace, MaxRows: 100})
			return err
		}, "idempotency_keys_public", "Seq Scan"},
	} {
		if plan := explain(
			t,
			db,
			test.replan,
			test.list,
		); !strings.Contains(plan, test.wanted) ||
			strings.Contains(plan, test.not) {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
	if n, err := db.CountUnclaimedSessions(t.Context(), count); err != nil || n != 180 {
		t.Errorf("%d are left: %v", n, err)
	}
}
