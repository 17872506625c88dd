package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const (
	auditDays     = 400 // for which entries are kept unless told otherwise
	schemaWithout = "bench_without"
	schemaWith    = "bench_with"
)

// auditBed is an audit log twice: without an index of workspaces, and with one.
type auditBed struct {
	cluster       *cluster
	without, with node
}

// auditWorkspace is one of the workspaces; they are numbered by their size, the largest is the first.
func auditWorkspace(n int) uuid.UUID {
	sum := sha256.Sum256([]byte(fmt.Sprint(n)))
	return uuid.UUID(sum[:16])
}

func (b *auditBed) fill(ctx context.Context, rows int) (err error) {
	if b.cluster, err = newCluster(ctx); err != nil {
		return err
	}
	dsn := b.cluster.DSN("postgres")
	if err := store.Migrate(ctx, dsn); err != nil {
		return err
	}
	keys, err := encryption.New(encryption.NewMaster())
	if err != nil {
		return err
	}
	if b.without, err = newNode(ctx, dsn+"&search_path="+schemaWithout+",public", keys); err != nil {
		return err
	}
	if b.with, err = newNode(ctx, dsn+"&search_path="+schemaWith+",public", keys); err != nil {
		return err
	}
	began := time.Now()
	for _, sql := range append(b.tables(rows), "checkpoint") {
		if _, err := b.without.db.Pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	fmt.Printf("filled in %.0f s\n", time.Since(began).Seconds())
	return nil
}

// tables make the log twice. Entries are of workspaces by Zipf's law, and of three subjects each, as that of a code which is made.
func (b *auditBed) tables(rows int) (statements []string) {
	from := fmt.Sprintf(`(select %s, at, substr(encode(sha256(n::text::bytea), 'hex'), 1, 32)::uuid, 'api_key', gen_random_uuid(), 'a key', gen_random_uuid(), '/access_codes/create',
			array['access_code_id', 'device_id', 'action_attempt_id'], array[gen_random_uuid(), gen_random_uuid(), gen_random_uuid()], 'begun'
		from (select i, now() - (%[2]d - i) * interval '1 day' * %[3]d / %[2]d as at, least(%[4]d, floor(exp(random() * ln(%[4]d + 1))))::int as n from generate_series(1, %[2]d) i) e) e`,
		idAt("at", "i"), rows, auditDays, growthWorkspaces)
	for _, schema := range []string{schemaWithout, schemaWith} {
		table := schema + ".audit_log"
		statements = append(statements, "create schema "+schema,
			fmt.Sprintf("create table %s (like public.audit_log including all excluding indexes)", table),
			fmt.Sprintf("insert into %s select * from %s", table, from),
			indexes(schema, "btree"))
		from = table
	}
	return append(statements, fmt.Sprintf("vacuum analyze %s.audit_log, %s.audit_log", schemaWithout, schemaWith))
}

// indexes makes those of a kind that the migrations make; one side has none of workspaces.
func indexes(schema, kind string) string {
	return fmt.Sprintf(`set local maintenance_work_mem = '1GB'; do $$ declare i text; begin
		for i in select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'public.audit_log'::regclass loop
			if strpos(i, ' USING %[2]s ') > 0 and (%[3]t or strpos(i, '(workspace_id, ') = 0) then
				execute replace(i, ' ON public.audit_log ', ' ON %[1]s.audit_log ');
			end if;
		end loop; end $$`, schema, kind, schema == schemaWith)
}

// complete makes the other indexes, which what is asked by workspace has no use for, and which take longest.
func (b *auditBed) complete(ctx context.Context) error {
	for _, sql := range []string{indexes(schemaWithout, "gin"), indexes(schemaWith, "gin"), "checkpoint"} {
		if _, err := b.without.db.Pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func (b *auditBed) close() {
	for _, n := range []node{b.without, b.with} {
		if n.db != nil {
			n.db.Close()
		}
	}
	if b.cluster != nil {
		b.cluster.close()
	}
}
