package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"
)

// staleGrace is how long an orphaned server may take to obey a signal before the next, harder one.
const staleGrace = 20 * time.Second

// Reap stops the orphaned server on dir, whose process has died, if there is one. It is for a directory that will not
// be started again; Start does the same. It returns ErrInUse if the process lives.
func Reap(ctx context.Context, dir string) error {
	c := &Cluster{opt: Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}}
	err := c.enterDir(ctx)
	if err == nil && c.data.path != "" {
		err = c.stopOrphans(ctx)
	}
	if err == nil {
		c.removeStaleSocketDir(ctx)
	}
	return errors.Join(err, c.releaseAll())
}

// clearStale prepares for a new server. We hold the lock, so a server that still runs on the data is orphaned.
func (c *Cluster) clearStale(ctx context.Context) error {
	if err := c.stopOrphans(ctx); err != nil {
		return err
	}
	file, err := readPidFile(c.data.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errBadPidFile):
		// a power failure can leave it empty
	case err != nil:
		return fmt.Errorf("start database: %w", err)
	case !alive(file.pid):
		return nil // PostgreSQL detects this and recovers
	}
	// The id belongs to another program now, which PostgreSQL would take for its own server and refuse to start.
	c.opt.Log.Warn("removing postmaster.pid of a server that has ended", "data", c.data.path, "pid", file.pid)
	if err := os.Remove(pidFilePath(c.data.path)); err != nil {
		return fmt.Errorf("start database: %w", err)
	}
	return nil
}

func (c *Cluster) stopOrphans(ctx context.Context) error {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		pids, err := serversOf(c.data.path)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		c.opt.Log.Warn("stopping an orphaned server", "data", c.data.path, "pids", pids, "signal", sig)
		signalServer(pids, c.postmasterPid(), sig)
		if err := c.awaitOrphans(ctx, sig == syscall.SIGINT); err != nil {
			return err
		}
	}
	if pids, err := serversOf(c.data.path); err != nil || len(pids) > 0 {
		return errors.Join(
			err,
			fmt.Errorf(
				"start database: processes %v of an earlier server on %s cannot be stopped: end them and try again",
				pids,
				c.data.path,
			),
		)
	}
	return nil
}

// killLeftovers kills the processes of an initdb that was killed. Its data is useless.
func killLeftovers(ctx context.Context, data string) error {
	for end := time.Now().Add(staleGrace); ; {
		pids, err := serversOf(data)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if time.Now().After(end) {
			return fmt.Errorf(
				"start database: processes %v of an earlier start in %s cannot be stopped: end them and try again",
				pids,
				data,
			)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for an earlier start to end: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// postmasterPid returns the id in postmaster.pid, or 0.
func (c *Cluster) postmasterPid() int {
	file, err := readPidFile(c.data.path)
	if err != nil {
		return 0
	}
	return file.pid
}

// signalServer signals the first process, which shuts the others down. Without it, all processes must quit, and SIGINT
// would only cancel their statements.
func signalServer(pids []int, postmaster int, sig syscall.Signal) {
	if slices.Contains(pids, postmaster) && sig != syscall.SIGKILL {
		_ = syscall.Kill(postmaster, sig)
		return
	}
	if sig == syscall.SIGINT {
		sig = syscall.SIGQUIT
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}

// awaitOrphans waits until all have ended, or until the next signal is due.
func (c *Cluster) awaitOrphans(ctx context.Context, orderly bool) error {
	grace := staleGrace
	if !orderly {
		grace /= 4
	}
	for end := time.Now().Add(grace); time.Now().Before(end); {
		if pids, err := serversOf(c.data.path); err != nil || len(pids) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for an orphaned server to stop: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
