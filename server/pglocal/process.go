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

// process is the server's first process, which PostgreSQL calls the postmaster.
type process struct {
	cmd  *exec.Cmd
	tail *logTail
	done chan struct{} // closed when it has gone
	err  error         // why; to be read once done is closed
}

// slowStart is when a start is worth a word: after a crash there may be much to recover.
const slowStart = 10 * time.Second

// logGrace is how long a server that has gone may leave its log open: when its first process is killed, a
// child that is busy lives on.
const logGrace = 500 * time.Millisecond

// launch starts the server and waits until it answers. A recovery may stand in its own way, and not in that of the next one: an unlogged
// table whose making was taken back leaves an empty file, and when all was killed before that was in the log, the table's files are made
// again beside it (PostgreSQL's bug 17731). So one that fails is tried once more.
func (c *Cluster) launch(ctx context.Context) error {
	if err := c.spawn(ctx); err != nil {
		return err
	}
	err := c.awaitReady(ctx)
	if err == nil || !c.proc.tail.has(failedRecovery) {
		return err
	}
	c.opt.Log.Warn("the database's recovery has failed, it is tried once more", "data", c.data.path)
	<-c.proc.done
	if err := c.spawn(ctx); err != nil {
		return err
	}
	return c.awaitReady(ctx)
}

// failedRecovery is in the log of a server that has ended because its recovery did.
const failedRecovery = "startup process failure"

// spawn starts the server in a process group of its own: a ^C at the terminal reaches only us, and we decide
// when the database stops.
func (c *Cluster) spawn(context.Context) error {
	p := &process{tail: &logTail{log: c.opt.Log}, done: make(chan struct{})}
	p.cmd = exec.Command( //nolint:noctx // it outlives the context of its start, and is stopped in an orderly way
		filepath.Join(c.bin.Dir, "postgres"), c.serverArgs()...)
	p.cmd.Dir = c.data.path
	p.cmd.Env = serverEnv()
	p.cmd.Stdout, p.cmd.Stderr = p.tail, p.tail
	p.cmd.WaitDelay = logGrace
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account.cred, Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr, syscall.SIGINT)

	started := make(chan error)
	go func() {
		// The signal at our death follows the thread that forked, not the process: that thread has to live
		// as long as the server.
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

// explain says why the server ended with err. A server that ended well because we asked needs no reason.
func (c *Cluster) explain(err error, tail *logTail) error {
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well, and its log was held open
		err = nil
	}
	switch {
	case err == nil && c.stopping.Load():
		return nil
	case err == nil:
		err = errors.New("it was told to stop by somebody else")
	}
	return fmt.Errorf("the database's server has gone: %w; the end of its log:\n%s", err, tail)
}

func (c *Cluster) serverArgs() []string {
	settings := map[string]string{
		"listen_addresses":        "",
		"port":                    socketPort,
		"unix_socket_directories": `"` + c.socket + `"`,
		"unix_socket_permissions": "0700",
		"max_connections":         "200",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
		"log_destination":         "stderr",
		"log_line_prefix":         "",
		"max_slot_wal_keep_size":  keptForBackup,
		// Rows hold what a log must not: neither statements nor the details of their errors go there.
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

// serverEnv is all that PostgreSQL is told of our environment. Another user may read it there, and its own
// PG… and LC_… variables would change what it does.
func serverEnv() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// awaitReady waits until the server takes connections, for as long as ctx allows.
func (c *Cluster) awaitReady(ctx context.Context) error {
	slow := time.After(slowStart)
	for wait := 2 * time.Millisecond; ; wait = min(wait*3/2, 50*time.Millisecond) {
		file, err := readPidFile(c.data.path)
		if err == nil && file.pid == c.Pid() && file.ready {
			return ping(ctx, c.DSN("postgres"))
		}
		select {
		case <-c.proc.done:
			return c.proc.err
		case <-ctx.Done():
			return fmt.Errorf("wait for database to start: %w; the end of its log:\n%s", ctx.Err(), c.proc.tail)
		case <-slow:
			c.opt.Log.Info("database is still starting, it may be recovering from a crash", "data", c.data.path)
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

// stop is a "fast" shutdown, and when ctx ends an "immediate" one.
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
	return fmt.Errorf("stop database: it was cut off and recovers at its next start: %w", ctx.Err())
}

func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop database: send %s: %w", sig, err)
	}
	return nil
}
