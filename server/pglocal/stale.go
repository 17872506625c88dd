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

// staleGrace is how long a server that was left behind gets to obey a signal before the next, harder one.
const staleGrace = 20 * time.Second

// Reap stops the server on dir that was left behind by a process that has died, if there is one. It is for a
// directory that will not be started again; Start does the same by itself.
// It fails with ErrInUse when the process lives.
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

// clearStale makes way for a new server: we hold the lock, so whatever still runs on the data was left
// behind by a process that has died.
func (c *Cluster) clearStale(ctx context.Context) error {
	if err := c.stopOrphans(ctx); err != nil {
		return err
	}
	file, err := readPidFile(c.data.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errBadPidFile):
		// a power cut can leave it empty
	case err != nil:
		return fmt.Errorf("start database: %w", err)
	case !alive(file.pid):
		return nil // PostgreSQL sees this itself, and recovers
	}
	// The id now belongs to another program, which PostgreSQL would take for its own server and refuse.
	c.opt.Log.Warn("removing postmaster.pid left behind by a server that has gone", "data", c.data.path, "pid", file.pid)
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
		c.opt.Log.Warn("stopping a server left behind", "data", c.data.path, "pids", pids, "signal", sig)
		signalServer(pids, c.postmasterPid(), sig)
		if err := c.awaitOrphans(ctx, sig == syscall.SIGINT); err != nil {
			return err
		}
	}
	if pids, err := serversOf(c.data.path); err != nil || len(pids) > 0 {
		return errors.Join(err, fmt.Errorf("start database: processes %v of an earlier server on %s cannot be stopped: end them and try again",
			pids, c.data.path))
	}
	return nil
}

// cutOff ends what an initdb that was killed has left running on data that is of no use to anybody.
func cutOff(ctx context.Context, data string) error {
	for end := time.Now().Add(staleGrace); ; {
		pids, err := serversOf(data)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if time.Now().After(end) {
			return fmt.Errorf("start database: processes %v of an earlier start in %s cannot be stopped: end them and try again", pids, data)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for an earlier start to end: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// postmasterPid is 0 when no server says that it runs.
func (c *Cluster) postmasterPid() int {
	file, err := readPidFile(c.data.path)
	if err != nil {
		return 0
	}
	return file.pid
}

// signalServer tells the first process, which stops the others in good order. Without it they just have to
// go, and SIGINT would only cancel what they are doing.
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

// awaitOrphans waits until all have gone, or until it is time for the next signal.
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
			return fmt.Errorf("wait for a server left behind to stop: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
