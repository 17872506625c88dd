package store_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// madeOf returns an empty database on which the statements were run.
func madeOf(t *testing.T, statements ...string) (dsn string, plain *sql.DB) {
	t.Helper()
	dsn = storetest.New(t)
	plain, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close() })
	for _, s := range append([]string{"drop schema public cascade; create schema public"}, statements...) {
		if _, err := plain.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return dsn, plain
}

func tablesIn(t *testing.T, db *sql.DB, schema string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "select count(*) from pg_tables where schemaname = $1", schema).
		Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const (
	ofGoose = "create table goose_db_version (id serial primary key, version_id bigint not null, is_applied boolean not null, tstamp timestamp not null default now())"
	ofRiver = "create table river_migration (line text not null, version bigint not null, created_at timestamptz not null default now(), primary key (line, version))"
)

// The database of another application is none of ours, whatever its tables are called.
func TestDatabasesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	for name, others := range map[string][]string{
		"a table":                               {"create table users (id int)"},
		"a table that is called as one of ours": {"create table devices (id int)"},
		"one in partitions":                     {"create table visits (at date) partition by range (at)"},
		"one that goose looks after":            {ofGoose, "insert into goose_db_version (version_id, is_applied) values (0, true), (3, true)", "create table workspaces (id int)"},
		"one next to a job queue of theirs":     {ofRiver, "create table river_job (id int)", "create table orders (id int)"},
		"one that another tool looks after":     {"create table schema_migrations (version text)", "create table orders (id int)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, plain := madeOf(t, others...)
			before := tablesIn(t, plain, "public")
			err := store.Migrate(t.Context(), dsn)
			if err == nil {
				t.Fatal("it is taken")
			}
			for _, want := range []string{`schema "public"`, "another database", "search_path=", "nothing has been changed"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no word of %s: %v", want, err)
				}
			}
			if after := tablesIn(t, plain, "public"); after != before {
				t.Errorf("there are %d tables, and were %d", after, before)
			}
		})
	}
}

// Databases of the server, and those without tables of an application, are migrated.
func TestDatabasesThatAreOursOrEmptyAreTaken(t *testing.T) {
	t.Parallel()
	for name, made := range map[string][]string{
		"nothing":                        nil,
		"a table of an extension":        {"create table spatial_ref_sys (id int)", "alter extension plpgsql add table spatial_ref_sys"},
		"a view":                         {"create view pg_stat_statements as select 1 as calls", "create materialized view sums as select 1 as n"},
		"the table of migrations alone":  {ofGoose, "insert into goose_db_version (version_id, is_applied) values (0, true)"},
		"that of another tool alone":     {"create table schema_migrations (version text)"},
		"a table in a schema of its own": {"create schema other", "create table other.users (id int)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, _ := madeOf(t, made...)
			if err := store.Migrate(t.Context(), dsn); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("all but the job queue", func(t *testing.T) {
		t.Parallel()
		dsn, plain := atSchema(t, store.NewestSchema())
		if _, err := plain.ExecContext(t.Context(), "create table notes_of_the_operator (id int)"); err != nil {
			t.Fatal(err)
		}
		if err := store.Migrate(t.Context(), dsn); err != nil {
			t.Error(err)
		}
	})
}

// A schema of its own is what a server has in a database that others have tables in.
func TestASchemaOfItsOwnIsBesideOthers(t *testing.T) {
	t.Parallel()
	dsn, plain := madeOf(t, "create table devices (id int)")
	own := dsn + "&search_path=deviceaccess"
	if err := store.Migrate(t.Context(), own); err == nil || !strings.Contains(err.Error(), "create schema") {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := plain.ExecContext(t.Context(), "create schema deviceaccess"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := store.Migrate(t.Context(), own); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.CheckSchema(t.Context(), own); err != nil {
		t.Error(err)
	}
	if others, ours := tablesIn(t, plain, "public"), tablesIn(t, plain, "deviceaccess"); others != 1 || ours < 40 {
		t.Errorf("there are %d tables among the others', and %d in the schema", others, ours)
	}
}
