package storetest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

const schema = "create table device (name text primary key)"

func migrate(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, schema)
	return errors.Join(err, conn.Close(ctx))
}

func TestMain(m *testing.M) {
	if storetest.Help() {
		return
	}
	storetest.Main(m, migrate, schema)
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestEveryTestHasAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for i := range 12 {
		t.Run(fmt.Sprintf("%d of a name that is %s", i, strings.Repeat("lÖng ", 20)), func(t *testing.T) {
			t.Parallel()
			conn := connect(t, storetest.New(t))
			defer conn.Close(context.Background())
			if _, err := conn.Exec(t.Context(), "insert into device values ('the only one')"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDatabaseIsDroppedWhoeverIsConnected(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	var dsn string
	var left *pgx.Conn
	t.Run("a test that leaves a connection open", func(t *testing.T) {
		dsn = storetest.New(t)
		left = connect(t, dsn)
	})
	defer left.Close(context.Background())
	conn, err := pgx.Connect(t.Context(), dsn)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "3D000" { // invalid_catalog_name
		t.Errorf("connect after the test = %v, %v, want that there is no such database", conn, err)
	}
}

// verdict records how a test was ended.
type verdict struct {
	testing.TB
	skipped, failed string
}

func (*verdict) Helper() {}

func (v *verdict) Skipf(format string, args ...any)  { v.skipped = fmt.Sprintf(format, args...) }
func (v *verdict) Fatalf(format string, args ...any) { v.failed = fmt.Sprintf(format, args...) }

func TestMissingSkipsUnlessAllIsRequired(t *testing.T) { // not parallel: it changes the environment
	for _, test := range []struct {
		require                 string
		wantSkipped, wantFailed string
	}{
		{require: "", wantSkipped: "skipped, this is missing: terraform 1.14"},
		{require: "1", wantFailed: "REQUIRE_ALL=1, and this is missing: terraform 1.14"},
	} {
		t.Setenv("REQUIRE_ALL", test.require)
		v := &verdict{TB: t}
		storetest.Missing(v, "terraform %d.%d", 1, 14)
		if v.failed != test.wantFailed || (test.wantFailed == "" && v.skipped != test.wantSkipped) {
			t.Errorf("REQUIRE_ALL=%q: skipped %q, failed %q", test.require, v.skipped, v.failed)
		}
	}
}

func TestNew_IsSkippedWithShort(t *testing.T) { // not parallel: it changes the environment and a flag
	t.Setenv("REQUIRE_ALL", "1")
	short := flag.Lookup("test.short").Value
	former := short.String()
	if err := short.Set("true"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := short.Set(former); err != nil {
			t.Error(err)
		}
	})
	t.Run("skipped", func(t *testing.T) {
		defer func() {
			if !t.Skipped() {
				t.Error("the test goes on")
			}
		}()
		storetest.New(t)
		t.Error("New returned")
	})
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		storetest.New(b)
	}
}
