package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// SealedColumn is a column with sealed values. The place for which a value is sealed consists of a prefix and
// identifiers of the row.
//
// A column with keyed hashes is one as well: a hash key takes the place of the data key, and hashes have no place.
type SealedColumn struct {
	table, column string
	place         string // SQL expression for a row
}

func (c SealedColumn) String() string { return c.table + "." + c.column }

// Hashed reports whether the column has keyed hashes.
func (c SealedColumn) Hashed() bool { return c.place == hashed }

const hashed = "''"

// byOthers returns the SQL condition for values with a key other than $1. A hash of the first key, which has a multiple
// of 8 bytes, does not name its key.
func (c SealedColumn) byOthers() string {
	if c.Hashed() {
		return fmt.Sprintf("case when length(%[1]s) %% 8 = 0 then length(%[1]s) > 0 and $1 > 0 "+
			"else get_byte(%[1]s, 0) <> $1 end", c.column)
	}
	return fmt.Sprintf("get_byte(%s, 0) <> $1", c.column)
}

// SealedColumns returns all columns that a rotation of the keys renews.
func SealedColumns() []SealedColumn {
	return []SealedColumn{
		{"server_keys", "sealed", "'server_keys.sealed/' || name"},
		{"connected_accounts", "config_sealed", "'connected_accounts.config/' || connected_account_id"},
		{"account_secrets", "sealed", "'account_secrets.sealed/' || connected_account_id || '/' || name"},
		{"pending_logins", "sealed", "'pending_logins.sealed/' || pending_login_id"},
		{"webhooks", "secret_sealed", "'webhooks.secret/' || webhook_id"},
		{"webhooks", "old_secret_sealed", "'webhooks.old_secret/' || webhook_id"},
		{"access_codes", "pin_sealed", "'access_codes.pin/' || access_code_id"},
		{"access_codes", "applied_sealed", "'access_codes.applied/' || access_code_id"},
		{"events", "pin_sealed", "'events.pin/' || event_id"},
		{"client_sessions", "token_sealed", "'client_sessions.token/' || client_session_id"},
		{"operators", "totp_sealed", "'operators.totp/' || operator_id"},
		{"idempotency_keys", "answer_sealed", "'idempotency_keys.answer/' || idempotency_key_id"},
		{"delivery_attempts", "excerpt_sealed", "'delivery_attempts.excerpt/' || webhook_id || '/' || event_id"},
		{"access_codes", "pin_mac", hashed},
		{"access_codes", "write_pin_mac", hashed},
		{"idempotency_keys", "request_mac", hashed},
		{"credentials", "mac", hashed},
		{"credential_workspaces", "mac", hashed},
		{"client_sessions", "mac", hashed},
		{"operators", "mac", hashed},
		{"operator_sessions", "mac", hashed},
		{"operator_passkeys", "mac", hashed},
		{"operator_links", "mac", hashed},
	}
}

// Parts returns the column of each table that stores its rows: the table itself or its partitions.
func (db *DB) Parts(ctx context.Context, c SealedColumn) ([]SealedColumn, error) {
	rows, err := db.Pool.Query(ctx, `select relid::regclass::text from pg_partition_tree($1::regclass) where isleaf
		union all select relname from pg_class where oid = $1::regclass and relkind = 'r' order by 1`, c.table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (part SealedColumn, err error) {
		part = c
		err = r.Scan(&part.table)
		return part, err
	})
}

// Sealed is the value of a sealed column in one row.
type Sealed struct {
	Row    string // its ctid, for Reseal
	Place  string
	Sealed []byte
}

// CountSealedByOthers counts the values that were sealed with a key other than key.
func (db *DB) CountSealedByOthers(ctx context.Context, c SealedColumn, key byte) (n int64, err error) {
	err = db.Pool.QueryRow(ctx, fmt.Sprintf("select count(*) from %s where %s", c.table, c.byOthers()), int32(key)).
		Scan(&n)
	return n, err
}

// SealedByOthers reads values that were sealed with a key other than key, in storage order from a block of the table on.
// It returns the block to continue from; 0 at the end, and if the partition was dropped. c must come from Parts, because
// blocks belong to one table.
func (db *DB) SealedByOthers(
	ctx context.Context,
	c SealedColumn,
	key byte,
	block int64,
) (rows []Sealed, next int64, err error) {
	var blocks int64
	if err := db.Pool.QueryRow(ctx, "select pg_relation_size($1::regclass) / current_setting('block_size')::bigint", c.table).
		Scan(&blocks); isNoTable(
		err,
	) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	const some = 64 // blocks of 8 KiB
	found, err := db.Pool.Query(ctx, fmt.Sprintf(`select ctid::text, %s, %s from %s
		where ctid >= format('(%%s,0)', $2::bigint)::tid and ctid < format('(%%s,0)', $3::bigint)::tid and %s`,
		c.place, c.column, c.table, c.byOthers()), int32(key), block, block+some)
	if err != nil {
		return nil, 0, err
	}
	rows, err = pgx.CollectRows(found, func(r pgx.CollectableRow) (s Sealed, err error) {
		err = r.Scan(&s.Row, &s.Place, &s.Sealed)
		return s, err
	})
	if isNoTable(err) {
		return nil, 0, nil
	}
	if next = block + some; next >= blocks {
		next = 0
	}
	return rows, next, err
}

// ExtendIdleTimeout lets the transaction be idle for a time, in which it waits for another program.
func (tx Tx) ExtendIdleTimeout(ctx context.Context, d time.Duration) error {
	_, err := tx.in.Exec(ctx, fmt.Sprintf("set local idle_in_transaction_session_timeout = %d", d.Milliseconds()))
	return err
}

// DisableIdleTimeout disables the idle timeout of a transaction. It must lock no rows.
func (tx Tx) DisableIdleTimeout(ctx context.Context) error {
	_, err := tx.in.Exec(ctx, "set local idle_in_transaction_session_timeout = 0")
	return err
}

// CountTransactionsBefore counts the transactions in the database that started before a time. It does not count the holder of
// LockRotation, which does nothing else.
func (db *DB) CountTransactionsBefore(ctx context.Context, before time.Time) (n int64, err error) {
	err = db.Pool.QueryRow(ctx, `select count(*) from pg_stat_activity a
		where a.datname = current_database() and a.backend_type = 'client backend' and a.xact_start < $1 and a.pid <> pg_backend_pid()
		and not exists (select 1 from pg_locks l where l.pid = a.pid and l.locktype = 'advisory' and l.granted
			and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('data_keys', 0))`, before).Scan(&n)
	return n, err
}

// Reseal replaces values, except those that were changed meanwhile.
func (db *DB) Reseal(ctx context.Context, c SealedColumn, was, now []Sealed) error {
	ids, before, after := make([]string, len(was)), make([][]byte, len(was)), make([][]byte, len(was))
	for i := range was {
		ids[i], before[i], after[i] = was[i].Row, was[i].Sealed, now[i].Sealed
	}
	err := retryDeadlocks(ctx, func() error {
		_, err := db.Pool.Exec(ctx, fmt.Sprintf(`update %[1]s t set %[2]s = n.after
			from unnest($2::bytea[], $3::bytea[]) n(before, after) where t.ctid = any($1::text[]::tid[]) and t.%[2]s = n.before`,
			c.table, c.column), ids, before, after)
		return err
	})
	if isNoTable(err) {
		return nil
	}
	return err
}
