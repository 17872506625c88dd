package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// tablesOfOthers selects tables in the current schema that belong neither to the server nor to an extension. Bookkeeping
// tables of migration tools do not count: an interrupted first start leaves one.
const tablesOfOthers = `select quote_ident(c.relname) from pg_class c
	where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p', 'f')
	and c.relname not in ('goose_db_version', 'schema_migrations')
	and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
	order by c.relname limit 4`

// ours reports whether the schema has tables that the first migration creates and no migration drops. Then it is ours.
const ours = `select count(*) = 4 from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p')
	and relname in ('goose_db_version', 'server_keys', 'credential_workspaces', 'action_attempts')`

// refuseForeignTables fails if a migration would create tables next to those of another application.
func refuseForeignTables(ctx context.Context, db *sql.DB) error {
	var schema string
	if err := db.QueryRowContext(ctx, "select quote_ident(current_schema())").Scan(&schema); err != nil {
		return fmt.Errorf("look for a schema in the database: %w", err)
	}
	others, err := names(ctx, db, tablesOfOthers, schema)
	if err != nil {
		return fmt.Errorf("look for tables of others in the database: %w", err)
	}
	if len(others) == 0 {
		return nil
	}
	var isOurs bool
	if err := db.QueryRowContext(ctx, ours, schema).Scan(&isOurs); err != nil {
		return fmt.Errorf("look for tables in the database: %w", err)
	}
	if isOurs {
		return nil
	}
	if len(others) > 3 {
		others[3] = "…"
	}
	return fmt.Errorf(
		"the schema %q of the database has tables of something else (%s), and none of this server: nothing has been changed. "+
			"Name another database, or give the server a schema of its own in this one: make it (create schema deviceaccess), and add search_path=deviceaccess to the URL, "+
			"as in postgres://host/name?search_path=deviceaccess",
		schema,
		strings.Join(others, ", "),
	)
}

func names(ctx context.Context, db *sql.DB, query string, args ...any) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says what was wrong
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}
