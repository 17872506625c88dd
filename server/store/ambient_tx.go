package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// joint is a transaction that all queries with its context join. It is not safe for concurrent use, like its connection.
type joint struct {
	pool   *pgxpool.Pool
	conn   *pgxpool.Conn
	give   func() // returns the connection
	tx     pgx.Tx // nil: it has ended
	then   []func()
	act    *Act
	change *change
}

type jointKey struct{}

// jointOf returns the transaction of a context; nil: none.
func jointOf(ctx context.Context, pool *pgxpool.Pool) *joint {
	j, _ := ctx.Value(jointKey{}).(*joint)
	if j == nil || j.pool != pool || j.tx == nil {
		return nil
	}
	return j
}

// InOne runs f in a transaction that all queries and all InTx calls with its context join. It commits if f returns nil
// or when f calls CommitOne. Like InTx it may run f again, unless CommitOne was called.
func (db *DB) InOne(ctx context.Context, f func(context.Context) error) error {
	var after error // the error after CommitOne, which must not cause a retry
	err := untangled(ctx, func() (err error) {
		conn, release, err := db.acquire(ctx)
		if err != nil {
			return err
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			release()
			return err
		}
		j := &joint{pool: db.Pool, conn: conn, give: release, tx: tx, act: actOf(ctx), change: &change{}}
		defer func() {
			if j.tx != nil { // also when f panics
				j.tx = nil
				_ = tx.Rollback(ctx)
				release()
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

// CommitOne commits the transaction of InOne early. Later queries with the context run outside of it.
func (db *DB) CommitOne(ctx context.Context) error {
	if j := jointOf(ctx, db.Pool); j != nil {
		return j.commit(ctx)
	}
	return nil
}

// Apart returns a context outside of the transaction of InOne.
func Apart(ctx context.Context) context.Context {
	return context.WithValue(ctx, jointKey{}, (*joint)(nil))
}

func (j *joint) commit(ctx context.Context) error {
	then := j.then
	if err := commit(ctx, j.conn.Conn(), j.tx, j.act, j.change); err != nil {
		return err
	}
	j.give()
	j.tx, j.then = nil, nil
	for _, f := range then {
		f()
	}
	return nil
}

func (j *joint) part(ctx context.Context, f func(Tx) error) error {
	then, changed := len(j.then), *j.change
	err := pgx.BeginFunc(ctx, j.tx, func(tx pgx.Tx) error { return f(in(&transaction{tx: tx, part: true}, j.act, j.change, &j.then)) })
	if err != nil {
		j.then, *j.change = j.then[:then], changed
	}
	return err
}

// joining sends queries to the transaction of their context, or to the pool.
type joining struct{ db *DB }

func (q joining) to(ctx context.Context) dbsqlc.DBTX {
	j := jointOf(ctx, q.db.Pool)
	switch {
	case j == nil:
		if within, ok := ctx.Value(withinKey{}).(time.Duration); ok {
			return prompt{q.db.acquire, within}
		}
		if s := shareOf(ctx); s != nil {
			return shared{q.db.Pool, s}
		}
		return q.db.Pool
	case j.act != nil:
		return watched{j.tx, j.change}
	}
	return j.tx
}

// asked returns the act for which a statement outside of any transaction changes rows; nil: none, or it changes nothing.
func (q joining) asked(ctx context.Context, sql string) (*Act, *statement) {
	act := actOf(ctx)
	if act == nil || jointOf(ctx, q.db.Pool) != nil {
		return nil, nil
	}
	if s := statementOf(sql); s.writes {
		return act, s
	}
	return nil, nil
}

func (q joining) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	if act, s := q.asked(ctx, sql); act != nil {
		return q.db.audited(ctx, act, s, sql, args)
	}
	to := q.to(ctx)
	if jointOf(ctx, q.db.Pool) != nil {
		return to.Exec(ctx, sql, args...)
	}
	err = untangled(ctx, func() error {
		tag, err = to.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

func (q joining) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if act, _ := q.asked(ctx, sql); act != nil {
		return nil, errUnaudited
	}
	return q.to(ctx).Query(ctx, sql, args...)
}

func (q joining) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if act, _ := q.asked(ctx, sql); act != nil {
		return failedRow{errUnaudited}
	}
	return q.to(ctx).QueryRow(ctx, sql, args...)
}
