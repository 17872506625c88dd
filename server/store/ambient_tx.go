package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ambientTx is a transaction that all queries with its context join. It is not safe for concurrent use, like its connection.
type ambientTx struct {
	pool    *pgxpool.Pool
	conn    *pgxpool.Conn
	release func() // returns the connection
	tx      pgx.Tx // nil: it has ended
	then    []func()
	act     *Act
	change  *change
}

type ambientTxKey struct{}

// ambientTxOf returns the transaction of a context; nil: none.
func ambientTxOf(ctx context.Context, pool *pgxpool.Pool) *ambientTx {
	j, _ := ctx.Value(ambientTxKey{}).(*ambientTx)
	if j == nil || j.pool != pool || j.tx == nil {
		return nil
	}
	return j
}

// WithAmbientTx runs f in a transaction that all queries and all InTx calls with its context join. It commits if f returns nil
// or when f calls CommitAmbient. Like InTx it may run f again, unless CommitAmbient was called.
func (db *DB) WithAmbientTx(ctx context.Context, f func(context.Context) error) error {
	var after error // the error after CommitAmbient, which must not cause a retry
	err := retryDeadlocks(ctx, func() (err error) {
		conn, release, err := db.acquire(ctx)
		if err != nil {
			return err
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			release()
			return err
		}
		j := &ambientTx{
			pool:    db.Pool,
			conn:    conn,
			release: release,
			tx:      tx,
			act:     actOf(ctx),
			change:  &change{},
		}
		defer func() {
			if j.tx != nil { // also when f panics
				j.tx = nil
				_ = tx.Rollback(ctx)
				release()
			}
		}()
		err = f(context.WithValue(ctx, ambientTxKey{}, j))
		if j.tx == nil {
			after = err
			return nil
		}
		if err != nil {
			return err
		}
		return j.commit(ctx)
	})
	if err != nil {
		return err
	}
	return after
}

// CommitAmbient commits the transaction of WithAmbientTx early. Later queries with the context run outside of it.
func (db *DB) CommitAmbient(ctx context.Context) error {
	if j := ambientTxOf(ctx, db.Pool); j != nil {
		return j.commit(ctx)
	}
	return nil
}

// DetachTx returns a context outside of the transaction of WithAmbientTx.
func DetachTx(ctx context.Context) context.Context {
	return context.WithValue(ctx, ambientTxKey{}, (*ambientTx)(nil))
}

func (j *ambientTx) commit(ctx context.Context) error {
	then := j.then
	if err := commit(ctx, j.conn.Conn(), j.tx, j.act, j.change); err != nil {
		return err
	}
	j.release()
	j.tx, j.then = nil, nil
	for _, f := range then {
		f()
	}
	return nil
}

func (j *ambientTx) savepoint(ctx context.Context, f func(Tx) error) error {
	then, changed := len(j.then), *j.change
	err := pgx.BeginFunc(
		ctx,
		j.tx,
		func(tx pgx.Tx) error { return f(newTx(&transaction{tx: tx, part: true}, j.act, j.change, &j.then)) },
	)
	if err != nil {
		j.then, *j.change = j.then[:then], changed
	}
	return err
}

// ambientQueries sends queries to the transaction of their context, or to the pool.
type ambientQueries struct{ db *DB }

func (q ambientQueries) to(ctx context.Context) dbsqlc.DBTX {
	j := ambientTxOf(ctx, q.db.Pool)
	switch {
	case j == nil:
		if within, ok := ctx.Value(withinKey{}).(time.Duration); ok {
			return timedQueries{q.db.acquire, within}
		}
		if s := shareOf(ctx); s != nil {
			return shared{q.db.Pool, s}
		}
		return q.db.Pool
	case j.act != nil:
		return auditedQueries{j.tx, j.change}
	}
	return j.tx
}

// asked returns the act for which a statement outside of any transaction changes rows; nil: none, or it changes nothing.
func (q ambientQueries) asked(ctx context.Context, sql string) (*Act, *statement) {
	act := actOf(ctx)
	if act == nil || ambientTxOf(ctx, q.db.Pool) != nil {
		return nil, nil
	}
	if s := statementOf(sql); s.writes {
		return act, s
	}
	return nil, nil
}

func (q ambientQueries) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	if act, s := q.asked(ctx, sql); act != nil {
		return q.db.audited(ctx, act, s, sql, args)
	}
	to := q.to(ctx)
	if ambientTxOf(ctx, q.db.Pool) != nil {
		return to.Exec(ctx, sql, args...)
	}
	err = retryDeadlocks(ctx, func() error {
		tag, err = to.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

func (q ambientQueries) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if act, _ := q.asked(ctx, sql); act != nil {
		return nil, errUnaudited
	}
	return q.to(ctx).Query(ctx, sql, args...)
}

func (q ambientQueries) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if act, _ := q.asked(ctx, sql); act != nil {
		return failedRow{errUnaudited}
	}
	return q.to(ctx).QueryRow(ctx, sql, args...)
}
