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

	// maxSocketPath is what fits into sun_path everywhere: 104 bytes on macOS, 108 on Linux, with a final NUL.
	maxSocketPath = 103
)

// dsn is the URL of a database behind the socket in dir. It names all that a PG… variable of the
// environment could change.
func dsn(dir, db string) string {
	q := url.Values{"host": {dir}, "port": {socketPort}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + db, RawQuery: q.Encode()}
	return u.String()
}

// makeSocketDir makes the folder of the socket. Only the server's user (and root) can enter it, which is
// what makes it safe to trust every connection. It is never under Dir, whose path may be too long.
func (c *Cluster) makeSocketDir(ctx context.Context) error {
	c.removeStaleSocketDir(ctx)
	var err error
	for _, root := range []string{cmp.Or(c.opt.SocketRoot, os.TempDir()), os.TempDir(), "/tmp"} {
		if err = c.account.reach(root); err != nil {
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
		if err := c.account.own(dir); err != nil {
			return fmt.Errorf("make folder for the database's socket: %w", err)
		}
		if err := c.lock.note(dir); err != nil {
			return fmt.Errorf("note folder of the database's socket: %w", err)
		}
		return nil
	}
	return fmt.Errorf("make folder for the database's socket: %w", err)
}

// removeStaleSocketDir removes the folder that a process which was killed has left behind. The note is only
// a hint: in a copy of a directory it names the folder of the server that runs on the other. So nothing but what such a folder can hold
// is removed, and nothing where somebody listens. A server that was left behind on this directory is to be stopped before.
func (c *Cluster) removeStaleSocketDir(ctx context.Context) {
	dir, err := c.lock.noted()
	if err != nil || !strings.HasPrefix(filepath.Base(dir), socketPrefix) {
		return
	}
	socket := filepath.Join(dir, ".s.PGSQL."+socketPort)
	if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", socket); err == nil || !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			_ = conn.Close()
		}
		return // also one that is too busy to answer
	}
	for _, name := range []string{".s.PGSQL." + socketPort, ".s.PGSQL." + socketPort + ".lock", ""} {
		_ = os.Remove(filepath.Join(dir, name))
	}
}
