// Package store is the database: its schema, its queries, and its transactions. It is the only package that knows SQL.
// It must not know what rows mean, which the domain decides.
package store

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// DB is a pool of connections to one database. Its queries run outside of transactions, unless their context joins one
// (WithAmbientTx).
type DB struct {
	*dbsqlc.Queries
	// UnpreparedQueries runs queries with optional conditions. PostgreSQL plans them for each call: the generic plan of a
	// prepared statement would sort a whole table for one page.
	UnpreparedQueries *dbsqlc.Queries
	// SideQueries uses a connection of its own, for queries by callers that hold a connection of the pool. If all connections
	// were held by such callers, they would wait for each other.
	SideQueries *dbsqlc.Queries
	Pool        *pgxpool.Pool
	side        timedQueries
	sidePool    *pgxpool.Pool
	full        *atomic.Int64
	failover    *failover
}

// unprepared sends each query as an unnamed statement, which PostgreSQL plans for its parameters.
type unprepared struct{ dbsqlc.DBTX }

func (p unprepared) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.DBTX.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

// Option changes how Open connects.
type Option func(*pgxpool.Config)

// Open connects to dsn, a libpq connection string or URL, and checks that the database answers. It fails with
// ErrNotConnected.
func Open(ctx context.Context, dsn string, maxConns int32, options ...Option) (*DB, error) {
	cfg, err := poolConfig(dsn, maxConns, options)
	if err != nil {
		return nil, notConnected(err)
	}
	full, failover := noteFull(&cfg.ConnConfig.Config), detectFailover(&cfg.ConnConfig.Config)
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
	side, err := newPool(ctx, cfg)
	if err != nil {
		pool.Close()
		return nil, notConnected(err)
	}
	failover.watch(pool, side)
	db := &DB{
		Pool:     pool,
		sidePool: side,
		full:     full,
		failover: failover,
	}
	db.side = timedQueries{func(ctx context.Context) (*pgxpool.Conn, func(), error) {
		conn, err := side.Acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Release, nil
	}, sideTimeout}
	db.SideQueries = dbsqlc.New(db.side)
	db.Queries, db.UnpreparedQueries = dbsqlc.New(ambientQueries{db}), dbsqlc.New(unprepared{ambientQueries{db}})
	return db, nil
}

// poolConfig returns the configuration of a pool whose sessions have the settings that the server needs.
func poolConfig(dsn string, maxConns int32, options []Option) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if maxConns > 0 {
		cfg.MaxConns = maxConns
	}
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, connectTimeout)
	cfg.ConnConfig.DialFunc = dialer(cfg.ConnConfig).DialContext
	cfg.PingTimeout = cmp.Or(cfg.PingTimeout, pingTimeout)
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	settings := sessionSettings(cfg.ConnConfig.RuntimeParams)
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerUUID(conn.TypeMap())
		registerTimes(conn.TypeMap())
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		// Not while connecting: poolers refuse connections with parameters that they do not know.
		_, err := conn.Exec(ctx, settings)
		return err
	}
	for _, o := range options {
		o(cfg)
	}
	return cfg, nil
}

// Close closes all connections, after waiting for those in use.
func (db *DB) Close() {
	db.sidePool.Close()
	db.Pool.Close()
}

// Tx is a transaction.
type Tx struct {
	*dbsqlc.Queries
	in          *transaction
	afterCommit *[]func()
	act         *Act
	change      *change
}

// newTx returns a Tx. The queries of an act are observed for the audit log.
func newTx(t *transaction, act *Act, c *change, then *[]func()) Tx {
	if act == nil {
		return Tx{dbsqlc.New(t), t, then, act, c}
	}
	return Tx{dbsqlc.New(auditedQueries{t, c}), t, then, act, c}
}

// Start starts the transaction if necessary, and returns it.
func (tx Tx) Start(ctx context.Context) (pgx.Tx, error) { return tx.in.begin(ctx) }

// AfterCommit registers f to be called after the commit. It is not called after a rollback.
func (tx Tx) AfterCommit(f func()) { *tx.afterCommit = append(*tx.afterCommit, f) }

// maxTries is how often a transaction that others obstruct is tried.
const maxTries = 5

// InTx runs f in a transaction, and commits it if f returns nil. It runs f again after a deadlock, a serialization
// failure, a lock timeout, or on a read-only connection, so f must set all variables outside of itself each time.
//
// Within WithAmbientTx it is a part of that transaction: a rollback affects only the part, but the commit and the retry affect
// the whole.
func (db *DB) InTx(ctx context.Context, f func(Tx) error) error {
	if j := ambientTxOf(ctx, db.Pool); j != nil {
		return j.savepoint(ctx, f)
	}
	return retryDeadlocks(ctx, func() error { return db.InTxOnce(ctx, f) })
}

// InTxOnce is InTx without retries, in a transaction of its own.
func (db *DB) InTxOnce(ctx context.Context, f func(Tx) error) error {
	var then []func()
	err := db.transact(ctx, func(t *transaction, act *Act, c *change) error { return f(newTx(t, act, c, &then)) })
	if err != nil {
		return err
	}
	for _, f := range then {
		f()
	}
	return nil
}

// transact runs f in a transaction, and writes its changes to the audit log.
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

// retryDeadlocks runs a transaction, and retries it after a deadlock, a serialization failure, or a lock timeout. It
// retries once on a new connection if the connection was read-only.
func retryDeadlocks(ctx context.Context, run func() error) error {
	for try := 1; ; try++ {
		err := run()
		isStale := try == 1 && hasCode(err, readOnlyTransaction)
		if !isDeadlock(err) && !IsLockTimeout(err) && !isStale || try == maxTries {
			return err
		}
		select { // not in step with the other
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(try) * 20 * time.Millisecond)):
		}
	}
}

// IsNoRows reports whether a query for one row found none.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// isNoTable reports whether a statement names a table that does not exist.
func isNoTable(err error) bool { return hasCode(err, undefinedTable) }

// Violates reports whether the constraint or unique index of that name refused a statement.
func Violates(err error, constraint string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.ConstraintName == constraint
}

// IsLockTimeout reports whether a statement ended because of lock_timeout.
func IsLockTimeout(err error) bool { return hasCode(err, lockNotAvailable) }

// isDeadlock reports whether the database ended a transaction because of a concurrent one.
func isDeadlock(err error) bool { return hasCode(err, deadlockDetected, serializationFailure) }
