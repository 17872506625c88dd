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

// LockedDevice is a device that is locked, and what belongs to it.
type LockedDevice struct {
	Device  dbsqlc.Device
	Codes   []dbsqlc.AccessCode
	Pending []dbsqlc.ActionAttempt
	Moment  time.Time
}

// LockDeviceWithCodes is LockDevice, AllCodesOfDevice, PendingAttemptsOfDevice and Moment in one round trip: every change of what
// is on a device begins with them. Each sees what was committed until the one before was through, so the codes are those
// of a device that is locked. The deadlines of attempts go by the database's clock, which moment is the time of.
func (tx Tx) LockDeviceWithCodes(ctx context.Context, id uuid.UUID) (LockedDevice, error) {
	return tx.lockedDevice(ctx, id, func(tx Tx) (dbsqlc.Device, error) { return tx.LockDevice(ctx, id) })
}

// LockWorkspaceDeviceWithCodes is LockDeviceWithCodes with LockWorkspaceDevice.
func (tx Tx) LockWorkspaceDeviceWithCodes(ctx context.Context, arg dbsqlc.LockWorkspaceDeviceParams) (LockedDevice, error) {
	return tx.lockedDevice(ctx, arg.DeviceID, func(tx Tx) (dbsqlc.Device, error) { return tx.LockWorkspaceDevice(ctx, arg) })
}

func (tx Tx) lockedDevice(ctx context.Context, id uuid.UUID, lock func(Tx) (dbsqlc.Device, error)) (l LockedDevice, err error) {
	err = tx.Together(ctx,
		func(tx Tx) (err error) { l.Device, err = lock(tx); return err },
		func(tx Tx) (err error) { l.Codes, err = tx.AllCodesOfDevice(ctx, id); return err },
		func(tx Tx) (err error) { l.Pending, err = tx.PendingAttemptsOfDevice(ctx, id); return err },
		func(tx Tx) (err error) { l.Moment, err = tx.Moment(ctx); return err })
	return l, err
}

// Together makes one query with each step, on the Tx that the step is given, all in one round trip; it ends with the first
// error. Each step is run twice: to queue its query, when it finds nothing, and to read the answer. So it does nothing but
// make the same query both times.
func (tx Tx) Together(ctx context.Context, steps ...func(Tx) error) error {
	batch := tx.in.batch()
	if err := run(steps, Tx{Queries: dbsqlc.New(queue{batch})}); err != nil {
		return err
	}
	results := tx.in.send(ctx, batch)
	err := run(steps, Tx{Queries: dbsqlc.New(watched{answers{results}, tx.change})})
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

// Each makes one query for each of all, on the Tx that it is given, a hundred in a round trip. query is as the steps of
// Together are.
func Each[T any](ctx context.Context, tx Tx, all []T, query func(Tx, T) error) error {
	for some := range slices.Chunk(all, 100) {
		steps := make([]func(Tx) error, len(some))
		for i, one := range some {
			steps[i] = func(tx Tx) error { return query(tx, one) }
		}
		if err := tx.Together(ctx, steps...); err != nil {
			return err
		}
	}
	return nil
}

// Conclude is Together for the last that is done in a transaction: its end goes along with it, and nothing is done in it
// afterwards. What a step finds is only known when all is committed, so each is to be one that changes something or fails.
func (tx Tx) Conclude(ctx context.Context, steps ...func(Tx) error) error {
	if tx.in.part {
		return tx.Together(ctx, steps...)
	}
	batch := tx.in.batch()
	var own dbsqlc.DBTX = queue{batch}
	if tx.act != nil {
		own = watched{own, tx.change}
	}
	if err := run(steps, Tx{Queries: dbsqlc.New(own)}); err != nil {
		return err
	}
	committed := tx.act.end(batch, tx.change)
	results := tx.in.send(ctx, batch)
	err := run(steps, Tx{Queries: dbsqlc.New(answers{results})})
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

// queue puts queries into a batch, and answers that they have found nothing and changed something.
type queue struct{ batch *pgx.Batch }

// Exec queues a statement.
func (q queue) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	q.batch.Queue(sql, args...)
	return pgconn.NewCommandTag("UPDATE 1"), nil
}

// Query queues a query for rows.
func (q queue) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	q.batch.Queue(sql, args...)
	return nothing{}, nil
}

// QueryRow queues a query for a row.
func (q queue) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	q.batch.Queue(sql, args...)
	return nothing{}
}

// nothing is the answer to a query that is not made yet.
type nothing struct{ pgx.Rows }

// Next says that there is no row.
func (nothing) Next() bool { return false }

// Err is nil.
func (nothing) Err() error { return nil }

// Close has nothing to do.
func (nothing) Close() {}

// Scan leaves everything as it is.
func (nothing) Scan(...any) error { return nil }

// answers has queries read the results of a batch, in the order in which they were queued.
type answers struct{ results pgx.BatchResults }

// Exec reads what a statement has done.
func (a answers) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return a.results.Exec()
}

// Query reads rows.
func (a answers) Query(context.Context, string, ...any) (pgx.Rows, error) { return a.results.Query() }

// QueryRow reads a row.
func (a answers) QueryRow(context.Context, string, ...any) pgx.Row { return a.results.QueryRow() }
