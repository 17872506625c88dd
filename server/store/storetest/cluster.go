package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// cluster is the server of this test process.
type cluster struct {
	run      *runDir
	opt      pglocal.Options
	server   *pglocal.Cluster
	standbys []*pglocal.Cluster
	major    int

	mu   sync.Mutex
	idle []*pgx.Conn // connections of execute
}

// minFreeMemory is the free memory, in bytes, that a cluster in memory requires.
const minFreeMemory = 1 << 30

// startCluster starts a copy of the template in a new directory of root, and removes abandoned directories. settings
// override those of the tests' clusters, and may be nil.
func startCluster(ctx context.Context, root string, t template, settings map[string]string) (*cluster, error) {
	sweep(ctx, root)
	run, err := newRunDir(root)
	if err != nil {
		return nil, err
	}
	c := &cluster{run: run}
	if err := c.start(ctx, t, settings); err != nil {
		return nil, errors.Join(err, run.remove())
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, t template, settings map[string]string) error {
	bin, err := pglocal.Locate(ctx, pglocal.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	c.opt = pglocal.Options{
		Dir:        c.run.clusterDir(),
		BinDir:     bin.Dir,
		SocketRoot: c.run.path,
		NoSync:     true,
		Settings: map[string]string{
			"max_connections": "400", // several concurrent tests with up to five servers each
			"autovacuum":      "off", // it would delay dropping databases
			"max_wal_senders": "0",
			"shared_buffers":  "64MB",
			"wal_level":       "minimal",
		},
	}
	maps.Copy(c.opt.Settings, settings)
	if err := t.put(ctx, bin, c.opt); err != nil {
		return err
	}
	c.major = bin.Major
	c.server, err = pglocal.Start(ctx, c.opt)
	return err
}

func (c *cluster) stop(ctx context.Context) error {
	var errs []error
	for _, conn := range c.idle {
		errs = append(errs, conn.Close(ctx))
	}
	for _, s := range append(c.standbys, c.server) {
		errs = append(errs, s.Stop(ctx))
	}
	return errors.Join(append(errs, c.run.remove())...)
}

// scratchRoot returns a file system in memory if there is one with enough space.
func scratchRoot() string {
	const memory = "/dev/shm"
	var stat syscall.Statfs_t
	if err := syscall.Statfs(memory, &stat); err == nil && stat.Bavail*uint64(stat.Bsize) >= minFreeMemory {
		return memory
	}
	return os.TempDir()
}

// runDir is the directory of one test process. A lock in it shows that the process is alive.
type runDir struct {
	path  string
	owner *pglocal.Lock
}

const (
	runPrefix = "da-test-" // short, since a socket's path is
	ownerLock = "owner"
)

func newRunDir(root string) (*runDir, error) {
	path, err := os.MkdirTemp(root, runPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a folder for the tests' database: %w", err)
	}
	run := &runDir{path: path}
	if err := run.claim(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a folder for the tests' database: %w", err), run.remove())
	}
	return run, nil
}

func (r *runDir) claim() (err error) {
	// As root the server runs as another user, which needs access.
	if err := os.Chmod(r.path, 0o755); err != nil {
		return err
	}
	// Locked before it gets its name, so that other processes never find it unlocked.
	name := filepath.Join(r.path, ownerLock)
	if r.owner, err = pglocal.TryLock(name + ".new"); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func (r *runDir) clusterDir() string { return filepath.Join(r.path, "cluster") }

// remove removes the directory while it is locked.
func (r *runDir) remove() error {
	return errors.Join(os.RemoveAll(r.path), r.release())
}

func (r *runDir) release() error {
	if r.owner == nil {
		return nil
	}
	return r.owner.Release()
}
