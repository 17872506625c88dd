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

	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// sealedAt returns a database of an earlier schema with encrypted secrets: a server key, and a data key if the schema
// has one.
func sealedAt(t *testing.T, version int64) *old {
	t.Helper()
	o := &old{T: t, dsn: storetest.New(t), master: encryption.NewMaster()}
	o.exec("drop schema public cascade; create schema public")
	db, err := sql.Open("pgx", o.dsn)
	o.must(err)
	defer db.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("../store/migrations"))
	o.must(err)
	_, err = steps.UpTo(t.Context(), version)
	o.must(err)
	keys, err := encryption.New(o.master)
	o.must(err)
	if version >= 20 {
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

// opened returns the ways to open a database that may create it.
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

// openedBy opens a database like a command and returns its error.
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

// A newer program with a wrong or missing master key does not change a database, so that the older version can
// continue. A command with the right key does not migrate it, either.
func TestMigrate_WrongMasterKeyChangesNothing(t *testing.T) {
	t.Parallel()
	for _, version := range []int64{1, 19, 20, 42} {
		o := sealedAt(t, version)
		c := app.Database{DatabaseURL: o.dsn, DataDir: t.TempDir()}
		for want, key := range map[string]string{
			"is the master key the one": base64.StdEncoding.EncodeToString(another(o.master)),
			"there is no master key in": "",
		} {
			c.MasterKey = key
			for name, open := range opened(c, t) {
				if err := open(); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("schema %d, %s: %v; expected a word on %q", version, name, err, want)
				}
			}
		}
		if now, err := store.SchemaVersion(t.Context(), o.dsn); err != nil || now != version {
			t.Errorf("schema %d is now %d, %v", version, now, err)
		}
		if _, err := os.Stat(filepath.Join(c.DataDir, "master.key")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("schema %d: a key was created: %v", version, err)
		}
		c.MasterKey = base64.StdEncoding.EncodeToString(o.master)
		for name, how := range map[string]func(context.Context, app.Database, *slog.Logger) (*app.Admin, error){
			"open":  app.OpenAdmin,
			"begin": app.OpenOrCreateAdmin,
		} {
			if err := openedBy(
				t,
				how,
				c,
			); !errors.Is(err, store.ErrOlderSchema) ||
				!strings.Contains(err.Error(), "deviceaccess-server migrate") {
				t.Errorf("schema %d, %s: %v", version, name, err)
			}
		}
		if now, err := store.SchemaVersion(t.Context(), o.dsn); err != nil || now != version {
			t.Errorf("schema %d is now %d after commands, %v", version, now, err)
		}
		o.must(opened(c, t)["migrate"]())
		if now, err := store.SchemaVersion(t.Context(), o.dsn); err != nil || now != store.NewestSchema() {
			t.Errorf("with the key, schema %d is now %d: %v", version, now, err)
		}
		o.must(openedBy(t, app.OpenAdmin, c))
	}
}

// A command does not migrate an older job queue, and does not change the database of a wrong URL.
func TestCommands_MigrateNothing(t *testing.T) {
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

// Servers that start concurrently on an empty database and one data directory share one key.
func TestMasterKey_CreatedOnce(t *testing.T) {
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
