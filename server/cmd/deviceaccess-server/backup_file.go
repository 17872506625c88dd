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

// writeNew makes a file that nobody but its owner reads. It has its name when it is whole and on the disk; until then, and
// when it fails, no file of that name is there. What an earlier one has left that was killed is removed.
func writeNew(path string, write func(io.Writer) error) error {
	taken := fmt.Errorf("%s is there already, and is not overwritten: name another file, or remove it", path)
	if _, err := os.Lstat(path); err == nil {
		return taken
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: make it first", filepath.Dir(path))
	}
	removeIncomplete(path)
	f, err := newIncomplete(path)
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has its own name by then, or is of no use
	defer f.Close()           // which unlocks it
	if err := errors.Join(write(f), f.Sync()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); errors.Is(err, os.ErrExist) {
		return taken
	} else if err != nil && os.Rename(f.Name(), path) != nil { // some file systems know no links
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return errors.Join(fmt.Errorf("write the backup: %w", err), os.Remove(path))
	}
	return nil
}

func incompleteOf(path string) string { return "." + filepath.Base(path) + ".incomplete-" }

// newIncomplete makes a file for what is to become the one at path. It is locked for as long as it is open.
func newIncomplete(path string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(filepath.Dir(path), incompleteOf(path)+"*") // mode 0600
		if err != nil {
			return nil, err
		}
		locked := lockNow(f) // where nothing can be locked nothing is removed, either
		if _, err := os.Stat(f.Name()); err == nil && !errors.Is(locked, syscall.EWOULDBLOCK) {
			return f, nil
		}
		f.Close() // another one was about to remove it before it was locked
		_ = os.Remove(f.Name())
	}
}

// removeIncomplete removes what is left of files that were to become the one at path, and that nobody writes any more: they
// may hold a master key. What cannot be removed is in nobody's way.
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
