package store_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// A reset workspace keeps only the tables named here. EraseWorkspace must delete the rows of a new table, unless they are
// deleted with those of another.
func TestErasureForgetsNoTable(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	erased := []string{
		"connected_accounts",
		"events",
		"action_attempts",
		"user_identities",
		"client_sessions",
		"connect_webviews",
		"idempotency_keys",
	} // by EraseWorkspace
	kept := []string{
		"workspaces",
		"credential_workspaces",
		"webhooks",
		"audit_log",
	} // the last tells who has reset it
	rows, err := db.Pool.Query(t.Context(), `
		with recursive gone as (
			select unnest($1::text[])::regclass::oid as id
			union
			select c.conrelid from pg_constraint c join gone on c.confrelid = gone.id where c.contype = 'f' and c.confdeltype = 'c'
		)
		select t.relname from pg_class t join pg_attribute a on a.attrelid = t.oid
		where t.relkind in ('r', 'p') and not t.relispartition and t.relnamespace = current_schema()::regnamespace and a.attname = 'workspace_id' and t.oid not in (select id from gone)`, erased)
	if err != nil {
		t.Fatal(err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range left {
		if !slices.Contains(kept, table) {
			t.Errorf("the rows of %s outlive the reset of their workspace", table)
		}
	}
	if len(left) != len(kept) {
		t.Errorf("kept are %v, want %v", left, kept)
	}
}
