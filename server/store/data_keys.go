package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// KeptKeys are the keys in a database: data keys, wrapped by the master key, and server keys by name, sealed by a data
// key or the master key.
type KeptKeys struct {
	Data   []KeptDataKey
	Server map[string][]byte
}

// KeptDataKey is a wrapped data key.
type KeptDataKey struct {
	KeyID     int16
	Wrapped   []byte
	IsCurrent bool
}

// None reports whether the database holds no keys.
func (k KeptKeys) None() bool { return len(k.Data)+len(k.Server) == 0 }

// ReadKeptKeys reads a snapshot of the keys, whatever the version of the schema. An empty database has none.
func ReadKeptKeys(ctx context.Context, dsn string) (kept KeptKeys, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return kept, notConnected(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has been read from
	err = pgx.BeginTxFunc(
		ctx,
		conn,
		pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			kept, err = readKeptKeys(ctx, tx)
			return err
		},
	)
	if err != nil {
		return kept, fmt.Errorf("read the keys that are kept: %w", err)
	}
	return kept, nil
}

func readKeptKeys(ctx context.Context, tx pgx.Tx) (kept KeptKeys, err error) {
	var server, data bool
	if err := tx.QueryRow(ctx, "select to_regclass('server_keys') is not null, to_regclass('data_keys') is not null").
		Scan(&server, &data); err != nil {
		return kept, err
	}
	if server {
		kept.Server = map[string][]byte{}
		rows, err := tx.Query(ctx, "select name, sealed from server_keys")
		if err != nil {
			return kept, err
		}
		var name string
		var sealed []byte
		if _, err := pgx.ForEachRow(
			rows,
			[]any{&name, &sealed},
			func() error { kept.Server[name] = sealed; sealed = nil; return nil },
		); err != nil {
			return kept, err
		}
	}
	if data {
		rows, err := tx.Query(ctx, "select key_id, wrapped, is_current from data_keys")
		if err != nil {
			return kept, err
		}
		kept.Data, err = pgx.CollectRows(rows, pgx.RowToStructByName[KeptDataKey])
		if err != nil {
			return kept, err
		}
	}
	return kept, nil
}
