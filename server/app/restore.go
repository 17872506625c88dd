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
	stagingName = "restoring"    // below the data directory, which may be a mount point and so cannot be renamed itself
	placingName = "placing"      // in there: all is proven and is being put in its place
	restoreLock = "restore.lock" // of the restore that is under way
)

// notRestoring fails while a restore to the data directory is under way, which would find a database in its way.
func (c Database) notRestoring() error {
	held, err := pglocal.Held(filepath.Join(c.DataDir, restoreLock))
	if errors.Is(err, fs.ErrPermission) { // whoever opens the database is told whose it is
		return nil
	}
	if err == nil && held {
		err = fmt.Errorf("%s is being restored: wait until the restore has ended, or choose another directory with --data-dir", c.DataDir)
	}
	return err
}

// restore is one under way. Until its last rename, of the database, a server starts on the data directory as if there
// had been none.
type restore struct {
	Database
	log     *slog.Logger
	staging string
	staged  Database // the data directory as it will be, in staging
	owner   pglocal.Owner
}

// Restore puts a data directory together from a backup. It wants one that is not there or has no database in it, proves
// that the database recovers and that the master key opens it, and only then puts all in its place. Killed at whatever
// moment, it leaves no database there or the whole one, and can be started again. As root it leaves all to the owner of
// the directory.
//
// It fails with backup.ErrDamaged.
func Restore(ctx context.Context, c Database, from io.Reader, log *slog.Logger) (backup.Manifest, error) {
	m, placing, err := restored(ctx, c, from, log)
	if err != nil && !placing {
		err = fmt.Errorf("%w; nothing was changed", err)
	}
	return m, err
}

// restored does so, and says whether it was putting things in their place already when it failed.
func restored(ctx context.Context, c Database, from io.Reader, log *slog.Logger) (_ backup.Manifest, placing bool, err error) {
	if c.DatabaseURL != "" {
		return backup.Manifest{}, false, errNotOurs
	}
	if c.MasterKey != "" { // one that is none is better told of before all the work
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
	if err := errors.Join(r.suits(b.Manifest), r.vacant(), r.wantKey(b.Manifest)); err != nil {
		return b.Manifest, false, err
	}
	made := !r.has("")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return b.Manifest, false, fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(dir, restoreLock)
	lock, err := pglocal.TryLock(path)
	if err != nil {
		return b.Manifest, false, fmt.Errorf("restore to %s: %w", dir, err)
	}
	if r.owner, err = pglocal.OwnerOf(dir); err == nil {
		err = r.owner.Give(dir, restoreLock) // should it be left behind
	}
	if err == nil {
		err = r.prepare(ctx, b)
	}
	if err == nil {
		placing, err = r.place()
	}
	if err != nil && !placing { // what there is of it is of no use to anybody
		err = errors.Join(err, os.RemoveAll(r.staging))
	}
	err = errors.Join(err, os.Remove(path), lock.Release())
	if err != nil && made && !placing {
		_ = os.Remove(dir) // unless somebody else has put something there
	}
	return b.Manifest, placing, err
}

// suits is whether this program on this machine can do anything with a backup.
func (r *restore) suits(m backup.Manifest) error {
	switch {
	case m.Platform != platform():
		return fmt.Errorf("the backup was made on %s, whose database files are not those of %s: restore it on such a machine, and move its data with pg_dump", m.Platform, platform())
	case m.Schema > store.NewestSchema():
		return fmt.Errorf("the backup was made by a newer version of this program, %q: restore it with that one or a later one", m.Program)
	}
	return nil
}

// prepare stages the data directory, and proves it.
func (r *restore) prepare(ctx context.Context, b *backup.Reader) error {
	if err := r.clear(ctx); err != nil {
		return err
	}
	if err := r.unpack(ctx, b); err != nil {
		return err
	}
	if err := r.prove(ctx, b.Manifest); err != nil {
		return err
	}
	if r.proven != nil {
		r.proven()
	}
	return nil
}

// vacant refuses a data directory with a database in it.
func (r *restore) vacant() error {
	if !r.has(postgresName) {
		return nil
	}
	dir := filepath.Join(r.DataDir, postgresName)
	if there, err := pglocal.HasData(dir); err == nil && !there {
		return fmt.Errorf("%s has no database in it, as a first start that came to nothing leaves it: remove it and start this again", dir)
	}
	return r.occupied(postgresName)
}

// clear refuses a data directory with something in it, except for what an earlier restore has left there, which it removes.
func (r *restore) clear(ctx context.Context) error {
	if err := r.vacant(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.staging, placingName)); err == nil { // it was killed a moment before its end
		if err := os.RemoveAll(filepath.Join(r.DataDir, sandboxName)); err != nil {
			return fmt.Errorf("remove what an earlier restore has left: %w", err)
		}
	}
	if r.has(sandboxName) {
		return r.occupied(sandboxName)
	}
	if db := filepath.Join(r.staging, postgresName); r.has(filepath.Join(stagingName, postgresName)) { // it may be running still
		if err := pglocal.Reap(ctx, db); err != nil {
			return fmt.Errorf("stop the database of an earlier restore: %w", err)
		}
	}
	if err := os.RemoveAll(r.staging); err != nil {
		return fmt.Errorf("remove what an earlier restore has left: %w", err)
	}
	return nil
}

