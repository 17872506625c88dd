package keyrotation

import (
	"context"
	"errors"
	"fmt"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Names of server keys.
const (
	ConnectPages    = "connect_webviews"
	ConsoleSessions = "console_sessions"
	PageCursors     = "page_cursors"
	SandboxSeed     = "sandbox_seed"
	VendorPushes    = "vendor_pushes"
)

// rotated reports whether a rotation replaces a server key. The seed of the simulated locks is what they are.
func rotated(name string) bool { return name != SandboxSeed }

// ServerKey returns the current 32-byte key of a name, which all instances share. The first call creates the key.
func (s *Service) ServerKey(ctx context.Context, name string) ([]byte, error) {
	all, err := s.ServerKeys(ctx, name)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// ServerKeys returns the accepted keys of a name, of which the first one is current. The first call creates the key.
func (s *Service) ServerKeys(ctx context.Context, name string) ([][]byte, error) {
	if all := s.keys.ServerKeys(name); len(all) > 0 {
		return all, nil
	}
	// The key stays when the request fails.
	if err := createServerKey(ctx, s.db.SideQueries, s.keys, name, encryption.NewMaster); err != nil {
		return nil, err
	}
	all := s.keys.ServerKeys(name)
	if len(all) == 0 {
		return nil, fmt.Errorf("the key %s has been deleted from the database", name)
	}
	return all, nil
}

// createServerKey creates a server key, unless there is one, and loads it. Another instance may be faster.
func createServerKey(
	ctx context.Context,
	db *dbsqlc.Queries,
	keys *encryption.Keys,
	name string,
	fresh func() []byte,
) error {
	if err := db.InsertServerKey(
		ctx,
		dbsqlc.InsertServerKeyParams{Name: name, Sealed: keys.Seal(encryption.ServerKeyPlace(name), fresh())},
	); err != nil {
		return fmt.Errorf("store the key %s: %w", name, err)
	}
	return keys.Reload(ctx)
}

// replaceServerKeys adds a generation to the server keys, sealed with a new data key.
func (s *Service) replaceServerKeys(ctx context.Context, tx store.Tx, by encryption.DataKey) error {
	rows, err := tx.LockServerKeys(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if !rotated(r.Name) {
			continue
		}
		sealed, err := s.keys.ReplaceServerKey(encryption.ServerKey{Name: r.Name, Sealed: r.Sealed}, by, r.Now)
		if err == nil {
			err = tx.ReplaceServerKey(ctx, dbsqlc.ReplaceServerKeyParams{Name: r.Name, Sealed: sealed})
		}
		if err != nil {
			return errors.Join(fmt.Errorf("replace the key %s", r.Name), err)
		}
	}
	return nil
}
