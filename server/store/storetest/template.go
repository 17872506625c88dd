package storetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

const (
	templateName = "store_template"

	// maxTemplates of some 50 MB each stay in the cache, the latest used ones.
	maxTemplates = 4
)

// template is a cluster whose database templateName has been migrated. It is kept as an archive in the
// user's cache.
type template struct {
	cache   string
	migrate Migrate
	version string
}

// archive returns a name that depends on everything that the template depends on.
func (t template) archive(bin pglocal.Binaries) string {
	sum := sha256.Sum256([]byte(bin.Dir + "\n" + bin.Version + "\n" + t.version))
	return filepath.Join(t.cache, hex.EncodeToString(sum[:8])+".tar")
}

// put puts a copy of the template in opt.Dir, and creates the template first if the cache lacks it.
func (t template) put(ctx context.Context, bin pglocal.Binaries, opt pglocal.Options) error {
	lockName, archive := filepath.Join(t.cache, "lock"), t.archive(bin)
	lock, err := pglocal.WaitSharedLock(ctx, lockName)
	if err != nil {
		return fmt.Errorf("wait for the template of the tests' databases: %w", err)
	}
	copied, err := copyTemplate(archive, opt.Dir)
	if err := errors.Join(err, lock.Release()); err != nil || copied {
		return err
	}

	if lock, err = pglocal.WaitLock(ctx, lockName); err != nil {
		return fmt.Errorf("wait for the template of the tests' databases: %w", err)
	}
	copied, err = copyTemplate(archive, opt.Dir) // another process may have been quicker
	if err == nil && !copied {
		err = t.make(ctx, opt, archive)
	}
	return errors.Join(err, lock.Release())
}

// copyTemplate unpacks the archive to dir. It returns false if there is none.
func copyTemplate(archive, dir string) (bool, error) {
	now := time.Now()
	if err := os.Chtimes(archive, now, now); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err := readTar(archive, dir); err != nil {
		return false, fmt.Errorf(
			"copy the template of the tests' databases (remove %s if it is broken): %w",
			archive,
			err,
		)
	}
	return true, nil
}

// make creates the template in opt.Dir, and caches a copy.
func (t template) make(ctx context.Context, opt pglocal.Options, archive string) error {
	server, err := pglocal.Start(ctx, opt)
	if err != nil {
		return err
	}
	if err := errors.Join(t.fill(ctx, server), server.Stop(ctx)); err != nil {
		return fmt.Errorf("make the template of the tests' databases: %w", err)
	}
	if err := writeTar(archive, opt.Dir); err != nil {
		return fmt.Errorf("keep the template of the tests' databases: %w", err)
	}
	return prune(filepath.Dir(archive))
}

func (t template) fill(ctx context.Context, server *pglocal.Cluster) error {
	admin := server.DSN("postgres")
	if err := execute(ctx, admin, "create database "+templateName); err != nil {
		return err
	}
	if err := t.migrate(ctx, server.DSN(templateName)); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	// a database with connections cannot be copied
	return execute(ctx, admin, "alter database "+templateName+" with allow_connections false")
}

// cacheDir is private to the user: as root the archives hold files of another user.
func cacheDir() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil { // as for an account without a home
		user = filepath.Join(os.TempDir(), "cache-"+strconv.Itoa(os.Geteuid()))
	}
	dir := filepath.Join(user, "deviceaccess-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the cache of the tests' databases: %w", err)
	}
	return dir, nil
}

// prune removes the least recently used templates.
func prune(cache string) error {
	names, err := filepath.Glob(filepath.Join(cache, "*.tar"))
	if err != nil {
		return err
	}
	used := map[string]time.Time{}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("look for old templates of the tests' databases: %w", err)
		}
		used[name] = info.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(used[b].Compare(used[a]), cmp.Compare(a, b)) })
	for _, name := range names[min(len(names), maxTemplates):] {
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("remove an old template of the tests' databases: %w", err)
		}
	}
	return nil
}
