package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3/lock"
)

// partitionIndexes are the indexes of tables in partitions that a migration makes: an index of such a table cannot be made while rows
// are written, those of its partitions can, and the migration joins them.
var partitionIndexes = []struct {
	migration       int64
	name, table, of string
}{
	{43, "events_outbox_of_accounts", "events", "(workspace_id, coalesce(connected_account_id, '00000000-0000-0000-0000-000000000000'), created_at) where fanned_out_at is null"},
}

// indexesWithin is how long another server may take for them, which is waited for.
const indexesWithin = 6 * time.Hour

// makePartitionIndexes makes what is missing of these on the partitions that there are, in nobody's way. What somebody who was cut off
// has left half is made anew. A table that has no partitions yet is of before any
// release, and has none of this.
func makePartitionIndexes(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return notConnected(err)
	}
	defer conn.Close() //nolint:errcheck // each index is made or not by then
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, uint64(indexesWithin/time.Second)))
	if err != nil {
		return err
	}
	for _, i := range partitionIndexes {
		missing, err := isMissing(ctx, conn, i.table, i.migration)
		if err != nil {
			return fmt.Errorf("look for the index %s: %w", i.name, err)
		}
		if !missing {
			continue
		}
		if err := locker.SessionLock(ctx, conn); err != nil {
			return fmt.Errorf("wait for another migration: %w", err)
		}
		if missing, err = isMissing(ctx, conn, i.table, i.migration); err == nil && missing { // nobody has made it meanwhile
			err = indexPartitions(ctx, conn, i.name, i.table, i.of)
		}
		if e := locker.SessionUnlock(context.WithoutCancel(ctx), conn); err == nil {
			err = e
		}
		if err != nil {
			return fmt.Errorf("make the index %s: %w", i.name, err)
		}
	}
	return nil
}

// isMissing says whether a table is in partitions and a migration has not been.
func isMissing(ctx context.Context, conn *sql.Conn, table string, migration int64) (missing bool, err error) {
	err = conn.QueryRowContext(ctx, "select exists (select from pg_partitioned_table where partrelid = to_regclass($1))", table).Scan(&missing)
	if err == nil && missing {
		err = conn.QueryRowContext(ctx, "select coalesce(max(version_id), 0) < $1 from goose_db_version", migration).Scan(&missing)
	}
	return missing, err
}

func indexPartitions(ctx context.Context, conn *sql.Conn, name, table, of string) error {
	var parts []string
	rows, err := conn.QueryContext(ctx, `select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass
		and not exists (select from pg_index x where x.indexrelid = to_regclass(quote_ident($2 || '_' || c.relname)) and x.indisvalid and x.indisready)`, table, name)
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
