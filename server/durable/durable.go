// Package durable links files under names that survive a power failure, and replaces no existing file. It must not know
// what the files contain.
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

// Link links the file from as to, and syncs the directory. Its error matches fs.ErrExist if to exists, whose name is
// then synced, too. If the file system has no links, to becomes a copy with mode 0600.
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

// SyncDir syncs the names in a directory to the disk. It ignores a directory without read permission, and a file system
// that cannot sync directories.
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
