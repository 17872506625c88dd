package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// readKeys reads the master key. It fails with fs.ErrNotExist when that is to be in a file and there is none.
func (c Database) readKeys() (*encryption.Keys, error) {
	return c.keysFrom(encryption.ReadFile)
}

// makeKeys reads the master key, which it makes when there is none.
func (c Database) makeKeys() (*encryption.Keys, error) {
	return c.keysFrom(encryption.File)
}

func (c Database) keysFrom(file func(path string) ([][]byte, error)) (*encryption.Keys, error) {
	var masters [][]byte
	var err error
	if c.MasterKey != "" {
		masters, err = encryption.Parse(c.MasterKey)
	} else {
		masters, err = file(filepath.Join(c.DataDir, keyName))
	}
	if err != nil {
		return nil, err
	}
	return encryption.New(masters...)
}

// keysOf reads the master key and fails when it is not the one that a database of whatever schema was made with, in which it
// changes nothing. While nothing is sealed there may be no key, which is nil then.
func (c Database) keysOf(ctx context.Context, dsn string) (*encryption.Keys, error) {
	keys, err := c.readKeys()
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	kept, err := store.ReadKeptKeys(ctx, dsn)
	switch {
	case err != nil:
		return nil, err
	case missing && kept.None():
		return nil, nil //nolint:nilnil // there is none, and need not be
	case missing:
		return nil, fmt.Errorf("there is no master key in %s, and what is in the database cannot be read without it: put it there, or give it with DEVICEACCESS_MASTER_KEY; nothing has been changed",
			filepath.Join(c.DataDir, keyName))
	}
	return keys, access.CheckKeys(ctx, kept, keys)
}

// migrated brings the schema of a database up to this program, unless that has another master key. The first one makes a key.
func (c Database) migrated(ctx context.Context, dsn string) (*encryption.Keys, error) {
	keys, err := c.keysOf(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx, dsn); err != nil || keys != nil {
		return keys, err
	}
	// Another server, with a key of its own, may have been quicker.
	if keys, err = c.keysOf(ctx, dsn); err != nil || keys != nil {
		return keys, err
	}
	return c.makeKeys()
}

// prepare reads the master key, and sees to it that a database has a schema for this program.
func (c Database) prepare(ctx context.Context, dsn string, may right) (*encryption.Keys, error) {
	if may == mayMigrate {
		return c.migrated(ctx, dsn)
	}
	keys, err := c.keysOf(ctx, dsn)
	if err != nil {
		return nil, err
	}
	err = c.checkSchema(ctx, dsn)
	switch {
	case may == mayBegin && (errors.Is(err, store.ErrNoSchema) || keys == nil):
		return c.migrated(ctx, dsn)
	case err == nil && keys == nil:
		return c.readKeys() // which says that there is none
	}
	return keys, err
}

// checkSchema fails where a database has no schema that this program can use as it is.
func (c Database) checkSchema(ctx context.Context, dsn string) error {
	err := store.CheckSchema(ctx, dsn)
	switch {
	case errors.Is(err, store.ErrNoSchema) && c.DatabaseURL != "":
		return fmt.Errorf("there is no installation in the database that --database-url names (or DEVICEACCESS_DATABASE_URL does): name the one that serve uses; nothing has been changed (%w)", err)
	case errors.Is(err, store.ErrNoSchema):
		return fmt.Errorf("there is no installation in %s yet: it is made by deviceaccess-server serve (%w)", c.DataDir, err)
	case errors.Is(err, store.ErrOlderSchema):
		return fmt.Errorf("%w: use the program of the version that the servers have, or upgrade them, or run deviceaccess-server migrate; nothing has been changed", err)
	}
	return err
}
