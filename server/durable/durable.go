// Package durable gives files names that they keep when the power fails, and takes no name from another file.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Link gives the file at from the name to as well. It fails with fs.ErrExist when something has that name, which then is on
// the disk, too. Where the file system knows no links, to is a copy that its owner alone reads.
func Link(from, to string) error { return link(from, to, os.Link) }

func link(from, to string, hard func(from, to string) error) error {
	err := hard(from, to)
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		err = copyNew(from, to)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errors.Join(err, SyncDir(filepath.Dir(to)))
}

func copyNew(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

// SyncDir has the names in a directory be on the disk. A directory that may be written to and not read is left to the
// system, and so is one on a file system that syncs none.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
