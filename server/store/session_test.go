package store_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// The owner of a database sets defaults for all of its sessions. The server works with its own.
func TestOpen_ReplacesDefaultsOfDatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ setting, owners, url, want string }{
		{setting: "default_transaction_isolation", owners: "serializable", want: "read committed"},
		{setting: "default_transaction_isolation", owners: "repeatable read", want: "read committed"},
		{setting: "default_transaction_deferrable", owners: "on", want: "off"},
		{setting: "client_encoding", owners: "latin1", want: "UTF8"},
		{setting: "timezone", owners: "Asia/Tokyo", want: "UTC"},
		{setting: "statement_timeout", owners: "1min", want: "0"},
		{setting: "statement_timeout", owners: "1min", url: "30s", want: "30s"},
		{setting: "idle_session_timeout", owners: "1min", want: "0"},
		{setting: "lock_timeout", owners: "1ms", want: "5s"},
		{setting: "lock_timeout", owners: "1ms", url: "10s", want: "10s"},
		{setting: "idle_in_transaction_session_timeout", owners: "1min", want: "15s"},
		{setting: "enable_seqscan", owners: "on", want: "off"},
		{setting: "jit", owners: "on", want: "off"},
		{setting: "default_transaction_read_only", owners: "on", want: "on"}, // protects the database from writes
	} {
		t.Run(strings.TrimSpace(c.setting+" "+c.url), func(t *testing.T) {
			t.Parallel()
			dsn := storetest.New(t)
			setDefault(t, dsn, c.setting, c.owners)
			if c.url != "" {
				dsn += "&" + c.setting + "=" + c.url
			}
			var got string
			err := open(t, dsn).Pool.QueryRow(t.Context(), "show "+c.setting).Scan(&got)
			if err != nil || got != c.want {
				t.Errorf("%s is %q, %v; want %q", c.setting, got, err, c.want)
			}
		})
	}
}

// The migrations do not depend on the defaults either.
func TestMigrate_ReplacesDefaultsOfDatabase(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	checks := "-- +goose Up\n"
	for setting, c := range map[string]struct{ owners, want string }{
		"default_transaction_isolation":  {owners: "serializable", want: "read committed"},
		"default_transaction_deferrable": {owners: "on", want: "off"},
		"statement_timeout":              {owners: "1min", want: "0"},
		"client_encoding":                {owners: "latin1", want: "UTF8"},
	} {
		setDefault(t, dsn, setting, c.owners)
		checks += "select 1 / (current_setting('" + setting + "') = '" + c.want + "')::int;\n"
	}
	if err := migrateWith(t, dsn, checks)(); err != nil {
		t.Error(err)
	}
}

// setDefault sets a default of a database for new sessions.
func setDefault(t *testing.T, dsn, setting, value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	name := pgx.Identifier{conn.Config().Database}.Sanitize()
	alter := "set default_transaction_read_only = off; set statement_timeout = 0; alter database " + name + " set " + setting
	if _, err := conn.Exec(t.Context(), alter+" = '"+value+"'"); err != nil {
		t.Fatal(err)
	}
}
