package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Listing a quiet workspace reads no entries of other workspaces, in either order.
func TestAuditOfAWorkspaceReadsNoOther(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	quiet := uuid.New()
	if _, err := db.Pool.Exec(
		t.Context(),
		`insert into audit_log (audit_id, occurred_at, workspace_id, actor_kind, operation, subject_kinds, subject_ids, outcome)
		select gen_random_uuid(), now() - n * interval '1 minute', case when n % 1000 = 0 then $1::uuid else md5((n % 7)::text)::uuid end, 'api_key', '/access_codes/create', '{}', '{}', 'done'
		from generate_series(1, 10000) n`,
		quiet,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool.Exec(t.Context(), "vacuum analyze audit_log"); err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string]func(*dbsqlc.Queries) ([]dbsqlc.AuditLog, error){
		"the newest first": func(q *dbsqlc.Queries) ([]dbsqlc.AuditLog, error) {
			return q.AuditBefore(t.Context(), dbsqlc.AuditBeforeParams{BeforeAt: time.Now(), WorkspaceID: &quiet, MaxRows: 500})
		},
		"the oldest first": func(q *dbsqlc.Queries) ([]dbsqlc.AuditLog, error) {
			return q.AuditAfter(t.Context(), dbsqlc.AuditAfterParams{Until: time.Now(), WorkspaceID: &quiet, MaxRows: 500})
		},
	} {
		var found int
		plan := explain(t, db, true, func(q *dbsqlc.Queries) error {
			entries, err := list(q)
			found = len(entries)
			return err
		})
		if found != 10 || !strings.Contains(plan, "audit_log_of_workspace") ||
			!strings.Contains(plan, "Index Cond: ((workspace_id = ") {
			t.Errorf("%s: %d entries, want 10 by the index of the workspace:\n%s", name, found, plan)
		}
	}
}

// The console's first page reads the newest entries of the workspace and those of the whole installation, each from its
// index.
func TestActivityReadsNewestOfInstallation(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	quiet := uuid.New()
	if _, err := db.Pool.Exec(
		t.Context(),
		`insert into audit_log (audit_id, occurred_at, workspace_id, actor_kind, operation, subject_kinds, subject_ids, outcome)
		select gen_random_uuid(), now() - i * interval '1 s', case i % 3 when 0 then null when 1 then $1::uuid else $2 end,
			'operator', '/x', '{}', '{}', 'done' from generate_series(1, 9000) i`,
		quiet,
		uuid.New(),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool.Exec(t.Context(), "vacuum analyze audit_log"); err != nil {
		t.Fatal(err)
	}
	for _, installation := range []bool{true, false} {
		plan := explain(t, db, true, func(q *dbsqlc.Queries) error {
			rows, err := q.ActivityAudit(t.Context(), dbsqlc.ActivityAuditParams{
				WorkspaceID:  quiet,
				Installation: installation,
				BeforeAt:     domain.Never,
				BeforeID:     uuid.Max,
				Since:        domain.LongAgo,
				Until:        domain.Never,
				MaxRows:      51,
			})
			if err == nil && len(rows) != 51 {
				t.Errorf("%d rows", len(rows))
			}
			return err
		})
		if !strings.Contains(plan, "audit_log_of_workspace") ||
			strings.Contains(plan, "audit_log_of_installation") != installation || strings.Contains(plan, "Seq Scan") {
			t.Errorf("with those of the installation %v:\n%s", installation, plan)
		}
	}
}
