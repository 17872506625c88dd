package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// transaction is one that begins in the round trip of the first that is done in it.
type transaction struct {
	conn *pgxpool.Conn
	tx   pgx.Tx // nil: it has not begun
	over bool   // its end went along with the last that was done in it
	part bool   // of another one, with which it is committed
}

// begin is the transaction, begun in a round trip of its own unless it has begun.
func (t *transaction) begin(ctx context.Context) (_ pgx.Tx, err error) {
	if t.tx == nil {
		t.tx, err = t.conn.Begin(ctx)
	}
	return t.tx, err
}

// rollback undoes what has not been committed.
func (t *transaction) rollback(ctx context.Context) {
	if t.tx != nil && !t.over {
		_ = t.tx.Rollback(ctx)
	}
}

// batch is where statements are queued that are to go together; the first of a transaction begins it.
func (t *transaction) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if t.tx == nil {
		b.BeginTx(pgx.TxOptions{})
	}
	return b
}

// send sends a batch of its own making. The results are to be closed before anything else is done.
func (t *transaction) send(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.tx != nil {
		return t.tx.SendBatch(ctx, b)
	}
	results := t.conn.SendBatch(ctx, b)
	t.tx = results.Tx()
	_, _ = results.Exec() // what was wrong with the beginning is told with what follows
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

// Query asks for rows.
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

// QueryRow asks for a row.
func (t *transaction) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if t.tx != nil {
		return t.tx.QueryRow(ctx, sql, args...)
	}
	b := t.batch()
	b.Queue(sql, args...)
	results := t.send(ctx, b)
	return firstRow{results.QueryRow(), results}
}

// firstRows are those of the statement that has begun a transaction.
type firstRows struct {
	pgx.Rows
	results pgx.BatchResults
}

// Close frees the connection for the next statement.
func (r *firstRows) Close() {
	r.Rows.Close()
	_ = r.results.Close() // an error of the statement is that of the rows; one of the connection is met by the next statement
}

// firstRow is that of the statement that has begun a transaction.
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
