package pglocal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// process is the server's first process, the postmaster.
type process struct {
	cmd  *exec.Cmd
	tail *logTail
	done chan struct{} // closed when it has ended
	err  error         // the reason; valid once done is closed
}

// slowStart is the duration after which a start is logged as slow: after a crash, recovery may take long.
const slowStart = 10 * time.Second

// logGrace is how long a stopped server may keep its log open: when its first process is killed, a busy child lives on.
const logGrace = 500 * time.Millisecond

// launch starts the server and waits until it responds. It retries a failed recovery once, because a recovery can block
// itself but not the next one. An unlogged table whose creation was rolled back leaves an empty file. If all processes
// are killed before the log contains the rollback, recovery creates the table's files again and finds the old one
// (PostgreSQL bug 17731).
func (c *Cluster) launch(ctx context.Context) error {
	if err := c.spawn(ctx); err != nil {
		return err
	}
	err := c.awaitReady(ctx)
	if err == nil || !c.proc.tail.has(failedRecovery) {
		return err
	}
	c.opt.Log.Warn("the recovery of the database has failed; the server retries it once", "data", c.data.path)
	<-c.proc.done
	if err := c.spawn(ctx); err != nil {
		return err
	}
	return c.awaitReady(ctx)
}

// failedRecovery is in the log of a server that has stopped because its recovery failed.
const failedRecovery = "startup process failure"

// spawn starts the server in its own process group, so that ^C at the terminal reaches only us, and we decide when the
// database stops.
func (c *Cluster) spawn(context.Context) error {
	p := &process{tail: &logTail{log: c.opt.Log}, done: make(chan struct{})}
	p.cmd = exec.Command( //nolint:noctx // it outlives the context of its start, and Stop ends it
		filepath.Join(c.bin.Dir, "postgres"), c.serverArgs()...)
	p.cmd.Dir = c.data.path
	p.cmd.Env = childEnv()
	p.cmd.Stdout, p.cmd.Stderr = p.tail, p.tail
	p.cmd.WaitDelay = logGrace
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account.cred, Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr, syscall.SIGINT)

	started := make(chan error)
	go func() {
		// The parent-death signal depends on the thread that forked, not the process. That thread must live as long as
		// the server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = c.explain(p.cmd.Wait(), p.tail)
		close(p.done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start database: %w", err)
	}
	c.proc = p
	return nil
}

// explain returns why the server ended with err. A server that ended well on our request needs no reason.
func (c *Cluster) explain(err error, tail *logTail) error {
	// it ended well, but its log was still open
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	switch {
	case err == nil && c.stopping.Load():
		return nil
	case err == nil:
		err = errors.New("it was stopped by another process")
	}
	return fmt.Errorf("the database server has stopped: %w; the end of its log:\n%s", err, tail)
}

func (c *Cluster) serverArgs() []string {
	settings := map[string]string{
		"listen_addresses":        "",
		"port":                    socketPort,
		"unix_socket_directories": `"` + c.socket + `"`,
		"unix_socket_permissions": "0700",
		"hba_file":                c.hbaPath(),
		"max_connections":         "200",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
		"log_destination":         "stderr",
		"log_line_prefix":         "",
		"max_slot_wal_keep_size":  maxBackupWAL,
		// Rows contain secrets, so neither statements nor details of their errors are logged.
		"log_min_error_statement": "panic",
		"log_error_verbosity":     "terse",
	}
	if c.opt.NoSync {
		maps.Copy(settings, map[string]string{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"})
	}
	maps.Copy(settings, c.opt.Settings)
	args := []string{"-D", c.data.path}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// childEnv is the part of our environment that other programs receive: what PostgreSQL needs, and the variables with
// the names. Another user may read it there, ours contains secrets, and PG… and LC_… variables would change the behavior
// of PostgreSQL.
func childEnv(names ...string) []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range append(names, "PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// awaitReady waits until the server is ready for connections, or ctx ends.
func (c *Cluster) awaitReady(ctx context.Context) error {
	slow := time.After(slowStart)
	for wait := 2 * time.Millisecond; ; wait = min(wait*3/2, 50*time.Millisecond) {
		file, err := readPidFile(c.data.path)
		if err == nil && file.pid == c.Pid() && file.ready {
			return nil
		}
		select {
		case <-c.proc.done:
			return c.proc.err
		case <-ctx.Done():
			return fmt.Errorf("wait for database to start: %w; the end of its log:\n%s", ctx.Err(), c.proc.tail)
		case <-slow:
			c.opt.Log.Info("the database is still starting; it may be recovering from a crash", "data", c.data.path)
		case <-time.After(wait):
		}
	}
}

func ping(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	return conn.Close(ctx)
}

// stop requests a "fast" shutdown, and when ctx ends an "immediate" one.
func (p *process) stop(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
	}
	if err := p.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	<-p.done
	return fmt.Errorf("stop database: it was stopped immediately and recovers at its next start: %w", ctx.Err())
}

func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop database: send %s: %w", sig, err)
	}
	return nil
}
