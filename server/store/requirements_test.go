package store_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// run executes statements in a database.
func run(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also for cleanups
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// nameOf returns the name of the database of a URL.
func nameOf(t *testing.T, dsn string) string {
	t.Helper()
	_, name, err := store.Location(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// created returns the URL of a new database next to that of dsn.
func created(t *testing.T, dsn, options string) string {
	t.Helper()
	name := nameOf(t, dsn)
	next := "next_" + name[:min(len(name), 50)]
	run(t, dsn, "create database "+next+" template template0 lc_collate 'C' lc_ctype 'C' "+options)
	t.Cleanup(func() { run(t, dsn, "drop database "+next+" with (force)") })
	return strings.Replace(dsn, name, next, 1)
}

// withRole returns the URL of dsn for a new role without privileges, which is dropped after the test.
func withRole(t *testing.T, dsn, options string) string {
	t.Helper()
	name := nameOf(t, dsn)
	role := "role_" + name[:min(len(name), 50)]
	run(t, dsn, "create role "+role+" login password '"+role+"' "+options)
	t.Cleanup(func() {
		run(t, dsn, "drop owned by "+role, "drop role "+role)
	})
	return storetest.AsRole(t, dsn, role, role)
}

// A database on which the server cannot work is refused before the first change, and the error says what to do.
func TestCheckRequirements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(t *testing.T, dsn string) string
		want string // "" accepts the database
	}{
		"database that fits": {make: func(_ *testing.T, dsn string) string { return dsn }},
		"SQL_ASCII": {
			make: func(t *testing.T, dsn string) string { t.Helper(); return created(t, dsn, "encoding 'SQL_ASCII'") },
			want: "is SQL_ASCII, and the server needs UTF8: create another database",
		},
		"LATIN1": {
			make: func(t *testing.T, dsn string) string { t.Helper(); return created(t, dsn, "encoding 'LATIN1'") },
			want: "is LATIN1, and the server needs UTF8: create another database",
		},
		"read-only": {
			make: func(t *testing.T, dsn string) string {
				t.Helper()
				setDefault(t, dsn, "default_transaction_read_only", "on")
				return dsn
			},
			want: "is read-only (default_transaction_read_only): name the primary",
		},
		"schema of another role": {
			make: func(t *testing.T, dsn string) string { t.Helper(); return withRole(t, dsn, "") },
			want: "grant create on schema public to role_",
		},
		"no schema": {
			make: func(_ *testing.T, dsn string) string { return dsn + "&search_path=nowhere" },
			want: "may use no schema of the search_path: create one",
		},
		"pooler in transaction mode": {
			make: func(t *testing.T, dsn string) string { t.Helper(); return newPooler(t, dsn, false) },
			want: "set it to session mode",
		},
		"pooler in session mode": {
			make: func(t *testing.T, dsn string) string { t.Helper(); return newPooler(t, dsn, true) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := c.make(t, storetest.New(t))
			err := store.CheckRequirements(t.Context(), dsn)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v; want one line with %q", err, c.want)
			}
			if migrated := store.Migrate(t.Context(), dsn); migrated == nil || migrated.Error() != err.Error() {
				t.Errorf("the migration ends with %v", migrated)
			}
		})
	}
}

// Behind a pooler in transaction mode, statements fail in ways that do not name it.
func TestExplain_NamesPooler(t *testing.T) {
	t.Parallel()
	dsn := newPooler(t, storetest.New(t), false)
	var failed error
	for range 2 { // the second client meets the prepared statements of the first
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var n int
		failed = conn.QueryRow(t.Context(), "select $1::int", 1).Scan(&n)
	}
	if failed == nil {
		t.Fatal("the pooler keeps prepared statements apart")
	}
	if err := store.Explain(failed); !errors.Is(err, store.ErrTransactionPooling) || !errors.Is(err, failed) {
		t.Errorf("explained as %v", err)
	}
	other := errors.New("another fault")
	if err := store.Explain(other); err != nil {
		t.Errorf("explained as %v", err)
	}
}

// The lowest limit for the user counts. Superusers have that of the server only.
func TestReadConnLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role, database, of string
		want               int // 0: that of the server
	}{
		"none":              {of: "max_connections"},
		"of the role":       {role: "connection limit 12", of: "alter role role_", want: 12},
		"of the database":   {database: "connection limit 9", of: "alter database", want: 9},
		"the lower of both": {role: "connection limit 7", database: "connection limit 9", of: "alter role role_", want: 7},
		"of a superuser":    {role: "superuser connection limit 12", of: "max_connections"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.New(t)
			url := withRole(t, dsn, c.role)
			if c.database != "" {
				run(t, dsn, "alter database "+pgx.Identifier{nameOf(t, dsn)}.Sanitize()+" "+c.database)
			}
			limit, err := store.ReadConnLimit(t.Context(), url)
			want := cmp.Or(c.want, limit.Connections)
			if err != nil || !strings.Contains(limit.Of, c.of) || limit.Connections != want || want < 1 {
				t.Errorf("the limit is %+v, %v; want %d of %s", limit, err, c.want, c.of)
			}
		})
	}
}
