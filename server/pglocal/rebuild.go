package pglocal

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Rebuild builds a data directory from a BaseBackup. Start on its Dir then recovers it.
type Rebuild struct {
	cluster *Cluster
}

// NewRebuild starts a Rebuild in opt.Dir, which must not exist. The server will run as owner, if set. It returns a
// *MajorError if this machine does not have the backup's version of PostgreSQL, and the errors of Start.
func NewRebuild(ctx context.Context, opt Options, major int, owner Owner) (_ *Rebuild, err error) {
	acct := owner.account
	if acct.cred == nil {
		if acct, err = serverAccount(""); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("restore the database: %w", err)
	}
	c := &Cluster{opt: opt, account: acct, data: newDataDir(dir, major)}
	if _, err := locate(ctx, opt, acct, c.data); err != nil {
		return nil, err
	}
	if exists(dir) {
		return nil, fmt.Errorf("restore the database: %s already exists", dir)
	}
	if err := acct.mkdirAll(filepath.Dir(c.data.path)); err != nil {
		return nil, err
	}
	return &Rebuild{c}, c.makeDataDir(c.data.path)
}

// Put writes a directory or a file, as Copy passes it.
func (r *Rebuild) Put(header *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(header.Name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("restore the database: %q is not a path in its directory", header.Name)
	}
	path := filepath.Join(r.cluster.data.path, name)
	var err error
	switch header.Typeflag {
	case tar.TypeDir:
		if err = r.cluster.makeDataDir(path); errors.Is(err, os.ErrExist) {
			return nil // Copy passes the log's directory twice
		}
	case tar.TypeReg:
		err = r.write(path, content)
	default:
		err = fmt.Errorf("%s is neither a file nor a directory", header.Name)
	}
	if err != nil {
		return fmt.Errorf("restore the database: %w", err)
	}
	return nil
}

// write does not sync the file: a server that recovers from a backup syncs all files.
func (r *Rebuild) write(path string, content io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return r.cluster.account.chown(path)
}
