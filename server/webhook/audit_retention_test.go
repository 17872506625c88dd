package webhook_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
)

func TestAuditRetention(t *testing.T) {
	t.Parallel()
	o := quick()
	keep := retention.Options{Audit: 400 * 24 * time.Hour}
	b := start(t, o, keep)
	b.look() // the next run follows on request
	const entries = `insert into audit_log (audit_id, occurred_at, workspace_id, actor_kind, operation, subject_kinds, subject_ids, outcome)
		select gen_random_uuid(), now() - $2::interval, $1, 'api_key', '/webhooks/create', '{}', '{}', 'done' from generate_series(1, $3)`
	for _, workspace := range []any{b.p.WorkspaceID, nil} { // nil: the whole installation
		for _, c := range []struct {
			age time.Duration
			n   int
		}{{401 * 24 * time.Hour, 1200}, {399 * 24 * time.Hour, 2}} { // more than two batches
			_, err := b.db.Pool.Exec(t.Context(), entries, workspace, c.age, c.n)
			b.must(err)
		}
	}
	b.look()
	if old, all := b.count("audit_log where occurred_at < now() - interval '400 d'"), b.count("audit_log"); old != 0 ||
		all != 4 {
		t.Errorf("%d old entries left, %d in total", old, all)
	}
}
