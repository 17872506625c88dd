package keyrotation

import (
	"context"
	"fmt"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ServerKey returns the 32-byte key of that name, which all instances share. The first call creates the key.
func (s *Service) ServerKey(ctx context.Context, name string) ([]byte, error) {
	if key, ok := s.serverKeys.Load(name); ok {
		return key.([]byte), nil
	}
	key, err := serverKey(
		ctx,
		s.db.SideQueries,
		s.keys,
		name,
		encryption.NewMaster,
	) // the key stays when the request fails
	if err != nil {
		return nil, err
	}
	s.serverKeys.Store(name, key)
	return key, nil
}

func serverKey(
	ctx context.Context,
	db *dbsqlc.Queries,
	keys *encryption.Keys,
	name string,
	fresh func() []byte,
) ([]byte, error) {
	sealed, err := db.GetServerKey(ctx, name)
	if store.IsNoRows(err) {
		if err := db.InsertServerKey(
			ctx,
			dbsqlc.InsertServerKeyParams{Name: name, Sealed: keys.Seal(serverKeyPlace(name), fresh())},
		); err != nil {
			return nil, fmt.Errorf("store the key %s: %w", name, err)
		}
		sealed, err = db.GetServerKey(ctx, name) // another instance may have been faster
	}
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", name, err)
	}
	return openServerKey(keys, name, sealed)
}

func serverKeyPlace(name string) string { return "server_keys.sealed/" + name }

func openServerKey(keys *encryption.Keys, name string, sealed []byte) ([]byte, error) {
	key, err := keys.Open(serverKeyPlace(name), sealed)
	if err != nil {
		return nil, fmt.Errorf("open the key %s: %w; is the master key the one this database was made with?", name, err)
	}
	return key, nil
}
