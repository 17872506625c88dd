package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const partitionsOfHash = 16

// hashed are the tables that are compared as one table each, and as partitions.
var hashed = []string{"devices", "access_codes"}

// side is the same rows with the same names in a schema of its own, so that the server's own statements are run on them.
type side struct {
	schema string
	parts  int // 0: one table
	db     *store.DB
}

// newSide has no foreign keys: what refers to these tables stays with those of the server.
func (b *listBed) newSide(ctx context.Context, schema string, parts int) (*side, error) {
	s := &side{schema: schema, parts: parts}
	if _, err := b.pool.Exec(ctx, "create schema "+schema); err != nil {
		return nil, err
	}
	for _, table := range hashed {
		if err := b.fillSide(ctx, s, table); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", schema, table, err)
		}
	}
	if err := b.viewsOf(ctx, s); err != nil {
		return nil, err
	}
	var err error
	s.db, err = store.Open(ctx, b.cluster.DSN("postgres")+"&search_path="+schema+",public", 1)
	return s, err
}

// fillSide makes a table as the migrations have made it, with the rows that there are. Those of one workspace lie among those of others, as in life.
func (b *listBed) fillSide(ctx context.Context, s *side, table string) error {
	indexes, err := b.ids(ctx, `select pg_get_indexdef(i.indexrelid) || case when i.indisunique and not exists (
			select from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any (i.indkey::int2[]) and a.attname = 'workspace_id') then '#' else '' end
		from pg_index i where i.indrelid = $1::regclass order by i.indexrelid`, table)
	if err != nil {
		return err
	}
	sql := fmt.Sprintf("create table %s.%s (like %[2]s including all excluding indexes)", s.schema, table)
	if s.parts > 0 {
		sql += " partition by hash (workspace_id)"
	}
	for i := range s.parts {
		sql += fmt.Sprintf("; create table %s.%s_%d partition of %[1]s.%[2]s for values with (modulus %[4]d, remainder %[3]d)", s.schema, table, i, s.parts)
	}
	sql += fmt.Sprintf("; insert into %s.%s select * from %[2]s order by md5(created_at::text)", s.schema, table)
	for _, index := range indexes {
		sql += "; " + s.index(index, table)
	}
	if err := b.insert(ctx, s.schema+"."+table, sql); err != nil {
		return err
	}
	_, err = b.pool.Exec(ctx, "vacuum analyze "+s.schema+"."+table)
	return err
}

// index is the definition of one for this side: a unique one of partitions has to contain what they are made by; # at its end says
// that it does not.
func (s *side) index(definition, table string) string {
	definition, lacking := strings.CutSuffix(definition, "#")
	definition = strings.Replace(definition, " ON public."+table+" ", " ON "+s.schema+"."+table+" ", 1)
	if !lacking || s.parts == 0 {
		return definition
	}
	open := strings.Index(definition, "(")
	for i, depth := open, 0; i < len(definition); i++ {
		switch definition[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return definition[:i] + ", workspace_id" + definition[i:]
			}
		}
	}
	return definition
}

// viewsOf are those through which the server reads devices.
func (b *listBed) viewsOf(ctx context.Context, s *side) error {
	tx, err := b.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // unless it is committed
	rows, err := tx.Query(ctx, `select format('create view %I.%I as %s', $1::text, viewname, definition) from pg_views where schemaname = 'public' and definition ~ 'FROM (devices|access_codes)\M'`, s.schema)
	if err != nil {
		return err
	}
	views, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "set local search_path = "+s.schema+", public"); err != nil {
		return err
	}
	for _, view := range views {
		if _, err := tx.Exec(ctx, view); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// tables are the ones that hold the rows of a table.
func (s *side) tables(table string) (names []string) {
	if s.parts == 0 {
		return []string{s.schema + "." + table}
	}
	for i := range s.parts {
		names = append(names, fmt.Sprintf("%s.%s_%d", s.schema, table, i))
	}
	return names
}

// sizes are the bytes of the indexes of a side, of all it has, and of the largest of its partitions with the others of the same number.
func (b *listBed) sizes(ctx context.Context, s *side) (indexes, all, largest float64, err error) {
	parts := make([]float64, max(1, s.parts))
	for _, table := range hashed {
		for i, name := range s.tables(table) {
			var of, whole float64
			if err := b.pool.QueryRow(ctx, "select pg_indexes_size($1::regclass)::float8, pg_total_relation_size($1::regclass)::float8", name).Scan(&of, &whole); err != nil {
				return 0, 0, 0, err
			}
			indexes, all, parts[i] = indexes+of, all+whole, parts[i]+whole
		}
	}
	for _, part := range parts {
		largest = max(largest, part)
	}
	return indexes, all, largest, nil
}
