package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/durable"
)

// writeNewFile creates a file that only its owner can read. The file gets its name once it is complete and synced, so a
// failed call leaves no file at path. writeNewFile also removes incomplete files of earlier, killed calls.
func writeNewFile(path string, write func(io.Writer) error) error {
	taken := fmt.Errorf("%s already exists and is never overwritten: choose another file or remove this one", path)
	if _, err := os.Lstat(path); err == nil {
		return taken
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("directory %s does not exist: create it first", filepath.Dir(path))
	}
	removeIncomplete(path)
	f, err := newIncomplete(path)
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // either renamed or incomplete
	defer f.Close()           // releases the lock
	if err := errors.Join(write(f), f.Sync()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); errors.Is(err, os.ErrExist) {
		return taken
	} else if err != nil && os.Rename(f.Name(), path) != nil { // for file systems without hard links
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return errors.Join(fmt.Errorf("write the backup: %w", err), os.Remove(path))
	}
	return nil
}

func incompleteOf(path string) string { return "." + filepath.Base(path) + ".incomplete-" }

// newIncomplete creates a temporary file for path. The file stays locked while it is open.
func newIncomplete(path string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(filepath.Dir(path), incompleteOf(path)+"*") // mode 0600
		if err != nil {
			return nil, err
		}
		locked := lockNow(f) // without file locks, removeIncomplete removes nothing either
		if _, err := os.Stat(f.Name()); err == nil && !errors.Is(locked, syscall.EWOULDBLOCK) {
			return f, nil
		}
		f.Close() // another process is removing the file
		_ = os.Remove(f.Name())
	}
}

// removeIncomplete removes temporary files for path that no process writes, since they may contain a master key.
// It ignores files that it cannot remove.
func removeIncomplete(path string) {
	dir := filepath.Dir(path)
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), incompleteOf(path)) || !entry.Type().IsRegular() {
			continue
		}
		left := filepath.Join(dir, entry.Name())
		f, err := os.OpenFile(left, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if lockNow(f) == nil {
			_ = os.Remove(left)
		}
		f.Close()
	}
}

func lockNow(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
