package pglocal_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// refuses fails if the cluster accepts a connection with another password, or with none.
func refuses(t *testing.T, c *pglocal.Cluster) {
	t.Helper()
	u, err := url.Parse(c.DSN("postgres"))
	ok(t, err)
	for name, user := range map[string]*url.Userinfo{
		"no password":      url.User("postgres"),
		"another password": url.UserPassword("postgres", "postgres"),
	} {
		u.User = user
		conn, err := pgx.Connect(t.Context(), u.String())
		if err == nil {
			conn.Close(t.Context())
			t.Errorf("%s: accepted", name)
		} else if refused, isRefused := errors.AsType[*pgconn.PgError](err); isRefused && refused.Code != "28P01" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The database asks for a password, which its own user cannot read if another user starts it.
func TestServerAsksForPassword(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	c := start(t, pglocal.Options{Dir: dir})
	refuses(t, c)
	path := filepath.Join(dir, "password")
	info, err := os.Stat(path)
	ok(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the password has mode %v, want 0600", info.Mode().Perm())
	}
	password, err := os.ReadFile(path)
	ok(t, err)
	if len(password) < 20 {
		t.Errorf("the password has %d characters", len(password))
	}
	h, err := pglocal.Open(t.Context(), pglocal.Options{Dir: dir})
	ok(t, err)
	ok(t, insert(t.Context(), h.DSN("postgres"), "of a command"))
	ok(t, h.Close(t.Context()))
}

// A cluster that does not have the password gets it at its next start, and keeps its data.
func TestPasswordIsSetAtNextStart(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string, c *pglocal.Cluster){
		"of a version that trusted every connection": func(t *testing.T, dir string, c *pglocal.Cluster) {
			t.Helper()
			ok(t, execute(t.Context(), c.DSN("postgres"), "alter role postgres password null"))
			ok(t, os.WriteFile(filepath.Join(c.DataDir(), "pg_hba.conf"), []byte("local all all trust\n"), 0o600))
			ok(t, os.Remove(filepath.Join(dir, "password")))
			ok(t, os.Remove(filepath.Join(dir, "pg_hba.conf")))
		},
		"restored": func(t *testing.T, dir string, _ *pglocal.Cluster) {
			t.Helper()
			ok(t, os.Remove(filepath.Join(dir, "password")))
		},
		"empty file": func(t *testing.T, dir string, _ *pglocal.Cluster) {
			t.Helper()
			ok(t, os.WriteFile(filepath.Join(dir, "password"), nil, 0o600))
		},
		"killed while it got the password": func(t *testing.T, dir string, c *pglocal.Cluster) {
			t.Helper()
			ok(t, execute(t.Context(), c.DSN("postgres"), "alter role postgres password null"))
			ok(t, os.WriteFile(filepath.Join(dir, "pg_hba.conf"), []byte("local all all trust\n"), 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := seeded(t)
			before := start(t, pglocal.Options{Dir: dir})
			ok(t, insert(t.Context(), before.DSN("postgres"), name))
			change(t, dir, before)
			stop(t, before)
			after := start(t, pglocal.Options{Dir: dir})
			refuses(t, after)
			if found := notes(t, after); !slices.Equal(found, []string{name}) {
				t.Errorf("the notes are %q", found)
			}
		})
	}
}
