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

// Handle is a way to a cluster, whoever runs it.
type Handle struct {
	socket  string
	log     *slog.Logger
	cluster *Cluster // nil when another process runs it
	joined  *pgx.Conn
}

const (
	// attachWithin is how long Open waits for a server that another process is just starting or stopping.
	attachWithin = 10 * time.Second

	// stopWithin is how long a cluster that Open has started may take to shut down before it is cut off.
	stopWithin = 15 * time.Second

	// ofCommands is the name of a cluster that Open has started.
	ofCommands = "deviceaccess-command"

	// users is the advisory lock that everybody shares who has joined such a cluster, and that is had alone by who stops it.
	users = int64(0x6461706775736572)
)

// Open is for a command that needs the cluster for a moment: when another process runs it, Open connects to
// that one; otherwise it starts the cluster, and Close stops it.
//
// It fails like Start; with ErrInUse only when the other process's server does not answer within a few
// seconds, and with fs.ErrPermission when the cluster belongs to another user.
func Open(ctx context.Context, opt Options) (*Handle, error) {
	own := opt
	own.Settings = map[string]string{"cluster_name": ofCommands}
	maps.Copy(own.Settings, opt.Settings)
	for end := time.Now().Add(attachWithin); ; {
		cluster, err := Start(ctx, own)
		if err == nil {
			return &Handle{socket: cluster.socket, log: cluster.opt.Log, cluster: cluster}, nil
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
			return nil, fmt.Errorf("%w, and its database does not answer: wait until it has started, or stop it: %w", err, attachErr)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the database in %s: %w", opt.Dir, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ByCommand is whether the cluster in dir, which another process runs, is there for a command alone and ends with it. It fails while
// that cannot be known, as that is being started or stopped.
func ByCommand(ctx context.Context, dir string) (bool, error) {
	conn, _, err := attach(ctx, dir)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has been read from
	var name string
	if err := conn.QueryRow(ctx, "show cluster_name").Scan(&name); err != nil {
		return false, fmt.Errorf("ask whose database it is: %w", err)
	}
	return name == ofCommands, nil
}

// join is a handle of the cluster that another process runs on dir, which does not stop it before that is closed if it is a command.
func join(ctx context.Context, dir string) (*Handle, error) {
	conn, socket, err := attach(ctx, dir)
	if err != nil {
		return nil, err
	}
	var free bool
	if err = conn.QueryRow(ctx, "select pg_try_advisory_lock_shared($1)", users).Scan(&free); err == nil && !free {
		err = errors.New("it is being stopped")
	}
	if err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return &Handle{socket: socket, joined: conn}, nil
}

// attach connects to the server that runs on dir.
func attach(ctx context.Context, dir string) (*pgx.Conn, string, error) {
	data, err := findDataDir(dir)
	if err != nil {
		return nil, "", err
	}
	if data.path == "" {
		return nil, "", fmt.Errorf("there is no database in %s yet", dir)
	}
	file, err := readPidFile(data.path)
	if err != nil {
		return nil, "", err
	}
	if !file.ready || !filepath.IsAbs(file.socket) {
		return nil, "", errors.New("its server is not ready")
	}
	if _, err := os.Stat(file.socket); errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("this process does not see the folder of its socket, %s: a service that systemd runs with PrivateTmp=yes has a %s of its own; "+
			"run it with PrivateTmp=no, or with TMPDIR set to a folder that both see", file.socket, filepath.Dir(file.socket))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn(file.socket, "postgres"))
	if err != nil {
		return nil, "", fmt.Errorf("connect to database: %w", err)
	}
	return conn, file.socket, nil
}

func notPermitted(dir string, err error) error {
	owner := "another user"
	if id, ok, statErr := ownerOf(dir); statErr == nil && ok {
		owner = "user " + userName(id.Uid)
	}
	return fmt.Errorf("the database in %s belongs to %s: run this command as that user or as root: %w", dir, owner, err)
}

// DSN is the URL of the database named db, for the superuser.
func (h *Handle) DSN(db string) string { return dsn(h.socket, db) }

// Close stops the cluster if Open has started it, once nobody else uses it whose Open has joined it, or ctx has ended.
func (h *Handle) Close(ctx context.Context) error {
	if h.joined != nil {
		_ = h.joined.Close(context.WithoutCancel(ctx)) // the other process may have stopped it
	}
	if h.cluster == nil {
		return nil
	}
	last := h.awaitOthers(ctx)
	defer last()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return h.cluster.Stop(ctx)
}

// awaitOthers waits until nobody else uses the cluster, and keeps it so until end is called. When ctx ends or the cluster does not
// answer, it does not wait.
func (h *Handle) awaitOthers(ctx context.Context) (end func()) {
	conn, err := pgx.Connect(ctx, h.DSN("postgres"))
	if err != nil {
		return func() {}
	}
	end = func() { _ = conn.Close(context.WithoutCancel(ctx)) }
	for told := false; ; told = true {
		var alone bool
		if err := conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", users).Scan(&alone); err != nil || alone {
			return end
		}
		if !told {
			h.log.Info("another command uses the database, which ends with this one: waiting for that")
		}
		select {
		case <-ctx.Done():
			return end
		case <-time.After(50 * time.Millisecond):
		}
	}
}
