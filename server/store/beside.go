package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"
)

// besides are the indexes of tables in partitions that a migration makes: an index of such a table cannot be made while rows
// are written, those of its partitions can, and the migration joins them.
var besides = []struct{ name, table, of string }{
	{"events_outbox_of_accounts", "events", "(workspace_id, coalesce(connected_account_id, '00000000-0000-0000-0000-000000000000'), created_at) where fanned_out_at is null"},
}

// makeBeside makes what is missing of these on the partitions that there are, in nobody's way. What somebody who was cut off
// has left is made anew. A table that has no partitions yet has none of this: its rows are few, or are moved into partitions first.
func makeBeside(ctx context.Context, db *sql.DB, locker lock.SessionLocker) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return notConnected(err)
	}
	defer conn.Close() //nolint:errcheck // each index is made or not by then
	for _, i := range besides {
		var missing bool
		err := conn.QueryRowContext(ctx, "select exists (select from pg_partitioned_table where partrelid = to_regclass($1)) and to_regclass($2) is null", i.table, i.name).Scan(&missing)
		if err != nil {
			return fmt.Errorf("look for the index %s: %w", i.name, err)
		}
		if !missing {
			continue
		}
		if err := locker.SessionLock(ctx, conn); err != nil {
			return fmt.Errorf("wait for another migration: %w", err)
		}
		err = indexPartitions(ctx, conn, i.name, i.table, i.of)
		if e := locker.SessionUnlock(context.WithoutCancel(ctx), conn); err == nil {
			err = e
		}
		if err != nil {
			return fmt.Errorf("make the index %s: %w", i.name, err)
		}
	}
	return nil
}

func indexPartitions(ctx context.Context, conn *sql.Conn, name, table, of string) error {
	var parts []string
	rows, err := conn.QueryContext(ctx, "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass and to_regclass($2) is null", table, name)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var part string
		if err := rows.Scan(&part); err != nil {
			return err
		}
		parts = append(parts, part)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, part := range parts {
		index := pgx.Identifier{name + "_" + part}.Sanitize()
		for _, sql := range []string{"drop index concurrently if exists " + index, "create index concurrently " + index + " on " + pgx.Identifier{part}.Sanitize() + " " + of} {
			if _, err := conn.ExecContext(ctx, sql); isNoTable(err) {
				break // a partition whose time is over
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}
