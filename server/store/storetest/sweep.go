package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// unclaimedAge is the age from which a directory without a lock counts as abandoned: its process died between
// creating and locking it.
const unclaimedAge = 10 * time.Minute

// sweep removes what killed test processes left in root. It ignores failures, such as for directories of other users.
func sweep(ctx context.Context, root string) {
	paths, _ := filepath.Glob(filepath.Join(root, runPrefix+"*")) // fails only on a bad pattern
	for _, path := range paths {
		if owner, ok := abandoned(path); ok {
			_ = (&runDir{path: path, owner: owner}).reap(ctx)
		}
	}
}

// abandoned reports whether the process of a directory has died, and returns the lock, if there is one.
func abandoned(path string) (*pglocal.Lock, bool) {
	name := filepath.Join(path, ownerLock)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(path)
		return nil, err == nil && time.Since(info.ModTime()) > unclaimedAge
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	owner, err := pglocal.TryLock(name)
	return owner, err == nil
}

// reap stops the server of the directory, which may have outlived its process, and removes the directory.
func (r *runDir) reap(ctx context.Context) error {
	if _, err := os.Stat(r.clusterDir()); err == nil {
		if err := pglocal.Reap(ctx, r.clusterDir()); err != nil {
			return errors.Join(err, r.release())
		}
	}
	return r.remove()
}
