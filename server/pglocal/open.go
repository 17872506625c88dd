package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// Handle gives access to a cluster that this or another process runs.
type Handle struct {
	socket   string
	password string
	log      *slog.Logger
	cluster  *Cluster // nil if another process runs it
	joined   *pgx.Conn
}

const (
	// attachTimeout is how long Open waits for a server that another process is starting or stopping.
	attachTimeout = 10 * time.Second

	// stopTimeout is how long a cluster that Open has started may take to shut down.
	stopTimeout = 15 * time.Second

	// commandClusterName is the name of clusters that Open has started.
	commandClusterName = "deviceaccess-command"

	// commandLock is an advisory lock in such a cluster. Every joined process shares it; the process that stops the
	// cluster holds it exclusively.
	commandLock = int64(0x6461706775736572)
)

// Open gives a command access to the cluster for a short time. If another process runs the cluster, Open connects to
// it. Otherwise it starts the cluster, and Close stops it.
//
// It returns the errors of Start, ErrInUse only if the other process's server does not respond within a few seconds,
// and fs.ErrPermission if the cluster belongs to another user.
func Open(ctx context.Context, opt Options) (*Handle, error) {
	own := opt
	own.Settings = map[string]string{"cluster_name": commandClusterName}
	maps.Copy(own.Settings, opt.Settings)
	for end := time.Now().Add(attachTimeout); ; {
		cluster, err := Start(ctx, own)
		if err == nil {
			return &Handle{
				socket:   cluster.socket,
				password: cluster.password,
				log:      cluster.opt.Log,
				cluster:  cluster,
			}, nil
		}
		if !errors.Is(err, ErrInUse) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		h, attachErr := join(ctx, opt.Dir)
		switch {
		case attachErr == nil:
			return h, nil
		case errors.Is(err, fs.ErrPermission) || errors.Is(attachErr, fs.ErrPermission):
			return nil, notPermitted(opt.Dir, errors.Join(err, attachErr))
		case time.Now().After(end):
			return nil, fmt.Errorf(
				"%w, and its database does not respond: wait until it has started, or stop it: %w",
				err,
				attachErr,
			)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the database in %s: %w", opt.Dir, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// StartedByCommand reports whether the cluster in dir, which another process runs, was started by Open and ends with
// that command. It fails while the cluster is being started or stopped.
func StartedByCommand(ctx context.Context, dir string) (bool, error) {
	conn, _, _, err := attach(ctx, dir)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was only read from
	var name string
	if err := conn.QueryRow(ctx, "show cluster_name").Scan(&name); err != nil {
		return false, fmt.Errorf("ask for the cluster name: %w", err)
	}
	return name == commandClusterName, nil
}

// Join is Open for a cluster that another process runs. It starts no cluster.
func Join(ctx context.Context, dir string) (*Handle, error) { return join(ctx, dir) }

// join returns a Handle for the cluster that another process runs on dir. If that process is a command, it does not
// stop the cluster before the Handle is closed.
func join(ctx context.Context, dir string) (*Handle, error) {
	conn, socket, password, err := attach(ctx, dir)
	if err != nil {
		return nil, err
	}
	var free bool
	if err = conn.QueryRow(ctx, "select pg_try_advisory_lock_shared($1)", commandLock).
		Scan(&free); err == nil &&
		!free {
		err = errors.New("the cluster is being stopped")
	}
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return &Handle{socket: socket, password: password, joined: conn}, nil
}

// attach connects to the server that runs on dir.
func attach(ctx context.Context, dir string) (conn *pgx.Conn, socket, password string, err error) {
	data, err := findDataDir(dir)
	if err != nil {
		return nil, "", "", err
	}
	if data.path == "" {
		return nil, "", "", fmt.Errorf("there is no database in %s yet", dir)
	}
	file, err := readPidFile(data.path)
	if err != nil {
		return nil, "", "", err
	}
	if !file.ready || !filepath.IsAbs(file.socket) {
		return nil, "", "", errors.New("its server is not ready")
	}
	if _, err := os.Stat(file.socket); errors.Is(err, fs.ErrNotExist) {
		return nil, "", "", fmt.Errorf(
			"this process does not see the directory of its socket, %s: a systemd service with PrivateTmp=yes has "+
				"a private %s; "+
				"run it with PrivateTmp=no, or set TMPDIR to a directory that both see",
			file.socket,
			filepath.Dir(file.socket),
		)
	}
	if password, err = readPassword(dir); err != nil {
		return nil, "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err = pgx.Connect(ctx, dsn(file.socket, "postgres", password))
	if err != nil {
		return nil, "", "", fmt.Errorf("connect to database: %w", err)
	}
	return conn, file.socket, password, nil
}

func notPermitted(dir string, err error) error {
	owner := "another user"
	if id, ok, statErr := ownerOf(dir); statErr == nil && ok {
		owner = "user " + userName(id.Uid)
	}
	return fmt.Errorf("the database in %s belongs to %s: run this command as that user or as root: %w", dir, owner, err)
}

// DSN returns the URL of the database db, for the superuser. It contains the password.
func (h *Handle) DSN(db string) string { return dsn(h.socket, db, h.password) }

// Close stops the cluster if Open has started it, after all processes that have joined it are done, or when ctx ends.
func (h *Handle) Close(ctx context.Context) error {
	if h.joined != nil {
		_ = h.joined.Close(context.WithoutCancel(ctx)) // the other process may have stopped it
	}
	if h.cluster == nil {
		return nil
	}
	last := h.awaitCommands(ctx)
	defer last()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return h.cluster.Stop(ctx)
}

// awaitCommands waits until no other process uses the cluster, and keeps others out until end is called. It does not
// wait if ctx ends or the cluster does not respond.
func (h *Handle) awaitCommands(ctx context.Context) (end func()) {
	conn, err := pgx.Connect(ctx, h.DSN("postgres"))
	if err != nil {
		return func() {}
	}
	end = func() { _ = conn.Close(context.WithoutCancel(ctx)) }
	for logged := false; ; logged = true {
		var alone bool
		if err := conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", commandLock).Scan(&alone); err != nil || alone {
			return end
		}
		if !logged {
			h.log.Info("waiting for another command that uses the database")
		}
		select {
		case <-ctx.Done():
			return end
		case <-time.After(50 * time.Millisecond):
		}
	}
}
