package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// readKeys reads the master key. It returns fs.ErrNotExist if the key file does not exist.
func (c Database) readKeys() (*encryption.Keys, error) {
	return c.keysFrom(encryption.ReadFile)
}

// makeKeys reads the master key, and creates it if there is none.
func (c Database) makeKeys() (*encryption.Keys, error) {
	return c.keysFrom(encryption.ReadOrCreateFile)
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
		return nil, ExplainPermission(err)
	}
	return encryption.New(masters...)
}

// keysOf reads the master key and returns an error if it does not open the data keys of the database. It does not
// change the database, whose schema may have any version. It returns nil without a key if nothing is encrypted yet.
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
		return nil, nil //nolint:nilnil // no key is needed yet
	case missing:
		return nil, fmt.Errorf(
			"there is no master key in %s, and the database cannot be read without it: put the key there or set "+
				"DEVICEACCESS_MASTER_KEY; nothing has been changed",
			filepath.Join(c.DataDir, keyName),
		)
	}
	return keys, keyrotation.CheckKeys(ctx, kept, keys)
}

// migrated migrates the schema of a database and returns its keys. For a new database, it creates the master key. It
// returns an error if the database has another master key.
func (c Database) migrated(ctx context.Context, dsn string) (*encryption.Keys, error) {
	keys, err := c.keysOf(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx, dsn); err != nil || keys != nil {
		return keys, err
	}
	// Another server may have created the database with its key in the meantime.
	if keys, err = c.keysOf(ctx, dsn); err != nil || keys != nil {
		return keys, err
	}
	return c.makeKeys()
}

// prepare reads the master key and ensures that the database has a schema for this program.
func (c Database) prepare(ctx context.Context, dsn string, may openMode) (*encryption.Keys, error) {
	if may == openAndMigrate {
		return c.migrated(ctx, dsn)
	}
	keys, err := c.keysOf(ctx, dsn)
	if err != nil {
		return nil, err
	}
	err = c.checkSchema(ctx, dsn)
	switch {
	case may == openOrCreate && (errors.Is(err, store.ErrNoSchema) || keys == nil):
		return c.migrated(ctx, dsn)
	case err == nil && keys == nil:
		return c.readKeys() // returns the error of a missing key
	}
	return keys, err
}

// checkSchema returns an error if this program cannot use the schema of the database without a migration.
func (c Database) checkSchema(ctx context.Context, dsn string) error {
	err := store.CheckSchema(ctx, dsn)
	switch {
	case errors.Is(err, store.ErrNoSchema) && c.DatabaseURL != "":
		return fmt.Errorf(
			"there is no installation in the database of --database-url or DEVICEACCESS_DATABASE_URL: set it to the "+
				"database of serve; nothing has been changed (%w)",
			err,
		)
	case errors.Is(err, store.ErrNoSchema):
		return fmt.Errorf(
			"there is no installation in %s yet: create one with deviceaccess-server serve (%w)",
			c.DataDir,
			err,
		)
	case errors.Is(err, store.ErrOlderSchema):
		return fmt.Errorf(
			"%w: use the version of the servers, upgrade the servers, or run deviceaccess-server migrate; nothing has been "+
				"changed",
			err,
		)
	}
	return err
}
