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
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const (
	stagingName = "restoring"    // in the data directory, which may be a mount point and cannot be renamed
	placingName = "placing"      // in stagingName: all files are verified and are being moved to their place
	restoreLock = "restore.lock" // lock file of a running restore
)

// checkNoRestore returns an error while a restore to the data directory is running.
func (c Database) checkNoRestore() error {
	held, err := pglocal.IsLocked(filepath.Join(c.DataDir, restoreLock))
	if errors.Is(err, fs.ErrPermission) { // opening the database reports the owner
		return nil
	}
	if err == nil && held {
		err = fmt.Errorf(
			"%s is being restored: wait until the restore has ended, or choose another directory with --data-dir",
			c.DataDir,
		)
	}
	return err
}

// restore is a running restore. Until its last rename, that of the database, the data directory counts as empty.
type restore struct {
	Database
	log     *slog.Logger
	staging string
	staged  Database // the future data directory, in staging
	owner   pglocal.Owner
}

// Restore restores a data directory from a backup. The directory must not exist or must have no database. Restore
// verifies that the database recovers and that the master key opens it before it moves the files to their place. If it
// is killed, it leaves either no database or the complete one, and can be started again. If it runs as root, all files
// get the owner of the directory.
//
// It returns backup.ErrDamaged for a damaged backup.
func Restore(ctx context.Context, c Database, from io.Reader, log *slog.Logger) (backup.Manifest, error) {
	m, placing, err := restored(ctx, c, from, log)
	if err != nil && !placing {
		err = fmt.Errorf("%w; nothing was changed", err)
	}
	return m, err
}

// restored implements Restore. It also reports whether it had started to move files to their place.
func restored(
	ctx context.Context,
	c Database,
	from io.Reader,
	log *slog.Logger,
) (_ backup.Manifest, placing bool, err error) {
	if c.DatabaseURL != "" {
		return backup.Manifest{}, false, errExternalDatabase
	}
	if c.MasterKey != "" { // check the format first
		if _, err := c.readKeys(); err != nil {
			return backup.Manifest{}, false, err
		}
	}
	b, err := backup.NewReader(from)
	if err != nil {
		return backup.Manifest{}, false, err
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return b.Manifest, false, err
	}
	c.DataDir = dir
	r := &restore{Database: c, log: log, staging: filepath.Join(dir, stagingName)}
	r.staged = c
	r.staged.DataDir = r.staging
	if err := errors.Join(r.checkPlatform(b.Manifest), r.checkVacant(), r.wantKey(b.Manifest)); err != nil {
		return b.Manifest, false, err
	}
	made := !r.has("")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return b.Manifest, false, fmt.Errorf("create the data directory: %w", err)
	}
	path := filepath.Join(dir, restoreLock)
	lock, err := pglocal.TryLock(path)
	if err != nil {
		return b.Manifest, false, fmt.Errorf("restore to %s: %w", dir, err)
	}
	if r.owner, err = pglocal.OwnerOf(dir); err == nil {
		err = r.owner.Chown(dir, restoreLock) // a killed restore leaves it behind
	}
	if err == nil {
		err = r.prepare(ctx, b)
	}
	if err == nil {
		placing, err = r.place()
	}
	if err != nil && !placing {
		err = errors.Join(err, os.RemoveAll(r.staging))
	}
	err = errors.Join(err, os.Remove(path), lock.Release())
	if err != nil && made && !placing {
		_ = os.Remove(dir) // fails if another process has created a file there
	}
	return b.Manifest, placing, err
}

// checkPlatform returns an error if this program on this machine cannot restore the backup.
func (r *restore) checkPlatform(m backup.Manifest) error {
	switch {
	case m.Platform != platform():
		return fmt.Errorf(
			"the backup was made on %s, and its database files do not work on %s: restore it on such a machine and move the "+
				"data with pg_dump",
			m.Platform,
			platform(),
		)
	case m.Schema > store.NewestSchema():
		return fmt.Errorf(
			"the backup was made by a newer version of this program, %q: restore it with that version or a later one",
			m.Program,
		)
	}
	return nil
}

// prepare stages and verifies the data directory.
func (r *restore) prepare(ctx context.Context, b *backup.Reader) error {
	if err := r.clear(ctx); err != nil {
		return err
	}
	if err := r.unpack(ctx, b); err != nil {
		return err
	}
	if err := r.verify(ctx, b.Manifest); err != nil {
		return err
	}
	if r.verified != nil {
		r.verified()
	}
	return nil
}

// checkVacant returns an error if the data directory has a database.
func (r *restore) checkVacant() error {
	if !r.has(postgresName) {
		return nil
	}
	dir := filepath.Join(r.DataDir, postgresName)
	if there, err := pglocal.HasData(dir); err == nil && !there {
		return fmt.Errorf(
			"%s has no database and was probably left by a failed first start: remove it and run the restore again",
			dir,
		)
	}
	return r.occupied(postgresName)
}

