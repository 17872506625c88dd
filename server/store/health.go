package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// Condition is how the database is.
type Condition struct {
	At       time.Time // by its clock
	ReadOnly bool      // a standby, or told to take no writes
	Schema   int64     // the newest migration that it has
	Full     time.Time // by this program's clock, when a statement last failed because a disk of its is full; zero: none has
}

// noteFull returns when, by the clock of this program, a statement last failed because the disk is full, in nanoseconds since 1970; 0: none
// has. A write that finds room in what its table has already succeeds all the while, so asking does not tell.
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

// Condition asks the database how it is, and writes to it where it says that it takes writes. It waits for none of the
// connections that requests use.
func (db *DB) Condition(ctx context.Context) (c Condition, err error) {
	if at := db.full.Load(); at != 0 {
		c.Full = time.Unix(0, at)
	}
	err = db.beside.QueryRow(ctx, `select now(), pg_is_in_recovery() or current_setting('transaction_read_only')::boolean,
		(select coalesce(max(version_id), 0) from goose_db_version where is_applied)`).Scan(&c.At, &c.ReadOnly, &c.Schema)
	if err != nil {
		return c, fmt.Errorf("ask the database how it is: %w", err)
	}
	if c.ReadOnly {
		return c, nil
	}
	_, err = db.beside.Exec(ctx, `insert into leases as l (key, holder, fence, held_until) values ('health', $1, 1, '-infinity')
		on conflict (key) do update set holder = excluded.holder, fence = l.fence + 1`, uuid.New())
	if err != nil {
		return c, fmt.Errorf("write to the database: %w", err)
	}
	return c, nil
}
