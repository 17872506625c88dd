package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// Condition is the state of the database.
type Condition struct {
	At       time.Time // by the clock of the database
	ReadOnly bool      // a standby, or read-only by configuration
	Schema   int64     // the newest migration
	Full     time.Time // when a statement last failed because a disk is full, by the clock of this program; zero: never
}

// noteFull returns the time, in Unix nanoseconds by the clock of this program, of the last statement that failed because
// a disk is full; 0: none. A test write is no replacement, because it may find free space in its table.
func noteFull(c *pgconn.Config) *atomic.Int64 {
	at, before := &atomic.Int64{}, c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		if e.Code == diskFull {
			at.Store(time.Now().UnixNano())
		}
		return before(conn, e)
	}
	return at
}

// Condition returns the state of the database. It writes a row, unless the database is read-only. Then it replaces
// the connections, which may be those to the primary before a failover. It uses a connection outside of the pool.
func (db *DB) Condition(ctx context.Context) (c Condition, err error) {
	if at := db.full.Load(); at != 0 {
		c.Full = time.Unix(0, at)
	}
	err = db.side.QueryRow(ctx, `select now(), pg_is_in_recovery() or current_setting('transaction_read_only')::boolean,
		(select coalesce(max(version_id), 0) from goose_db_version where is_applied)`).Scan(&c.At, &c.ReadOnly, &c.Schema)
	if err != nil {
		return c, fmt.Errorf("read the state of the database: %w", err)
	}
	if c.ReadOnly {
		db.failover.reset()
		return c, nil
	}
	_, err = db.side.Exec(
		ctx,
		`insert into leases as l (key, holder, fence, held_until) values ('health', $1, 1, '-infinity')
		on conflict (key) do update set holder = excluded.holder, fence = l.fence + 1`,
		uuid.New(),
	)
	if err != nil {
		return c, fmt.Errorf("write to the database: %w", err)
	}
	return c, nil
}

// Versions returns the number of the newest migration and the version of PostgreSQL.
func (db *DB) Versions(ctx context.Context) (schema int64, postgres string, err error) {
	err = db.side.QueryRow(ctx, `select coalesce(max(version_id), 0), current_setting('server_version')
		from goose_db_version where is_applied`).Scan(&schema, &postgres)
	if err != nil {
		return 0, "", fmt.Errorf("read the versions of the database: %w", err)
	}
	return schema, postgres, nil
}