// clear removes the files of an earlier restore. It returns an error if the data directory has other data.
func (r *restore) clear(ctx context.Context) error {
	if err := r.checkVacant(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.staging, placingName)); err == nil { // killed while it moved files
		if err := os.RemoveAll(filepath.Join(r.DataDir, sandboxName)); err != nil {
			return fmt.Errorf("remove the files of an earlier restore: %w", err)
		}
	}
	if r.has(sandboxName) {
		return r.occupied(sandboxName)
	}
	if db := filepath.Join(
		r.staging,
		postgresName,
	); r.has(
		filepath.Join(stagingName, postgresName),
	) { // its database may still run
		if err := pglocal.Reap(ctx, db); err != nil {
			return fmt.Errorf("stop the database of an earlier restore: %w", err)
		}
	}
	if err := os.RemoveAll(r.staging); err != nil {
		return fmt.Errorf("remove the files of an earlier restore: %w", err)
	}
	return nil
}

func (r *restore) has(name string) bool {
	_, err := os.Lstat(filepath.Join(r.DataDir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

func (r *restore) occupied(name string) error {
	return fmt.Errorf("there is data in %s, which is never overwritten: restore to another directory with --data-dir, "+
		"or stop the server and move the directory away (mv %[2]s %[2]s.before)", filepath.Join(r.DataDir, name), r.DataDir)
}

// wantKey returns an error if neither the backup nor this machine has the master key.
func (r *restore) wantKey(m backup.Manifest) error {
	if m.KeyIncluded || r.MasterKey != "" || r.has(keyName) {
		return nil
	}
	return fmt.Errorf(
		"the backup does not contain its master key, and PINs and secrets cannot be read without it: set --master-key or "+
			"put the key into %s",
		filepath.Join(r.DataDir, keyName),
	)
}

func (r *restore) unpack(ctx context.Context, b *backup.Reader) error {
	opt := r.staged.cluster(r.log)
	db, err := pglocal.NewRebuild(ctx, opt, b.Manifest.PostgresMajor, r.owner)
	var other *pglocal.MajorError
	if errors.As(err, &other) {
		return fmt.Errorf(
			"the backup was made by PostgreSQL %d and can only be opened by it, and %s: install PostgreSQL %[1]d",
			other.Major,
			other.Have(),
		)
	}
	if err != nil {
		return err
	}
	for {
		h, content, err := b.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := r.put(db, h, content); err != nil {
			return err
		}
	}
}

func (r *restore) put(db *pglocal.Rebuild, h *tar.Header, content io.Reader) error {
	first, rest, _ := strings.Cut(h.Name, "/")
	if first == postgresName {
		rest = strings.TrimPrefix(rest, "./") // PostgreSQL names some directories like this
	}
	switch plain := fs.ValidPath(strings.TrimSuffix(rest, "/")) && rest != "."; { // stays in its directory
	case first == postgresName && plain:
		inside := *h
		inside.Name = rest
		return db.Put(&inside, content)
	case h.Typeflag == tar.TypeReg && (h.Name == keyName || first == sandboxName && plain):
		return writeSynced(filepath.Join(r.staging, filepath.FromSlash(h.Name)), content)
	}
	return fmt.Errorf("%w (unknown file %s)", backup.ErrDamaged, h.Name)
}

func writeSynced(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("restore %s: %w", filepath.Base(path), err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("restore %s: %w", filepath.Base(path), err)
	}
	_, err = io.Copy(f, content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("restore %s: %w", filepath.Base(path), err)
	}
	return nil
}

// verify starts the staged database. It checks that the database recovers, has the schema of the manifest, and opens
// with the master key.
func (r *restore) verify(ctx context.Context, m backup.Manifest) (err error) {
	key := r.staged
	if m.KeyIncluded {
		if err := r.sameKey(); err != nil {
			return err
		}
		key.MasterKey = "" // use the key of the backup
	} else if key.MasterKey == "" {
		key.DataDir = r.DataDir
	}
	own, err := pglocal.Start(ctx, r.staged.cluster(r.log))
	if err != nil {
		return fmt.Errorf("the database does not recover from the backup: %w", err)
	}
	defer func() { err = errors.Join(err, closeWithin(ctx, own.Stop)) }()
	schema, err := store.SchemaVersion(ctx, own.DSN("postgres"))
	if err != nil {
		return err
	}
	if schema != m.Schema {
		return fmt.Errorf(
			"%w (the schema has version %d, but the manifest says %d)",
			backup.ErrDamaged,
			schema,
			m.Schema,
		)
	}
	err = checkKey(ctx, key, own.DSN("postgres"))
	if errors.Is(err, encryption.ErrDecrypt) {
		err = fmt.Errorf("%w If the key was changed after the backup, use the earlier key", err)
	}
	if err != nil || !m.KeyIncluded || r.MasterKey == "" {
		return err
	}
	// A server with the configured key would not start on the restored data.
	if err := checkKey(ctx, r.staged, own.DSN("postgres")); err != nil {
		return fmt.Errorf(
			"the backup contains its own master key, and the configured key does not open it: leave out --master-key and "+
				"DEVICEACCESS_MASTER_KEY, "+
				"now and when you start the server (%w)",
			err,
		)
	}
	return nil
}
