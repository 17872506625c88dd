package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// transaction starts in the round trip of its first statement.
type transaction struct {
	conn *pgxpool.Conn
	tx   pgx.Tx // nil: not started
	over bool   // the commit went along with the last statements
	part bool   // a part of WithAmbientTx
}

// begin returns the transaction, which it starts if necessary.
func (t *transaction) begin(ctx context.Context) (_ pgx.Tx, err error) {
	if t.tx == nil {
		t.tx, err = t.conn.Begin(ctx)
	}
	return t.tx, err
}

// rollback rolls the transaction back unless it has ended.
func (t *transaction) rollback(ctx context.Context) {
	if t.tx != nil && !t.over {
		_ = t.tx.Rollback(ctx)
	}
}

// batch returns an empty batch, which starts the transaction if necessary.
func (t *transaction) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if t.tx == nil {
		b.BeginTx(pgx.TxOptions{})
	}
	return b
}

// send sends a batch that batch returned. The results must be closed before the next statement.
func (t *transaction) send(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.tx != nil {
		return t.tx.SendBatch(ctx, b)
	}
	results := t.conn.SendBatch(ctx, b)
	t.tx = results.Tx()
	_, _ = results.Exec() // an error of begin shows in the following statements
	return results
}

// Exec runs a statement.
func (t *transaction) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	if t.tx != nil {
		return t.tx.Exec(ctx, sql, args...)
	}
	b := t.batch()
	b.Queue(sql, args...)
	results := t.send(ctx, b)
	tag, err = results.Exec()
	if closed := results.Close(); err == nil {
		err = closed
	}
	return tag, err
}

// Query runs a query.
func (t *transaction) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.tx != nil {
		return t.tx.Query(ctx, sql, args...)
	}
	b := t.batch()
	b.Queue(sql, args...)
	results := t.send(ctx, b)
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return &firstRows{Rows: rows, results: results}, nil
}

// QueryRow runs a query for one row.
func (t *transaction) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if t.tx != nil {
		return t.tx.QueryRow(ctx, sql, args...)
	}
	b := t.batch()
	b.Queue(sql, args...)
	results := t.send(ctx, b)
	return firstRow{results.QueryRow(), results}
}

// firstRows are the rows of the statement that started a transaction.
type firstRows struct {
	pgx.Rows
	results pgx.BatchResults
}

// Close frees the connection for the next statement.
func (r *firstRows) Close() {
	r.Rows.Close()
	_ = r.results.Close() // an error of the statement is the rows' error, and one of the connection affects the next statement
}

// firstRow is the row of the statement that started a transaction.
type firstRow struct {
	pgx.Row
	results pgx.BatchResults
}

// Scan reads the row.
func (r firstRow) Scan(to ...any) error {
	err := r.Row.Scan(to...)
	if closed := r.results.Close(); err == nil {
		err = closed
	}
	return err
}
