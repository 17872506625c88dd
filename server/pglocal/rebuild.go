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

// Rebuild is a data directory that is being put together from a BaseBackup. Start on its Dir then recovers it.
type Rebuild struct {
	cluster *Cluster
}

// NewRebuild begins one in opt.Dir, which must not be there; the server is to run as its owner, if there is one. It fails with
// a *MajorError when this machine does not have the version of PostgreSQL that the backup is of, and like Start.
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
		return nil, fmt.Errorf("restore the database: %s is there already", dir)
	}
	if err := acct.mkdirAll(filepath.Dir(c.data.path)); err != nil {
		return nil, err
	}
	return &Rebuild{c}, c.makeDataDir(c.data.path)
}

// Put writes a directory or a file, as Copy hands it over.
func (r *Rebuild) Put(header *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(header.Name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("restore the database: %q is no path in its directory", header.Name)
	}
	path := filepath.Join(r.cluster.data.path, name)
	var err error
	switch header.Typeflag {
	case tar.TypeDir:
		if err = r.cluster.makeDataDir(path); errors.Is(err, os.ErrExist) {
			return nil // the log's is told of twice
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

// write leaves it to the server to have it on the disk: one that recovers from a backup syncs all it finds.
func (r *Rebuild) write(path string, content io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return r.cluster.account.own(path)
}