func (r *restore) has(name string) bool {
	_, err := os.Lstat(filepath.Join(r.DataDir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

func (r *restore) occupied(name string) error {
	return fmt.Errorf("there is data in %s, which is never overwritten: restore to another directory with --data-dir, "+
		"or stop the server and move all of it away (mv %[2]s %[2]s.before)", filepath.Join(r.DataDir, name), r.DataDir)
}

// wantKey refuses a backup without its key when there is none here, before anything is done for nothing.
func (r *restore) wantKey(m backup.Manifest) error {
	if m.KeyIncluded || r.MasterKey != "" || r.has(keyName) {
		return nil
	}
	return fmt.Errorf("the backup is without its master key, and PINs and secrets cannot be read without it: give it with --master-key, or put it in %s",
		filepath.Join(r.DataDir, keyName))
}

func (r *restore) unpack(ctx context.Context, b *backup.Reader) error {
	opt := r.staged.cluster(r.log)
	db, err := pglocal.NewRebuild(ctx, opt, b.Manifest.PostgresMajor, r.owner)
	var other *pglocal.MajorError
	if errors.As(err, &other) {
		return fmt.Errorf("the backup was made by PostgreSQL %d, which alone can open it, and %s: install PostgreSQL %[1]d",
			other.Major, other.Have())
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
		rest = strings.TrimPrefix(rest, "./") // the server itself names some directories so
	}
	switch plain := fs.ValidPath(strings.TrimSuffix(rest, "/")) && rest != "."; { // neither out of its place nor into another's
	case first == postgresName && plain:
		inside := *h
		inside.Name = rest
		return db.Put(&inside, content)
	case h.Typeflag == tar.TypeReg && (h.Name == keyName || first == sandboxName && plain):
		return writeSynced(filepath.Join(r.staging, filepath.FromSlash(h.Name)), content)
	}
	return fmt.Errorf("%w (%s is not known)", backup.ErrDamaged, h.Name)
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

// prove starts the database where it is staged: it recovers, and what it holds is what was said, and can be opened.
func (r *restore) prove(ctx context.Context, m backup.Manifest) (err error) {
	key := r.staged
	if m.KeyIncluded {
		if err := r.sameKey(); err != nil {
			return err
		}
		key.MasterKey = "" // the one that will be there
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
		return fmt.Errorf("%w (the schema has version %d, and its manifest says %d)", backup.ErrDamaged, schema, m.Schema)
	}
	err = checkKey(ctx, key, own.DSN("postgres"))
	if errors.Is(err, encryption.ErrOpen) {
		err = fmt.Errorf("%w If it was changed after the backup, the one of before is needed", err)
	}
	if err != nil || !m.KeyIncluded || r.MasterKey == "" {
		return err
	}
	if err := checkKey(ctx, r.staged, own.DSN("postgres")); err != nil { // a server that is given it would not start there
		return fmt.Errorf("the backup has its own master key in it, and the one that is given does not open it: leave out --master-key and DEVICEACCESS_MASTER_KEY, "+
			"here and when the server is started (%w)", err)
	}
	return nil
}
