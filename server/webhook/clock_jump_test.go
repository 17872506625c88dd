package webhook_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// setClock sets how far the clock of the database is ahead, for the connections of a bed on jumpingClock.
func (b *bed) setClock(ahead time.Duration) {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), "update clocks.ahead set by = $1", ahead)
	b.must(err)
}

// jumpingClock returns a bed on a database whose clock can be set.
func jumpingClock(t *testing.T) *bed {
	t.Helper()
	dsn := storetest.New(t)
	b := newBed(t, dsn, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.RuntimeParams["search_path"] = "clocks, pg_catalog, public"
	})
	_, err := b.db.Pool.Exec(t.Context(), `create schema clocks;
		create table clocks.ahead (by interval);
		insert into clocks.ahead values ('0');
		create function clocks.now() returns timestamptz language sql as $$ select pg_catalog.now() + by from clocks.ahead $$;
		create function clocks.clock_timestamp() returns timestamptz language sql as $$ select pg_catalog.clock_timestamp() + by from clocks.ahead $$`)
	b.must(err)
	b.db.Pool.Reset() // plans call the functions of pg_catalog
	return b
}

// The clock of the database jumps ahead, stays there for weeks, and jumps back. Whatever the retention deletes by time
// stays.
func TestRetention_ClockJumpDeletesNothing(t *testing.T) {
	t.Parallel()
	b := jumpingClock(t)
	keep := retention.Options{Events: 30 * 24 * time.Hour, Audit: 400 * 24 * time.Hour}
	b.stop = b.engine(quick(), keep)
	b.look()
	w := b.hook(newSink(t, nil).URL)
	b.emitAt(time.Now().Add(-24*time.Hour), "device.connected")
	b.rotate(w, 24*time.Hour)
	for _, row := range []string{
		`insert into audit_log (audit_id, workspace_id, actor_kind, operation, subject_kinds, subject_ids, outcome)
			values (gen_random_uuid(), $1, 'api_key', '/webhooks/create', '{}', '{}', 'done')`,
		`insert into client_sessions (client_session_id, workspace_id, token_hash, token_sealed, expires_at)
			values (gen_random_uuid(), $1, '', '', now() + interval '1 year')`,
		`insert into idempotency_keys (idempotency_key_id, workspace_id, credential_id, operation, key_mac, request_mac)
			values (gen_random_uuid(), $1, gen_random_uuid(), '', '', '')`,
	} {
		_, err := b.db.Pool.Exec(t.Context(), row, b.p.WorkspaceID)
		b.must(err)
	}
	kept := map[string]int{}
	for _, rows := range []string{
		"audit_log", "client_sessions", "events", "deliveries", "idempotency_keys",
		"webhooks where old_secret_sealed is not null", "pg_inherits where inhparent = 'events'::regclass",
	} {
		if kept[rows] = b.count(rows); kept[rows] == 0 {
			t.Fatalf("no %s", rows)
		}
	}
	const day = 24 * time.Hour
	for _, c := range []struct{ ahead, uptime time.Duration }{{401 * day, 0}, {401 * day, 40 * day}, {0, 40 * day}} {
		ahead := c.ahead
		b.setClock(ahead)
		b.uptime.Store(int64(c.uptime))
		b.look()
		partitions, err := b.access.Retention.KeepPartitions(t.Context(), keep.Events)
		if err != nil || len(partitions.Dropped) > 0 {
			t.Errorf("the clock is %s ahead: the partitions %v are dropped, %v", ahead, partitions.Dropped, err)
		}
		for rows, n := range kept {
			if got := b.count(rows); got < n {
				t.Errorf("the clock is %s ahead: %d %s, before %d", ahead, got, rows, n)
			}
		}
		if b.access.Retention.Problem() == "" {
			t.Errorf("the clock is %s ahead: the retention reports no problem", ahead)
		}
	}
}
