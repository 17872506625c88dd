package app_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Each table gets a row with a value in every column when a migration creates it, and another one when a migration adds a column.
// No later migration loses or changes a value. TestDatabaseOfTheFirstSchemaIsUpgraded checks what rows mean.
func TestMigrationsKeepRows(t *testing.T) {
	t.Parallel()
	o := &old{T: t, dsn: storetest.New(t)}
	o.exec("drop schema public cascade; create schema public")
	db, err := sql.Open("pgx", o.dsn)
	o.must(err)
	defer db.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("../store/migrations"))
	o.must(err)
	known := map[string]string{}
	conn, end := o.connect()
	defer end()
	for {
		before := o.rowsOn(conn)
		step, err := steps.UpByOne(o.Context())
		if errors.Is(err, goose.ErrNoNextVersion) {
			break
		}
		o.must(err)
		name := filepath.Base(step.Source.Path)
		o.keeps(name, before, o.rowsOn(conn))
		o.fillTables(conn, name, known)
	}
	for table, rows := range o.rowsOn(conn) {
		if len(rows) == 0 && known[table] != "" {
			t.Errorf("table %s is empty, so its rows are not tested", table)
		}
	}
}

// fillTables inserts a row into each table whose columns differ from the known ones. Tables refer to each other, so it retries
// until all are filled.
func (o *old) fillTables(conn *pgx.Conn, after string, known map[string]string) {
	o.Helper()
	names, err := conn.Query(
		o.Context(),
		`select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
		and not relispartition and relname <> 'goose_db_version' and relname not like 'river\_%'`,
	)
	o.must(err)
	tables, err := pgx.CollectRows(names, pgx.RowTo[string])
	o.must(err)
	var left []string
	columns := map[string][]column{}
	for _, table := range tables {
		columns[table] = o.columns(conn, table)
		if shape := fmt.Sprint(columns[table]); shape != known[table] {
			left = append(left, table)
			known[table] = shape
		}
	}
	for len(left) > 0 {
		var problems []error
		still := slices.DeleteFunc(slices.Clone(left), func(table string) bool {
			err := insertRow(o.Context(), conn, table, columns[table])
			problems = append(problems, err)
			return err == nil
		})
		if len(still) == len(left) {
			o.Fatalf("after %s, no row can be inserted into %v: %v", after, left, errors.Join(problems...))
		}
		left = still
	}
}

// column is a column to write. It refers to the column Its of the table Of.
type column struct{ Name, Type, Of, Its, Check string }

func (o *old) columns(conn *pgx.Conn, table string) []column {
	o.Helper()
	rows, err := conn.Query(
		o.Context(),
		`select a.attname, format_type(a.atttypid, null), coalesce(f.confrelid::regclass::text, ''), coalesce(r.attname, ''), coalesce(pg_get_constraintdef(k.oid), '')
		from pg_attribute a
		left join lateral (select * from pg_constraint c where c.contype = 'f' and c.conrelid = a.attrelid and a.attnum = any(c.conkey) limit 1) f on true
		left join pg_attribute r on r.attrelid = f.confrelid and r.attnum = f.confkey[array_position(f.conkey, a.attnum)]
		left join lateral (select * from pg_constraint c where c.contype = 'c' and c.conrelid = a.attrelid and c.conkey = array[a.attnum] limit 1) k on true
		where a.attrelid = ('public.' || quote_ident($1))::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity <> 'a'
		order by a.attnum`,
		table,
	)
	o.must(err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	o.must(err)
	return all
}

// word matches a value that a check allows.
var word = regexp.MustCompile(`'([^']+)'::text`)

// values are expressions for columns of a type.
var values = map[string]string{
	"uuid":                     "gen_random_uuid()",
	"text":                     "'t' || gen_random_uuid()",
	"bytea":                    "decode(md5(random()::text), 'hex')",
	"boolean":                  "true",
	"smallint":                 "1 + floor(random() * 200)::smallint",
	"integer":                  "1 + floor(random() * 1000000)::integer",
	"bigint":                   "1 + floor(random() * 1000000000)::bigint",
	"double precision":         "0.5",
	"jsonb":                    `'{"k": "v"}'`,
	"timestamp with time zone": "now()",
	"interval":                 "interval '1 minute'",
	"date":                     "current_date",
}

func insertRow(ctx context.Context, conn *pgx.Conn, table string, columns []column) error {
	var names, exprs []string
	for _, c := range columns {
		kind, isList := strings.CutSuffix(c.Type, "[]")
		expr := values[kind]
		switch words := word.FindStringSubmatch(c.Check); {
		case c.Of != "": // the newest row, for all columns of a key
			expr = fmt.Sprintf("(select %s from %s order by ctid desc limit 1)", pgx.Identifier{c.Its}.Sanitize(), c.Of)
		case words != nil:
			expr = "'" + words[1] + "'"
		case expr == "":
			return fmt.Errorf("%s.%s: what to write into a column of type %s?", table, c.Name, c.Type)
		case isList:
			expr = "array[" + expr + "]"
		}
		names, exprs = append(names, pgx.Identifier{c.Name}.Sanitize()), append(exprs, expr)
	}
	_, err := conn.Exec(
		ctx,
		fmt.Sprintf(
			"insert into %s (%s) values (%s)",
			pgx.Identifier{table}.Sanitize(),
			strings.Join(names, ", "),
			strings.Join(exprs, ", "),
		),
	)
	if err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	return nil
}
