package store_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// explain returns the plans of what list queries: made for its parameters, or without regard to them, as they
// are for a statement that is prepared once. Tables may be read as a whole: where that is thought best, an index is missing.
func explain(t *testing.T, db *store.DB, replan bool, list func(*dbsqlc.Queries) error) string {
	t.Helper()
	e := &explainer{db: db, mode: "force_generic_plan"}
	if replan {
		e.mode = "force_custom_plan"
	}
	if err := list(dbsqlc.New(e)); err != nil {
		t.Fatal(err)
	}
	return e.plans.String()
}

// explainer runs each query and records its plan.
type explainer struct {
	db    *store.DB
	mode  string
	plans strings.Builder
}

func (e *explainer) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := e.explain(ctx, sql, args); err != nil {
		return pgconn.CommandTag{}, err
	}
	return e.db.Pool.Exec(ctx, sql, args...)
}

func (e *explainer) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := e.explain(ctx, sql, args); err != nil {
		return failed{err}
	}
	return e.db.Pool.QueryRow(ctx, sql, args...)
}

// failed is a row that could not be asked for.
type failed struct{ error }

func (f failed) Scan(...any) error { return f.error }

func (e *explainer) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := e.explain(ctx, sql, args); err != nil {
		return nil, err
	}
	return e.db.Pool.Query(ctx, sql, args...)
}

func (e *explainer) explain(ctx context.Context, sql string, args []any) error {
	conn, err := e.db.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	const name = "explained"
	if _, err := conn.Exec(
		ctx,
		"set enable_seqscan = on; set plan_cache_mode = "+e.mode+"; prepare "+name+" as "+sql,
		pgx.QueryExecModeSimpleProtocol,
	); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer conn.Exec(
		context.WithoutCancel(ctx),
		"deallocate "+name+"; reset plan_cache_mode; set enable_seqscan = off",
		pgx.QueryExecModeSimpleProtocol,
	)
	literals := make([]string, len(args))
	for i, a := range args {
		literals[i] = literal(a)
	}
	in := ""
	if len(args) > 0 {
		in = "(" + strings.Join(literals, ", ") + ")"
	}
	rows, err := conn.Query(ctx, "explain execute "+name+in, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	plan, err := e.whole(ctx, strings.Join(lines, "\n"))
	e.plans.WriteString(plan + "\n")
	return err
}

// whole names partitions, and their indexes, as what they are parts of.
func (e *explainer) whole(ctx context.Context, plan string) (string, error) {
	rows, err := e.db.Pool.Query(
		ctx,
		"select c.relname, p.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent order by length(c.relname) desc",
	)
	if err != nil {
		return "", err
	}
	var names []string
	var part, of string
	_, err = pgx.ForEachRow(rows, []any{&part, &of}, func() error { names = append(names, part, of); return nil })
	return strings.NewReplacer(names...).Replace(plan), err
}

// literal writes a parameter as text of SQL.
func literal(a any) string {
	v := reflect.ValueOf(a)
	switch {
	case !v.IsValid(), (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice) && v.IsNil():
		return "null"
	case v.Kind() == reflect.Pointer:
		return literal(v.Elem().Interface())
	}
	switch a := a.(type) {
	case time.Time:
		return "'" + a.Format(time.RFC3339Nano) + "'"
	case []uuid.UUID:
		ids := make([]string, len(a))
		for i, id := range a {
			ids[i] = id.String()
		}
		return "'{" + strings.Join(ids, ",") + "}'"
	case []string:
		return "array['" + strings.Join(a, "','") + "']"
	default:
		return fmt.Sprintf("'%v'", a)
	}
}
