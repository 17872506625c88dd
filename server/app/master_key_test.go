package app_test

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// sealedBy is a database without the tables of the job queue, which a server has yet to create. The master key has sealed
// something in it: a key of the server, or a data key.
func sealedBy(t *testing.T, dataKey bool) *old {
	t.Helper()
	o := &old{T: t, dsn: storetest.New(t), master: encryption.NewMaster()}
	o.exec("drop schema public cascade; create schema public")
	db, err := sql.Open("pgx", o.dsn)
	o.must(err)
	defer db.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("../store/migrations"))
	o.must(err)
	_, err = steps.Up(t.Context())
	o.must(err)
	keys, err := encryption.New(o.master)
	o.must(err)
	if dataKey {
		fresh, err := keys.NewDataKey(nil)
		o.must(err)
		_, err = db.ExecContext(
			t.Context(),
			"insert into data_keys (key_id, wrapped, is_current) values ($1, $2, true)",
			fresh.ID,
			fresh.Wrapped,
		)
		o.must(err)
		return o
	}
	_, err = db.ExecContext(
		t.Context(),
		"insert into server_keys (name, sealed) values ('page_cursors', $1)",
		keys.Seal("server_keys.sealed/page_cursors", encryption.NewMaster()),
	)
	o.must(err)
	return o
}

// opened are the ways to a database that may begin one.
func opened(c app.Database, t *testing.T) map[string]func() error {
	discard := slog.New(slog.DiscardHandler)
	return map[string]func() error{
		"migrate": func() error { return app.Migrate(t.Context(), c, discard) },
		"serve": func() error {
			_, err := app.Start(t.Context(), app.Config{Database: c, Listen: "127.0.0.1:0", Log: discard})
			return err
		},
	}
}

// openedBy opens a database as a command does, and says what comes of it.
func openedBy(
	t *testing.T,
	how func(context.Context, app.Database, *slog.Logger) (*app.Admin, error),
	c app.Database,
) error {
	t.Helper()
	admin, err := how(t.Context(), c, slog.New(slog.DiscardHandler))
	if err == nil {
		err = admin.Close(t.Context())
	}
	return err
}

// A program with another master key, or with none, does not change a database that needs migrations. Neither does a command with the
// right key.
func TestNothingIsMigratedWithAnotherMasterKey(t *testing.T) {
	t.Parallel()
	for sealed, dataKey := range map[string]bool{"a server key": false, "a data key": true} {
		o := sealedBy(t, dataKey)
		before := o.rows()
		c := app.Database{DatabaseURL: o.dsn, DataDir: t.TempDir()}
		for want, key := range map[string]string{"is the master key the one": base64.StdEncoding.EncodeToString(another(o.master)), "there is no master key in": ""} {
			c.MasterKey = key
			for name, open := range opened(c, t) {
				if err := open(); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %s: error %v, want one that contains %q", sealed, name, err, want)
				}
			}
		}
		if diff := cmp.Diff(before, o.rows()); diff != "" {
			t.Errorf("%s: the database has changed: %s", sealed, diff)
		}
		if _, err := os.Stat(filepath.Join(c.DataDir, "master.key")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a key was created: %v", sealed, err)
		}
		c.MasterKey = base64.StdEncoding.EncodeToString(o.master)
		for name, how := range map[string]func(context.Context, app.Database, *slog.Logger) (*app.Admin, error){"open": app.OpenAdmin, "begin": app.OpenOrCreateAdmin} {
			if err := openedBy(
				t,
				how,
				c,
			); !errors.Is(err, store.ErrOlderSchema) ||
				!strings.Contains(err.Error(), "deviceaccess-server migrate") {
				t.Errorf("%s, %s: %v", sealed, name, err)
			}
		}
		if diff := cmp.Diff(before, o.rows()); diff != "" {
			t.Errorf("%s: commands have changed the database: %s", sealed, diff)
		}
		o.must(opened(c, t)["migrate"]())
		o.must(openedBy(t, app.OpenAdmin, c))
	}
}

// A command leaves an older job queue to the servers of the version before, and one with a wrong URL leaves that database alone.
func TestCommandsMigrateNothing(t *testing.T) {
	t.Parallel()
	o := &old{T: t, dsn: storetest.New(t)}
	c := app.Database{
		DatabaseURL: o.dsn,
		DataDir:     t.TempDir(),
		MasterKey:   base64.StdEncoding.EncodeToString(encryption.NewMaster()),
	}
	o.exec("delete from river_migration where version = (select max(version) from river_migration)")
	if err := openedBy(t, app.OpenAdmin, c); !errors.Is(err, store.ErrOlderSchema) {
		t.Errorf("with an older job queue: %v", err)
	}
	o.exec("drop schema public cascade; create schema public")
	if err := openedBy(
		t,
		app.OpenAdmin,
		c,
	); !errors.Is(err, store.ErrNoSchema) ||
		!strings.Contains(err.Error(), "--database-url") {
		t.Errorf("an empty database: %v", err)
	}
	if tables := o.rows(); len(tables) > 0 {
		t.Errorf("in a database that was empty there are %d tables", len(tables))
	}
	o.must(openedBy(t, app.OpenOrCreateAdmin, c))
	o.must(openedBy(t, app.OpenAdmin, c))
}

// Servers that begin on an empty database at once, with one data directory, end up with one key.
func TestTheFirstStartMakesAKey(t *testing.T) {
	t.Parallel()
	o := &old{T: t, dsn: storetest.New(t)}
	o.exec("drop schema public cascade; create schema public")
	c := app.Database{DatabaseURL: o.dsn, DataDir: filepath.Join(t.TempDir(), "data")}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := opened(c, t)["migrate"](); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := encryption.ReadOrCreateFile(filepath.Join(c.DataDir, "master.key")); err != nil {
		t.Error(err)
	}
}
