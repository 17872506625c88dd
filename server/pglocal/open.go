package pglocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// Handle is a way to a cluster, whoever runs it.
type Handle struct {
	socket  string
	cluster *Cluster // nil when another process runs it
}

// attachWithin is how long Open waits for a server that another process is just starting or stopping.
const attachWithin = 10 * time.Second

// Open is for a command that needs the cluster for a moment: when another process runs it, Open connects to
// that one; otherwise it starts the cluster, and Close stops it.
//
// It fails like Start; with ErrInUse only when the other process's server does not answer within a few
// seconds, and with fs.ErrPermission when the cluster belongs to another user.
func Open(ctx context.Context, opt Options) (*Handle, error) {
	for end := time.Now().Add(attachWithin); ; {
		cluster, err := Start(ctx, opt)
		if err == nil {
			return &Handle{socket: cluster.socket, cluster: cluster}, nil
		}
		if !errors.Is(err, ErrInUse) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		socket, attachErr := attach(ctx, opt.Dir)
		switch {
		case attachErr == nil:
			return &Handle{socket: socket}, nil
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

// attach returns the socket folder of the server that runs on dir, once it has answered.
func attach(ctx context.Context, dir string) (string, error) {
	data, err := findDataDir(dir)
	if err != nil {
		return "", err
	}
	if data.path == "" {
		return "", fmt.Errorf("there is no database in %s yet", dir)
	}
	file, err := readPidFile(data.path)
	if err != nil {
		return "", err
	}
	if !file.ready || !filepath.IsAbs(file.socket) {
		return "", errors.New("its server is not ready")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return file.socket, ping(ctx, dsn(file.socket, "postgres"))
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

// Close stops the cluster if Open has started it; ctx bounds that as it does Stop.
func (h *Handle) Close(ctx context.Context) error {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.Stop(ctx)
}
