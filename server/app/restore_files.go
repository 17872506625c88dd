package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/durable"
)

// place moves the staged files to their place, the database last, so that the data appears with one rename. It reports
// whether it has started to move files. It first checks again that no other process has created data there.
func (r *restore) place() (begun bool, err error) {
	for _, name := range []string{postgresName, sandboxName} {
		if r.has(name) {
			return false, r.occupied(name)
		}
	}
	if err := writeSynced(filepath.Join(r.staging, placingName), strings.NewReader("")); err != nil {
		return false, err
	}
	if err := r.owner.Chown(r.DataDir, stagingName); err != nil {
		return false, err
	}
	if err := r.syncStaged(); err != nil {
		return false, err
	}
	if err := r.placeKey(); err != nil {
		return false, err
	}
	if r.has(keyName) { // also a key that the operator put there
		if err := r.owner.Chown(r.DataDir, keyName); err != nil {
			return true, err
		}
	}
	for _, name := range []string{sandboxName, postgresName} {
		from, to := filepath.Join(r.staging, name), filepath.Join(r.DataDir, name)
		err := os.Rename(from, to)
		if errors.Is(err, fs.ErrNotExist) && name != postgresName { // not in every backup
			err = nil
		}
		if err = errors.Join(err, durable.SyncDir(r.DataDir)); err != nil {
			return true, fmt.Errorf("move the restored files to %s (is a server running there?): %w", to, err)
		}
	}
	return true, os.RemoveAll(r.staging)
}

// syncStaged syncs the staged directories to disk, except those of the database, which PostgreSQL has synced.
func (r *restore) syncStaged() error {
	err := filepath.WalkDir(r.staging, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		below, err := filepath.Rel(filepath.Join(r.staging, postgresName), path)
		if err == nil && filepath.IsLocal(below) &&
			strings.Count(below, string(filepath.Separator)) == 1 { // its version, data
			return fs.SkipDir
		}
		return errors.Join(err, durable.SyncDir(path))
	})
	return errors.Join(err, durable.SyncDir(r.DataDir), durable.SyncDir(filepath.Dir(r.DataDir)))
}

// placeKey moves the key of the backup to its place, unless the data directory has the key. It never replaces another
// key, since secrets encrypted with that key would be lost.
func (r *restore) placeKey() error {
	err := durable.Link(filepath.Join(r.staging, keyName), filepath.Join(r.DataDir, keyName))
	switch {
	case errors.Is(err, fs.ErrNotExist): // not in every backup
		return nil
	case errors.Is(err, fs.ErrExist):
		return r.sameKey()
	case err != nil:
		return fmt.Errorf("move the master key to the data directory: %w", err)
	}
	return nil
}

// sameKey returns an error if the data directory has another key than the backup.
func (r *restore) sameKey() error {
	path := filepath.Join(r.DataDir, keyName)
	here, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the master key: %w", err)
	}
	restored, err := os.ReadFile(filepath.Join(r.staging, keyName))
	if err != nil {
		return fmt.Errorf("read the master key: %w", err)
	}
	if !bytes.Equal(bytes.TrimSpace(here), bytes.TrimSpace(restored)) {
		return fmt.Errorf("%s is another master key than the backup's and is never overwritten: move it away", path)
	}
	return nil
}
