package store

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// connShare limits how many connections of the pool a context uses concurrently. The pool serves callers in order: without a
// limit, two hundred deliveries would delay a request that reads one row.
type connShare struct {
	Part
	of *connShare // the share that it is part of; nil: the pool
}

type shareKey struct{}

// Sharing returns the context for background work. Its queries and transactions use at most a quarter of the pool, so
// that requests find free connections. The connections of the job queue are not counted.
func (db *DB) Sharing(ctx context.Context) context.Context {
	return context.WithValue(ctx, shareKey{}, &connShare{Part: db.shared()})
}

func (db *DB) shared() Part { return make(Part, max(1, int(db.Pool.Config().MaxConns)/4)) }

// Part limits the connections of one of several users of a share. nil: no limit.
type Part chan struct{}

// Part returns a Part of so many eighths of the limit of Sharing.
func (db *DB) Part(eighths int) Part { return make(Part, max(1, cap(db.shared())*eighths/8)) }

// Of returns the context for work that is limited by the part as well as by the share of ctx.
func (p Part) Of(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, shareKey{}, &connShare{Part: p, of: shareOf(ctx)})
}

// Unshared returns a context without a limit, for short work that must not wait for other background work.
func Unshared(ctx context.Context) context.Context {
	return context.WithValue(ctx, shareKey{}, (*connShare)(nil))
}

func shareOf(ctx context.Context) *connShare {
	s, _ := ctx.Value(shareKey{}).(*connShare)
	return s
}

// acquire waits for a slot of the share, which release returns. Without a share it returns immediately.
func (s *connShare) acquire(ctx context.Context) error {
	if s == nil {
		return nil
	}
	begun := time.Now()
	err := s.wait(ctx)
	if traces.Recording(ctx) && (err != nil || time.Since(begun) >= minTracedWait) {
		ended(traces.Record(ctx, begun, waitName, traces.Database()), err)
	}
	return err
}

// wait takes the narrowest slot first, so that waiting for it blocks no wider one.
func (s *connShare) wait(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s.Part <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := s.of.wait(ctx)
	if err != nil {
		<-s.Part
	}
	return err
}

func (s *connShare) release() {
	for ; s != nil; s = s.of {
		<-s.Part
	}
}

// acquire takes a connection from the pool until release is called.
func (db *DB) acquire(ctx context.Context) (_ *pgxpool.Conn, release func(), err error) {
	s := shareOf(ctx)
	if err := s.acquire(ctx); err != nil {
		return nil, nil, err
	}
	conn, err := db.Pool.Acquire(ctx)
	if err != nil {
		s.release()
		return nil, nil, err
	}
	return conn, func() { conn.Release(); s.release() }, nil
}

// shared sends queries to the pool within a share.
type shared struct {
	pool  *pgxpool.Pool
	share *connShare
}

func (q shared) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := q.share.acquire(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	defer q.share.release()
	return q.pool.Exec(ctx, sql, args...)
}

func (q shared) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := q.share.acquire(ctx); err != nil {
		return nil, err
	}
	rows, err := q.pool.Query(ctx, sql, args...)
	if err != nil {
		q.share.release()
		return nil, err
	}
	return sharedRows{rows, sync.OnceFunc(q.share.release)}, nil
}

func (q shared) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := q.share.acquire(ctx); err != nil {
		return failedRow{err}
	}
	return sharedRow{q.pool.QueryRow(ctx, sql, args...), q.share.release}
}

type sharedRows struct {
	pgx.Rows
	give func()
}

func (r sharedRows) Close() { r.Rows.Close(); r.give() }

type sharedRow struct {
	pgx.Row
	give func()
}

func (r sharedRow) Scan(to ...any) error {
	defer r.give()
	return r.Row.Scan(to...)
}

// failedRow is the result of a query that was not sent.
type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }
