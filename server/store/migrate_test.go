package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// atSchema returns a database with the migrations up to a version, and without the tables of the job queue.
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

// migrateWith returns a function that migrates a database with one more migration than there is.
func migrateWith(t *testing.T, dsn, sql string) func() error {
	t.Helper()
	files := fstest.MapFS{fmt.Sprintf("migrations/%05d_test.sql", store.NewestSchema()+1): {Data: []byte(sql)}}
	present, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range present {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return func() error { return store.MigrateFrom(t.Context(), dsn, files) }
}

// lockingMigration locks tables that servers use, as a migration of them does.
func lockingMigration(lockTimeout string) string {
	return "-- +goose Up\nset local lock_timeout = '" + lockTimeout + "';\n" +
		"lock table workspaces, webhooks, events in access exclusive mode;\nalter table webhooks add column added integer;\n"
}

// someoneLocksAll waits until a migration waits for a table.
func someoneLocksAll(t *testing.T, plain *sql.DB) {
	t.Helper()
	testenv.Until(t, "a migration waits for the reader", func() bool {
		var waits bool
		if err := plain.QueryRowContext(t.Context(), `select exists (select from pg_locks where not granted and mode = 'AccessExclusiveLock'
			and database = (select oid from pg_database where datname = current_database()))`).
			Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
}

// A migration that waits for a long read, such as a dump, does not block servers, and succeeds afterwards.
func TestMigrate_WaitsWithoutBlockingServers(t *testing.T) {
	t.Parallel()
	dsn, plain := atSchema(t, store.NewestSchema())
	migrate := migrateWith(t, dsn, lockingMigration("200ms"))
	dump, err := plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Rollback()
	if _, err := dump.ExecContext(t.Context(), "select from events"); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() { migrated <- migrate() }()
	someoneLocksAll(t, plain)
	// It has locked the table workspaces by now, which each request reads.
	if _, err := plain.ExecContext(t.Context(), "set statement_timeout = '1min'; select from workspaces"); err != nil {
		t.Fatalf("read while the migration waits: %v", err)
	}
	select {
	case err := <-migrated:
		t.Fatalf("the migration ended during the read: %v", err)
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
// it has none, events go to the default partition until it can be created.
func TestMigrate_UpToDateDoesNotWait(t *testing.T) {
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
				if _, err := db.MakePartitions(
					t.Context(),
					time.Now(),
					3*store.Day,
				); err != nil { // as a server makes them that keeps events for two weeks
					t.Fatal(err)
				}
			}
			dump, err := db.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer dump.Rollback(context.WithoutCancel(t.Context()))
			if _, err := dump.Exec(
				t.Context(),
				"select from events_rest, deliveries_rest, delivery_attempts_rest",
			); err != nil {
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
func TestMigrate_RetriesAfterDeadlock(t *testing.T) {
	t.Parallel()
	dsn, plain := atSchema(t, store.NewestSchema())
	// Longer than deadlock_timeout, so that the database detects the deadlock before the migration times out.
	migrate := migrateWith(t, dsn, lockingMigration("5s"))
	change, err := plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer change.Rollback()
	if _, err := change.ExecContext(
		t.Context(),
		"set local deadlock_timeout = '1min'; select from webhooks",
	); err != nil { // the migration looks first
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() { migrated <- migrate() }()
	someoneLocksAll(t, plain)
	if _, err := change.ExecContext(
		t.Context(),
		"set local statement_timeout = '1min'; select from workspaces",
	); err != nil {
		t.Fatalf("the server did not get the lock: %v", err)
	}
	if err := change.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
}

// A migration that creates an index concurrently waits for a transaction that has written to the table. Later writers do
// not wait. The migration replaces an index that an interrupted run left behind.
func TestMigrate_CreatesIndexConcurrently(t *testing.T) {
	t.Parallel()
	const (
		half  = "create index audit_log_added on audit_log (occurred_at)"
		entry = "insert into audit_log (audit_id, actor_kind, operation, subject_kinds, subject_ids, outcome) values (gen_random_uuid(), 'api_key', '/x', '{}', '{}', 'done')"
		whole = "select indisvalid and pg_get_indexdef(indexrelid) like '%(workspace_id, occurred_at, audit_id)' from pg_index where indexrelid = 'audit_log_added'::regclass"
	)
	dsn, plain := atSchema(t, store.NewestSchema())
	migrate := migrateWith(
		t,
		dsn,
		"-- +goose NO TRANSACTION\n-- +goose Up\ndrop index concurrently if exists audit_log_added;\n"+
			"create index concurrently audit_log_added on audit_log (workspace_id, occurred_at, audit_id);\n",
	)
	if _, err := plain.ExecContext(t.Context(), half); err != nil {
		t.Fatal(err)
	}
	change, err := plain.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer change.Rollback()
	if _, err := change.ExecContext(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() { migrated <- migrate() }()
	testenv.Until(t, "the migration waits for the open transaction", func() bool {
		var waits bool
		if err := plain.QueryRowContext(t.Context(), `select exists (select from pg_locks l join pg_stat_activity a using (pid)
			where not l.granted and a.datname = current_database())`).
			Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	if _, err := plain.ExecContext(t.Context(), "set lock_timeout = '1min'; "+entry); err != nil {
		t.Fatalf("write while the index is created: %v", err)
	}
	if err := change.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	var isWhole bool
	if err := plain.QueryRowContext(t.Context(), whole).Scan(&isWhole); err != nil || !isWhole {
		t.Errorf("the index is valid: %t, %v", isWhole, err)
	}
}

// A server of an older version that starts during an upgrade finds a migration that it does not know, and ignores it.
func TestMigrate_AcceptsNewerSchema(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	plain, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	newer := store.NewestSchema() + 1
	if _, err := plain.ExecContext(
		t.Context(),
		"insert into goose_db_version (version_id, is_applied) values ($1, true)",
		newer,
	); err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if has, err := store.SchemaVersion(t.Context(), dsn); err != nil || has != newer {
		t.Errorf("the schema is %d now, and was %d: %v", has, newer, err)
	}
}
