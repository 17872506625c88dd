package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// LockDeviceWithCodes is LockDevice, AllCodesOfDevice and PendingAttemptsOfDevice in one round trip: every change of what
// is on a device begins with them. Each sees what was committed until the one before was through, so the codes are those
// of a device that is locked.
func (tx Tx) LockDeviceWithCodes(ctx context.Context, id uuid.UUID) (d Device, codes []AccessCode, pending []ActionAttempt, err error) {
	batch := &pgx.Batch{}
	for _, sql := range []string{lockDevice, allCodesOfDevice, pendingAttemptsOfDevice} {
		batch.Queue(sql, id)
	}
	results := tx.Tx.SendBatch(ctx, batch)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	q := New(answers{results})
	if d, err = q.LockDevice(ctx, id); err != nil {
		return d, nil, nil, err
	}
	if codes, err = q.AllCodesOfDevice(ctx, id); err != nil {
		return d, nil, nil, err
	}
	pending, err = q.PendingAttemptsOfDevice(ctx, id)
	return d, codes, pending, err
}

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
