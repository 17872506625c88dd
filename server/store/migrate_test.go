package store_test

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// atSchema30 is a database whose next migration locks tables that are in use.
func atSchema30(t *testing.T) (dsn string, plain *sql.DB) { return atSchema(t, 30) }

func atSchema(t *testing.T, version int64) (dsn string, plain *sql.DB) {
	t.Helper()
	dsn = storetest.New(t)
	plain, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close() })
	if _, err := plain.ExecContext(t.Context(), "drop schema public cascade; create schema public"); err != nil {
		t.Fatal(err)
	}
	steps, err := goose.NewProvider(goose.DialectPostgres, plain, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return dsn, plain
}

// someoneLocksAll waits until a migration waits for a table.
func someoneLocksAll(t *testing.T, plain *sql.DB) {
	t.Helper()
	testenv.Until(t, "a migration waits for the one who reads", func() bool {
		var waits bool
		if err := plain.QueryRowContext(t.Context(), `select exists (select from pg_locks where not granted and mode = 'AccessExclusiveLock'
			and database = (select oid from pg_database where datname = current_database()))`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
}

// A migration that waits for whoever reads for long, such as a dump, keeps no running server waiting, and is done in the end.
func TestMigrationThatWaitsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	dsn, plain := atSchema30(t)
	dump, err := plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Rollback()
	if _, err := dump.ExecContext(t.Context(), "select from events"); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() { migrated <- store.Migrate(t.Context(), dsn) }()
	someoneLocksAll(t, plain)
	// It has locked the workspaces by now, which each request reads.
	if _, err := plain.ExecContext(t.Context(), "set statement_timeout = '1min'; select from workspaces"); err != nil {
		t.Fatalf("while it waits: %v", err)
	}
	select {
	case err := <-migrated:
		t.Fatalf("it has ended while somebody still reads: %v", err)
	default:
	}
	if err := dump.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
}

// A server starts while a dump is under way, which holds all tables: where today has its partition there is nothing to wait for, and where
// it has none, events are kept among the rest until somebody can make one.
func TestNothingToMigrateWaitsForNobody(t *testing.T) {
	t.Parallel()
	for name, today := range map[string]bool{"today and the days after it have theirs": true, "today has none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.New(t)
			db := open(t, dsn)
			if _, _, err := db.DropPartitions(t.Context(), time.Now().Add(1000*store.Day)); err != nil {
				t.Fatal(err)
			}
			if today {
				if _, err := db.MakePartitions(t.Context(), time.Now(), 3*store.Day); err != nil { // as a server makes them that keeps events for two weeks
					t.Fatal(err)
				}
			}
			dump, err := db.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer dump.Rollback(context.WithoutCancel(t.Context()))
			if _, err := dump.Exec(t.Context(), "select from events_rest, deliveries_rest, delivery_attempts_rest"); err != nil {
				t.Fatal(err)
			}
			if err := store.Migrate(t.Context(), dsn); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server that is running has locked one table, and waits for another that a migration has locked, which waits for the first.
// The database ends one of the two. If it is the migration, that is done in the end.
func TestMigrationThatIsInTheWayOfAServerIsTriedAgain(t *testing.T) {
	t.Parallel()
	dsn, plain := atSchema30(t)
	change, err := plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer change.Rollback()
	if _, err := change.ExecContext(t.Context(), "set local deadlock_timeout = '1min'; select from webhooks"); err != nil { // the migration looks first
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() { migrated <- store.Migrate(t.Context(), dsn) }()
	someoneLocksAll(t, plain)
	if _, err := change.ExecContext(t.Context(), "set local statement_timeout = '1min'; select from workspaces"); err != nil {
		t.Fatalf("the server has waited in vain: %v", err)
	}
	if err := change.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
}

// An index of a table that may be large is made while others write: that waits for a transaction that has written, and the next one does not
// wait for it. Half an index, of a migration that was cut off, is made anew.
func TestIndexIsMadeWhileEntriesAreWritten(t *testing.T) {
	t.Parallel()
	const (
		firstPartition = "create table events_first partition of events for values from ('00000000-0000-0000-0000-000000000000') to ('70000000-0000-0000-0000-000000000000');"
		event          = "insert into events (event_id, workspace_id, event_type, payload) values ('10000000-0000-0000-0000-000000000000'::uuid, gen_random_uuid(), 'x', '{}')"
		joined         = `select bool_and(p.indisvalid and pg_get_indexdef(p.indexrelid) like '%created_at) WHERE (fanned_out_at IS NULL)') and bool_and(i.indisvalid) and count(*) filter (where p.indexrelid::regclass::text in ('events_outbox_of_accounts_events_first', 'events_outbox_of_accounts_events_rest')) = 2
			from pg_index i join pg_inherits h on h.inhparent = i.indexrelid join pg_index p on p.indexrelid = h.inhrelid where i.indexrelid = 'events_outbox_of_accounts'::regclass`
	)
	for name, c := range map[string]struct {
		schema             int64
		half, entry, whole string
	}{
		"a table": {37, "create index audit_log_of_workspace on audit_log (at)",
			"insert into audit_log (audit_id, actor_kind, operation, subject_kinds, subject_ids, outcome) values (gen_random_uuid(), 'api_key', '/x', '{}', '{}', 'done')",
			"select indisvalid and pg_get_indexdef(indexrelid) like '%(workspace_id, at, audit_id)' from pg_index where indexrelid = 'audit_log_of_workspace'::regclass"},
		"a table in partitions": {42, firstPartition + `
				create index events_outbox_of_accounts_events_first on events_first (created_at);
				update pg_index set indisvalid = false where indexrelid = 'events_outbox_of_accounts_events_first'::regclass`, event, joined},
		"a table in partitions, from the beginning": {42, firstPartition, event, joined},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, plain := atSchema(t, c.schema)
			if _, err := plain.ExecContext(t.Context(), c.half); err != nil {
				t.Fatal(err)
			}
			change, err := plain.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer change.Rollback()
			if _, err := change.ExecContext(t.Context(), c.entry); err != nil {
				t.Fatal(err)
			}
			migrated := make(chan error, 1)
			go func() { migrated <- store.Migrate(t.Context(), dsn) }()
			testenv.Until(t, "the migration waits for the one who has written", func() bool {
				var waits bool
				if err := plain.QueryRowContext(t.Context(), `select exists (select from pg_locks l join pg_stat_activity a using (pid)
					where not l.granted and a.datname = current_database())`).Scan(&waits); err != nil {
					t.Fatal(err)
				}
				return waits
			})
			if _, err := plain.ExecContext(t.Context(), "set lock_timeout = '1min'; "+strings.Replace(c.entry, "'1000", "'2000", 1)); err != nil {
				t.Fatalf("while the index is made: %v", err)
			}
			if err := change.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-migrated; err != nil {
				t.Fatal(err)
			}
			var whole bool
			if err := plain.QueryRowContext(t.Context(), c.whole).Scan(&whole); err != nil || !whole {
				t.Errorf("the index is whole: %t, %v", whole, err)
			}
		})
	}
}

// A server of the version before that is started again in the middle of an upgrade finds a migration that it does not know, and
// lets it be.
// Who has made a workspace is known also of those that were made before it was noted; going back leaves no webhook waiting.
func TestMakersOfWorkspacesThatThereAreAreFound(t *testing.T) {
	t.Parallel()
	dsn, plain := atSchema(t, 51)
	const workspace, other, token, given = "10000000-0000-0000-0000-000000000000", "20000000-0000-0000-0000-000000000000", "30000000-0000-0000-0000-000000000000", "40000000-0000-0000-0000-000000000000"
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := plain.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into workspaces (workspace_id, name, is_sandbox, created_at) values ($1, 'made', true, now()), ($2, 'given', true, now() - interval '1 d')`, workspace, other)
	exec(`insert into credentials (credential_id, kind, hint, token_hash, created_at) values ($1, 'pat', '', '1', now() - interval '1 h'), ($2, 'pat', '', '2', now() + interval '1 h')`, token, given)
	exec(`insert into credential_workspaces (credential_id, workspace_id) values ($1, $3), ($1, $4), ($2, $3), ($2, $4)`, token, given, workspace, other)
	exec(`insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed) values ($1, $1, 'https://a.example', '{*}', '')`, workspace)
	exec(`insert into events (event_id, workspace_id, event_type, payload, fanned_out_at) values ($1, $1, 'device.connected', '{}', now())`, workspace)
	exec(`insert into deliveries (webhook_id, event_id, state, next_attempt_at) values ($1, $1, 'pending', now())`, workspace)
	if err := store.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{workspace: token, other: ""} {
		var by sql.NullString
		if err := plain.QueryRowContext(t.Context(), "select made_by::text from workspaces where workspace_id = $1", id).Scan(&by); err != nil || by.String != want {
			t.Errorf("%s is made by %q, want %q; %v", id, by.String, want, err)
		}
	}
	steps, err := goose.NewProvider(goose.DialectPostgres, plain, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.DownTo(t.Context(), 51); err != nil {
		t.Fatal(err)
	}
	var due bool
	if err := plain.QueryRowContext(t.Context(), "select due_at <= now() from webhooks").Scan(&due); err != nil || !due {
		t.Errorf("it is due: %t, %v", due, err)
	}
}

func TestASchemaThatIsNewerIsTaken(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	plain, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	newer := store.NewestSchema() + 1
	if _, err := plain.ExecContext(t.Context(), "insert into goose_db_version (version_id, is_applied) values ($1, true)", newer); err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if has, err := store.SchemaVersion(t.Context(), dsn); err != nil || has != newer {
		t.Errorf("the schema is %d now, and was %d: %v", has, newer, err)
	}
}

// An index of a partition that somebody has only begun is not joined, as none would make it anew then; one that is whole is not made twice.
func TestOnlyWholeIndexesOfPartitionsAreJoined(t *testing.T) {
	t.Parallel()
	dsn, plain := atSchema(t, 42)
	const half, whole = "events_outbox_of_accounts_events_first", "events_outbox_of_accounts_events_rest"
	for _, change := range []string{
		"create table events_first partition of events for values from ('00000000-0000-0000-0000-000000000000') to ('70000000-0000-0000-0000-000000000000')",
		"create index " + half + " on events_first (workspace_id, coalesce(connected_account_id, '00000000-0000-0000-0000-000000000000'), created_at) where fanned_out_at is null",
		"create index " + whole + " on events_rest (workspace_id, coalesce(connected_account_id, '00000000-0000-0000-0000-000000000000'), created_at) where fanned_out_at is null",
		"update pg_index set indisvalid = false where indexrelid = '" + half + "'::regclass",
	} {
		if _, err := plain.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	oid := func(index string) (n int) {
		if err := plain.QueryRowContext(t.Context(), "select '"+index+"'::regclass::oid::int").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	begun, made := oid(half), oid(whole)
	steps, err := goose.NewProvider(goose.DialectPostgres, plain, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.UpTo(t.Context(), 43); !store.GaveUp(err) {
		t.Errorf("with half an index: %v, want that it is tried again", err)
	}
	if err := store.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if oid(half) == begun || oid(whole) != made {
		t.Errorf("the half index was made anew: %t; so was the whole one: %t", oid(half) != begun, oid(whole) != made)
	}
}
