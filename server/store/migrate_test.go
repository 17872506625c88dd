package store_test

import (
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// A migration that waits for whoever reads for long, such as a dump, keeps no running server waiting, and is done in the end.
func TestMigrationThatWaitsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	plain, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.ExecContext(t.Context(), "drop schema public cascade; create schema public"); err != nil {
		t.Fatal(err)
	}
	steps, err := goose.NewProvider(goose.DialectPostgres, plain, os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.UpTo(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
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
	waits := func() (n int) {
		if err := plain.QueryRowContext(t.Context(), "select count(*) from pg_locks where not granted and mode = 'AccessExclusiveLock' and database = (select oid from pg_database where datname = current_database())").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	deadline := time.Now().Add(time.Minute)
	for waits() == 0 {
		if time.Now().After(deadline) {
			t.Fatal("it does not wait for the one who reads")
		}
	}
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
