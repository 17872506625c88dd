// Package store is the database: its schema, its queries and its transactions. It is the only package
// that knows SQL; what rows mean is said by package access.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DB is a pool of connections to one database. Its queries run outside of any transaction, unless their context has
// them join one (InOne).
type DB struct {
	*dbsqlc.Queries
	// PlannedAnew has the queries with conditions that may be absent: their plan depends on which are there.
	// One made once for all parameters, as prepared statements come to have, sorts a whole table for a page.
	PlannedAnew *dbsqlc.Queries
	// Beside is on a connection of its own, for what is asked by those who hold one of the pool: were it of the pool,
	// all of these might be held by such, each waiting for another one.
	Beside     *dbsqlc.Queries
	Pool       *pgxpool.Pool
	beside     prompt
	besidePool *pgxpool.Pool
	full       *atomic.Int64
}

// plannedAnew sends each query as an unnamed statement, which PostgreSQL plans for its parameters.
type plannedAnew struct{ dbsqlc.DBTX }

func (p plannedAnew) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.DBTX.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

// Option changes how Open connects.
type Option func(*pgxpool.Config)

// heldIdle is for how long a transaction may stand still. A server that is frozen in the middle of one, or cut off, or whose
// machine has lost its power, would keep others from the rows that it has locked: they take its leases over, and then wait.
const heldIdle = 15 * time.Second

// queued is for how long a statement waits for a lock, before its transaction is run again. Those of a server that is frozen would
// else get a row one after the other, and each stand still with it for heldIdle: one that has been ended while it waited holds
// nothing any more, though its server does not know yet. (A part of InOne does: what was locked before it, for heldIdle.) For a
// row there may be two such waits, for the place at the head of the queue and for the row, and both together are to be shorter than
// heldIdle, in which it might be let go. So a row is free after heldIdle where that server had it, and after twice this and heldIdle
// where it waited for it.
const queued = 5 * time.Second

// byIndex has no table read in its own order where there is any index. The database plans to read all of one that has few rows,
// or that was analyzed when it was empty as a partition is before its time, and holds on to that until it is analyzed again, up to a
// minute after it has begun to grow: a delivery was recorded by reading all others. And where there is no index, no plan is compiled
// for what that is said to cost.
const byIndex = "set enable_seqscan = off; set jit = off"

// Open connects to dsn, a libpq connection string or URL, and checks that the server answers.
func Open(ctx context.Context, dsn string, maxConns int32, options ...Option) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, notConnected(err)
	}
	if maxConns > 0 {
		cfg.MaxConns = maxConns
	}
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, connectWithin)
	cfg.ConnConfig.DialFunc = dialer(cfg.ConnConfig).DialContext
	cfg.PingTimeout = cmp.Or(cfg.PingTimeout, pongWithin)
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	settings := "-- name: SetUpConnection :exec\n" + byIndex
	for name, limit := range map[string]time.Duration{"idle_in_transaction_session_timeout": heldIdle, "lock_timeout": queued} {
		if _, given := cfg.ConnConfig.RuntimeParams[name]; !given {
			settings += fmt.Sprintf("; set %s = %d", name, limit.Milliseconds())
		}
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerUUID(conn.TypeMap())
		registerTimes(conn.TypeMap())
		ctx, cancel := context.WithTimeout(ctx, connectWithin)
		defer cancel()
		// Not while connecting: poolers refuse connections with parameters that they do not know.
		_, err := conn.Exec(ctx, settings)
		return err
	}
	for _, o := range options {
		o(cfg)
	}
	full := noteFull(&cfg.ConnConfig.Config)
	pool, err := newPool(ctx, cfg)
	if err != nil {
		return nil, notConnected(err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, notConnected(err)
	}
	cfg = cfg.Copy()
	cfg.MinConns, cfg.MinIdleConns, cfg.MaxConns = 0, 0, 1
	beside, err := newPool(ctx, cfg)
	if err != nil {
		pool.Close()
		return nil, notConnected(err)
	}
	db := &DB{Pool: pool, besidePool: beside, full: full}
	db.beside = prompt{func(ctx context.Context) (*pgxpool.Conn, func(), error) {
		conn, err := beside.Acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Release, nil
	}, besideWithin}
	db.Beside = dbsqlc.New(db.beside)
	db.Queries, db.PlannedAnew = dbsqlc.New(joining{db}), dbsqlc.New(plannedAnew{joining{db}})
	return db, nil
}

