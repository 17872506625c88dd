package app

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Names of the entries of a data directory and of a backup.
const (
	postgresName = "postgres"
	keyName      = "master.key"
	sandboxName  = "sandbox"
)

// errExternalDatabase is the error of backup and restore for a database that the server does not run.
var errExternalDatabase = errors.New(
	"this command works on the private database in a data directory, but --database-url or DEVICEACCESS_DATABASE_URL " +
		"is set: " +
		"back up that database with pg_dump --format=custom, restore it with pg_restore --exit-on-error --no-owner into " +
		"an empty database, and keep the master key separately. " +
		"The guide \"Backup, restore and upgrade of the server\" shows how",
)

// Backup writes a data directory to a file, also while a server runs on it: the private database, the simulated locks,
// and, unless withoutKey, the master key if it is in the directory. It returns the manifest of the backup.
func Backup(
	ctx context.Context,
	c Database,
	to io.Writer,
	withoutKey bool,
	program string,
	log *slog.Logger,
) (_ backup.Manifest, err error) {
	m := backup.Manifest{CreatedAt: time.Now().UTC().Truncate(time.Second), Program: program, Platform: platform()}
	if err := c.checkBackup(); err != nil {
		return m, err
	}
	h, err := pglocal.Open(ctx, c.cluster(log))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, h.Close(ctx)) }()
	if m.Schema, err = store.SchemaVersion(ctx, h.DSN("postgres")); errors.Is(err, store.ErrNoSchema) {
		return m, fmt.Errorf("%w: there is nothing to back up before the first start of serve", err)
	} else if err != nil {
		return m, err
	}
	key, err := readKeyFile(c)
	if err != nil {
		return m, err
	}
	if key != nil || c.MasterKey != "" { // report a backup that cannot be restored now
		if err := checkKey(ctx, c, h.DSN("postgres")); err != nil {
			return m, err
		}
	}
	m.KeyIncluded = key != nil && !withoutKey
	base, err := h.BaseBackup(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, base.Close(ctx)) }()
	m.Postgres, m.PostgresMajor = base.Version, base.Major
	w, err := backup.NewWriter(to, m)
	if err != nil {
		return m, err
	}
	if m.KeyIncluded {
		if err := w.PutBytes(keyName, key); err != nil {
			return m, err
		}
	}
	if err := backUpLocks(w, filepath.Join(c.DataDir, sandboxName)); err != nil {
		return m, err
	}
	err = base.Copy(ctx, c.Progress, func(h *tar.Header, content io.Reader) error {
		return w.Put(&tar.Header{
			Typeflag: h.Typeflag,
			Name:     postgresName + "/" + h.Name,
			Mode:     h.Mode,
			Size:     h.Size,
			ModTime:  h.ModTime,
		}, content)
	})
	if err != nil {
		return m, err
	}
	return m, w.Close()
}

// checkBackup returns an error if there is no private database that can be backed up.
func (c Database) checkBackup() error {
	if c.DatabaseURL != "" {
		return errExternalDatabase
	}
	if err := c.checkDatabase(); err != nil {
		return err
	}
	return c.checkNoRestore()
}

// RecordBackup records that a backup has ended, so that the metrics show its age. It starts the private database if no
// server runs.
func RecordBackup(ctx context.Context, c Database, log *slog.Logger) (err error) {
	if err := c.checkBackup(); err != nil {
		return err
	}
	h, err := pglocal.Open(ctx, c.cluster(log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close(ctx)) }()
	return store.RecordBackup(ctx, h.DSN("postgres"))
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// cluster returns the options of the private database in the data directory.
func (c Database) cluster(log *slog.Logger) pglocal.Options {
	return pglocal.Options{
		Dir:      filepath.Join(c.DataDir, postgresName),
		Log:      log,
		Progress: c.Progress,
		NoSync:   c.NoSync,
	}
}

// closeWithin runs stop with a timeout of its own, since ctx may be done.
func closeWithin(ctx context.Context, stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopDatabaseTimeout)
	defer cancel()
	return stop(ctx)
}

// readKeyFile returns the content of the master key file, or nil if the key is not in the data directory.
func readKeyFile(c Database) ([]byte, error) {
	if c.MasterKey != "" {
		return nil, nil
	}
	key, err := os.ReadFile(filepath.Join(c.DataDir, keyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	return key, nil
}

// checkKey returns an error if the master key is missing or does not open the secrets of the database.
func checkKey(ctx context.Context, c Database, dsn string) error {
	keys, err := c.keysOf(ctx, dsn)
	if err == nil && keys == nil {
		err = fmt.Errorf("there is no master key in %s", filepath.Join(c.DataDir, keyName))
	}
	return err
}

// backUpLocks adds the files of the simulated locks. The server replaces these files atomically.
func backUpLocks(w *backup.Writer, dir string) error {
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // no simulated locks, or just removed
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(root, path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return w.PutBytes(sandboxName+"/"+path, content)
	})
	if err != nil {
		return fmt.Errorf("back up the simulated locks: %w", err)
	}
	return nil
}
