package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// joint is a transaction that everything joins which is done with its context. It is for one goroutine at a time, as
// its connection is.
type joint struct {
	pool *pgxpool.Pool
	tx   pgx.Tx // nil: it has ended, and what is done with its context stands for itself
	then []func()
}

type jointKey struct{}

// jointOf is the transaction that is to be joined; nil: none.
func jointOf(ctx context.Context, pool *pgxpool.Pool) *joint {
	j, _ := ctx.Value(jointKey{}).(*joint)
	if j == nil || j.pool != pool || j.tx == nil {
		return nil
	}
	return j
}

// InOne runs f in one transaction together with all that f does with the context it is given: each query of db sees
// what was written before it, each InTx is a part. It is committed if f returns nil, or when f calls CommitOne, and
// rolled back otherwise. Like InTx it may be run again, unless CommitOne was called.
func (db *DB) InOne(ctx context.Context, f func(context.Context) error) error {
	var after error // of what was done past CommitOne: that must not be done again
	err := untangled(ctx, func() (err error) {
		tx, err := db.Pool.Begin(ctx)
		if err != nil {
			return err
		}
		j := &joint{pool: db.Pool, tx: tx}
		defer func() {
			if j.tx != nil { // also when f panics
				j.tx = nil
				_ = tx.Rollback(ctx)
			}
		}()
		err = f(context.WithValue(ctx, jointKey{}, j))
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

// CommitOne ends the transaction of InOne early: what is done with the context from here on stands for itself.
func (db *DB) CommitOne(ctx context.Context) error {
	if j := jointOf(ctx, db.Pool); j != nil {
		return j.commit(ctx)
	}
	return nil
}

// Apart is the context for what must not be a part of the transaction of InOne.
func Apart(ctx context.Context) context.Context {
	return context.WithValue(ctx, jointKey{}, (*joint)(nil))
}

func (j *joint) commit(ctx context.Context) error {
	tx, then := j.tx, j.then
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	j.tx, j.then = nil, nil
	for _, f := range then {
		f()
	}
	return nil
}

func (j *joint) part(ctx context.Context, db *DB, f func(Tx) error) error {
	before := len(j.then)
	err := pgx.BeginFunc(ctx, j.tx, func(tx pgx.Tx) error { return f(Tx{db.WithTx(tx), tx, &j.then}) })
	if err != nil {
		j.then = j.then[:before]
	}
	return err
}

// joining sends queries to the transaction that their context has them join, or else to the pool.
type joining struct{ pool *pgxpool.Pool }

func (q joining) to(ctx context.Context) DBTX {
	if j := jointOf(ctx, q.pool); j != nil {
		return j.tx
	}
	return q.pool
}

func (q joining) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return q.to(ctx).Exec(ctx, sql, args...)
}

func (q joining) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return q.to(ctx).Query(ctx, sql, args...)
}

func (q joining) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return q.to(ctx).QueryRow(ctx, sql, args...)
}
