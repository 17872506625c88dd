package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// WithTracing adds statements to traces: the name of the query and its duration, but not its text, arguments, or error
// messages, which may quote either. otelpgx would include error messages.
func WithTracing(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer{} }

type tracer struct{}

var (
	_ pgx.QueryTracer       = tracer{}
	_ pgx.BatchTracer       = tracer{}
	_ pgxpool.AcquireTracer = tracer{}
)

func (tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !traces.Recording(ctx) {
		return ctx
	}
	name := nameOf(data.SQL)
	ctx, _ = traces.Start(ctx, name, traces.Database(), traces.Statement(name))
	return ctx
}

func (tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	span := traces.FromContext(ctx)
	if !span.Recording() {
		return
	}
	if data.Err == nil {
		span.Set(traces.Rows(data.CommandTag.RowsAffected()))
	}
	ended(span, data.Err)
}

func (tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if !traces.Recording(ctx) {
		return ctx
	}
	name := "batch"
	queued := data.Batch.QueuedQueries
	if len(queued) > 1 && queued[0].SQL == "begin" {
		queued = queued[1:]
	}
	if len(queued) > 0 {
		name += " " + nameOf(queued[0].SQL)
	}
	ctx, _ = traces.Start(ctx, name, traces.Database(), traces.Statement(name), traces.BatchSize(data.Batch.Len()))
	return ctx
}

func (tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (tracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	ended(traces.FromContext(ctx), data.Err)
}

func ended(span traces.Span, err error) {
	if err != nil {
		word := traces.ErrorWord(err, "lost")
		if e, ok := errors.AsType[*pgconn.PgError](err); ok {
			word = e.Code
		}
		span.Fail(word)
	}
	span.End()
}

// Waits for a connection, from the pool or a share, are traced from this duration on.
const (
	minTracedWait = 2 * time.Millisecond
	waitName      = "wait for a connection"
)

type acquiringKey struct{}

func (tracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	if !traces.Recording(ctx) {
		return ctx
	}
	return context.WithValue(ctx, acquiringKey{}, time.Now())
}

func (tracer) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	since, ok := ctx.Value(acquiringKey{}).(time.Time)
	if !ok || data.Err == nil && time.Since(since) < minTracedWait {
		return
	}
	ended(traces.Record(ctx, since, waitName, traces.Database()), data.Err)
}

// nameOf returns the name of a query in queries/, or the keyword of a statement that begins or ends a transaction.
func nameOf(sql string) string {
	if _, rest, ok := strings.Cut(sql, "-- name: "); ok {
		name, _, _ := strings.Cut(rest, " ")
		if named(name) {
			return name
		}
	}
	word, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
	switch word = strings.ToLower(word); word {
	case "begin", "commit", "rollback", "savepoint", "release":
		return word
	}
	return "unnamed"
}

func named(name string) bool {
	return name != "" && len(name) < 64 &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
