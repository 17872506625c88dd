package pglocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	socketPort   = "5432"
	socketPrefix = "dapg-"

	// maxSocketPath fits into sun_path everywhere: 104 bytes on macOS, 108 on Linux, with a final NUL.
	maxSocketPath = 103
)

// dsn returns the URL of a database at the socket in dir, with the password of the superuser. It sets everything that PG… variables of the environment
// could change.
func dsn(dir, db, password string) string {
	q := url.Values{"host": {dir}, "port": {socketPort}, "sslmode": {"disable"}}
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", password),
		Path:     "/" + db,
		RawQuery: q.Encode(),
	}
	return u.String()
}

// makeSocketDir creates the directory of the socket. Only the server's user and root can enter it. It is never in Dir,
// whose path may be too long.
func (c *Cluster) makeSocketDir(ctx context.Context) error {
	c.removeStaleSocketDir(ctx)
	var err error
	for _, root := range []string{cmp.Or(c.opt.SocketRoot, os.TempDir()), os.TempDir(), "/tmp"} {
		if err = c.account.checkReachable(root); err != nil {
			continue
		}
		var dir string
		if dir, err = os.MkdirTemp(root, socketPrefix); err != nil {
			continue
		}
		c.socket = dir
		if len(filepath.Join(dir, ".s.PGSQL."+socketPort)) > maxSocketPath {
			err = fmt.Errorf("%s is too long for the path of a socket", dir)
			_ = os.Remove(dir)
			continue
		}
		if err := c.account.chown(dir); err != nil {
			return fmt.Errorf("create directory for the database's socket: %w", err)
		}
		if err := c.lock.writeNote(dir); err != nil {
			return fmt.Errorf("note directory of the database's socket: %w", err)
		}
		return nil
	}
	return fmt.Errorf("create directory for the database's socket: %w", err)
}

// removeStaleSocketDir removes the directory that a killed process has left. The note is only a hint: in a copy of a
// data directory it names the directory of another running server. It therefore removes only what such a directory can
// contain, and nothing while a server listens. Stop an orphaned server on this directory first.
func (c *Cluster) removeStaleSocketDir(ctx context.Context) {
	dir, err := c.lock.readNote()
	if err != nil || !strings.HasPrefix(filepath.Base(dir), socketPrefix) {
		return
	}
	socket := filepath.Join(dir, ".s.PGSQL."+socketPort)
	if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(
		ctx,
		"unix",
		socket,
	); err == nil ||
		!errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			_ = conn.Close()
		}
		// also a server that is too busy to respond
		return
	}
	for _, name := range []string{".s.PGSQL." + socketPort, ".s.PGSQL." + socketPort + ".lock", ""} {
		_ = os.Remove(filepath.Join(dir, name))
	}
}
