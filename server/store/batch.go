package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// LockedDevice is a locked device with its codes and pending attempts.
type LockedDevice struct {
	Device  dbsqlc.Device
	Codes   []dbsqlc.AccessCode
	Pending []dbsqlc.ActionAttempt
	Moment  time.Time
}

// LockDeviceWithCodes is LockDevice, AllCodesOfDevice, PendingAttemptsOfDevice, and Moment in one round trip. Every
// change of the codes of a device starts with it. Each query sees what was committed before it, so the codes are those
// of the locked device. Moment is the time of the database, which decides about deadlines. The further steps follow in
// the same round trip (Batch).
func (tx Tx) LockDeviceWithCodes(
	ctx context.Context, id uuid.UUID, further ...func(Tx) error,
) (LockedDevice, error) {
	return tx.lockedDevice(ctx, id, func(tx Tx) (dbsqlc.Device, error) { return tx.LockDevice(ctx, id) }, further...)
}

// LockWorkspaceDeviceWithCodes is LockDeviceWithCodes with LockWorkspaceDevice.
func (tx Tx) LockWorkspaceDeviceWithCodes(
	ctx context.Context,
	arg dbsqlc.LockWorkspaceDeviceParams,
) (LockedDevice, error) {
	return tx.lockedDevice(
		ctx,
		arg.DeviceID,
		func(tx Tx) (dbsqlc.Device, error) { return tx.LockWorkspaceDevice(ctx, arg) },
	)
}

func (tx Tx) lockedDevice(
	ctx context.Context,
	id uuid.UUID,
	lock func(Tx) (dbsqlc.Device, error),
	further ...func(Tx) error,
) (l LockedDevice, err error) {
	err = tx.Batch(ctx, append([]func(Tx) error{
		func(tx Tx) (err error) { l.Device, err = lock(tx); return err },
		func(tx Tx) (err error) { l.Codes, err = tx.AllCodesOfDevice(ctx, id); return err },
		func(tx Tx) (err error) { l.Pending, err = tx.PendingAttemptsOfDevice(ctx, id); return err },
		func(tx Tx) (err error) { l.Moment, err = tx.Now(ctx); return err },
	}, further...)...)
	return l, err
}

// Batch runs one query per step in one round trip, and stops at the first error. Each step runs its query on the Tx
// that it receives. It is called twice, once to queue the query, which then finds nothing, and once to read the result,
// so it must do nothing but run the same query both times.
func (tx Tx) Batch(ctx context.Context, steps ...func(Tx) error) error {
	batch := tx.in.batch()
	if err := run(steps, Tx{Queries: dbsqlc.New(queue{batch})}); err != nil {
		return err
	}
	results := tx.in.send(ctx, batch)
	err := run(steps, Tx{Queries: dbsqlc.New(auditedQueries{batchResults{results}, tx.change})})
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

// Batch runs queries outside of the audit log in one round trip and one transaction. The rules for its steps are those
// of Tx.Batch. It runs them again after a deadlock or a lock timeout.
func (db *DB) Batch(ctx context.Context, steps ...func(Tx) error) error {
	if len(steps) == 0 {
		return nil
	}
	if actOf(ctx) != nil {
		return db.InTx(ctx, func(tx Tx) error { return tx.Batch(ctx, steps...) })
	}
	return retryDeadlocks(ctx, func() error {
		batch := &pgx.Batch{}
		if err := run(steps, Tx{Queries: dbsqlc.New(queue{batch})}); err != nil {
			return err
		}
		conn, release, err := db.acquire(ctx)
		if err != nil {
			return err
		}
		defer release()
		results := conn.SendBatch(ctx, batch) // without begin and commit, the batch is a transaction
		err = run(steps, Tx{Queries: dbsqlc.New(batchResults{results})})
		if closed := results.Close(); err == nil {
			err = closed
		}
		return err
	})
}

// Each runs one query for each element of all, a hundred per round trip. query follows the rules for steps of Batch.
func Each[T any](ctx context.Context, tx Tx, all []T, query func(Tx, T) error) error {
	for some := range slices.Chunk(all, 100) {
		steps := make([]func(Tx) error, len(some))
		for i, one := range some {
			steps[i] = func(tx Tx) error { return query(tx, one) }
		}
		if err := tx.Batch(ctx, steps...); err != nil {
			return err
		}
	}
	return nil
}

// BatchLast is Batch for the last queries of a transaction, in one round trip with the commit. Nothing may use the
// transaction afterwards. A step learns its result only after the commit, so it must be a query that changes rows or
// fails.
func (tx Tx) BatchLast(ctx context.Context, steps ...func(Tx) error) error {
	if tx.in.part {
		return tx.Batch(ctx, steps...)
	}
	batch := tx.in.batch()
	var own dbsqlc.DBTX = queue{batch}
	if tx.act != nil {
		own = auditedQueries{own, tx.change}
	}
	if err := run(steps, Tx{Queries: dbsqlc.New(own)}); err != nil {
		return err
	}
	committed := tx.act.end(batch, tx.change)
	results := tx.in.send(ctx, batch)
	err := run(steps, Tx{Queries: dbsqlc.New(batchResults{results})})
	if closed := results.Close(); closed == nil {
		*tx.in = transaction{over: true}
		committed()
	} else if err == nil {
		err = closed
	}
	return err
}

func run(steps []func(Tx) error, tx Tx) error {
	for _, step := range steps {
		if err := step(tx); err != nil {
			return err
		}
	}
	return nil
}

// queue adds queries to a batch. They appear to find no rows and to change one.
type queue struct{ batch *pgx.Batch }

// Exec queues a statement.
func (q queue) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	q.batch.Queue(sql, args...)
	return pgconn.NewCommandTag("UPDATE 1"), nil
}

// Query queues a query.
func (q queue) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	q.batch.Queue(sql, args...)
	return emptyResult{}, nil
}

// QueryRow queues a query for a row.
func (q queue) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	q.batch.Queue(sql, args...)
	return emptyResult{}
}

// emptyResult is the empty result of a queued query.
type emptyResult struct{ pgx.Rows }

// Next returns false.
func (emptyResult) Next() bool { return false }

// Err returns nil.
func (emptyResult) Err() error { return nil }

// Close does nothing.
func (emptyResult) Close() {}

// Scan does nothing.
func (emptyResult) Scan(...any) error { return nil }

// batchResults reads the results of a batch in the order of its queries.
type batchResults struct{ results pgx.BatchResults }

// Exec reads the result of a statement.
func (a batchResults) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return a.results.Exec()
}

// Query reads rows.
func (a batchResults) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return a.results.Query()
}

// QueryRow reads a row.
func (a batchResults) QueryRow(context.Context, string, ...any) pgx.Row { return a.results.QueryRow() }
