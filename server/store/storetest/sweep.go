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

// unclaimedFor is how old a folder without a lock has to be before it is taken for abandoned: its process
// died within the moment between making and locking it.
const unclaimedFor = 10 * time.Minute

// sweep removes what test processes that were killed have left in root. It leaves alone what it cannot
// remove, such as the folders of other users: tests do not depend on it.
func sweep(ctx context.Context, root string) {
	paths, _ := filepath.Glob(filepath.Join(root, runPrefix+"*")) // fails only on a bad pattern
	for _, path := range paths {
		if owner, ok := abandoned(path); ok {
			_ = (&runDir{path: path, owner: owner}).reap(ctx)
		}
	}
}

// abandoned is whether the process of a folder has died. If so it returns the lock, if there is one.
func abandoned(path string) (*pglocal.Lock, bool) {
	name := filepath.Join(path, ownerLock)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(path)
		return nil, err == nil && time.Since(info.ModTime()) > unclaimedFor
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	owner, err := pglocal.TryLock(name)
	return owner, err == nil
}

// reap removes the folder once its server has stopped, which may have outlived its process.
func (r *runDir) reap(ctx context.Context) error {
	if _, err := os.Stat(r.clusterDir()); err == nil {
		if err := pglocal.Reap(ctx, r.clusterDir()); err != nil {
			return errors.Join(err, r.release())
		}
	}
	return r.remove()
}