// Close ends all connections, once they are given back.
func (db *DB) Close() {
	db.besidePool.Close()
	db.Pool.Close()
}

// Tx is one transaction.
type Tx struct {
	*dbsqlc.Queries
	in     *transaction
	then   *[]func()
	act    *Act
	change *change
}

// in are the queries of a transaction. Those of an act are watched, for the audit log.
func in(t *transaction, act *Act, c *change, then *[]func()) Tx {
	if act == nil {
		return Tx{dbsqlc.New(t), t, then, act, c}
	}
	return Tx{dbsqlc.New(watched{t, c}), t, then, act, c}
}

// Begun is the transaction itself.
func (tx Tx) Begun(ctx context.Context) (pgx.Tx, error) { return tx.in.begin(ctx) }

// Then has f called once the transaction is committed, and never if it is not.
func (tx Tx) Then(f func()) { *tx.then = append(*tx.then, f) }

// tries is how often a transaction is tried that others have been in the way of.
const tries = 5

// InTx runs f in one transaction, which is committed if f returns nil and rolled back otherwise. One that the database
// ends because it and another wait for each other, or because it has waited for long, is run again, so what f sets outside of
// itself it sets anew.
// Within InOne it is a part of that transaction: it is rolled back alone, but committed, and run again, with the whole.
func (db *DB) InTx(ctx context.Context, f func(Tx) error) error {
	if j := jointOf(ctx, db.Pool); j != nil {
		return j.part(ctx, f)
	}
	return untangled(ctx, func() error { return db.InTxOnce(ctx, f) })
}

// InTxOnce is InTx for a transaction of its own that is not run again, whatever becomes of it.
func (db *DB) InTxOnce(ctx context.Context, f func(Tx) error) error {
	var then []func()
	err := db.transact(ctx, func(t *transaction, act *Act, c *change) error { return f(in(t, act, c, &then)) })
	if err != nil {
		return err
	}
	for _, f := range then {
		f()
	}
	return nil
}

// transact runs f in a transaction, with what it changes written to the audit log.
func (db *DB) transact(ctx context.Context, f func(*transaction, *Act, *change) error) error {
	conn, release, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	t := &transaction{conn: conn}
	defer t.rollback(ctx) // also when f panics
	act, c := actOf(ctx), &change{}
	if err := f(t, act, c); err != nil || t.tx == nil || t.over {
		return err
	}
	err = commit(ctx, conn.Conn(), t.tx, act, c)
	t.over = err == nil
	return err
}

// untangled runs a transaction, and again when it and another have waited for each other, or when it has waited for long.
func untangled(ctx context.Context, run func() error) error {
	for try := 1; ; try++ {
		err := run()
		if !tangled(err) && !GaveUp(err) || try == tries {
			return err
		}
		select { // not in step with the other
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(try) * 20 * time.Millisecond)):
		}
	}
}

const ( // PostgreSQL, appendix A
	deadlockDetected = "40P01"
	diskFull         = "53100"
	lockNotAvailable = "55P03"
	undefinedTable   = "42P01"
)

// IsNoRows says whether a query for one row found none.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// isNoTable says whether a statement was about a table that there is not (any more).
func isNoTable(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == undefinedTable
}

// Violates says whether a statement was refused by the constraint or unique index of that name.
func Violates(err error, constraint string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.ConstraintName == constraint
}

// GaveUp says whether a statement was ended because it has waited for a lock for long enough.
func GaveUp(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == lockNotAvailable
}

// tangled says whether the database has ended a transaction because it and another waited for each other.
func tangled(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == deadlockDetected
}
