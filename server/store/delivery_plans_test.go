package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// What operators ask for and what is removed in the background must not read all deliveries or events, of which
// there are many: nearly all delivered, few that failed or wait.
func TestOperationOfDeliveriesReadsNoWholeTable(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	ctx := t.Context()
	partition(t, db, 360*store.Day, 100*store.Day)
	if _, err := db.Pool.Exec(ctx, `
		insert into workspaces (workspace_id, name, is_sandbox, retention_due_at) select gen_random_uuid(), 'w' || i, true, now() + interval '1 h' from generate_series(1, 3000) i;
		insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed, due_at)
			select gen_random_uuid(), workspace_id, '', '{*}', '', case when random() < 0.05 then now() end from workspaces;
		insert into events (event_id, workspace_id, event_type, payload, created_at, fanned_out_at)
			select `+madeAt("now() - i * interval '1 h'")+`, w.workspace_id, 'x', '{}', now() - i * interval '1 h', now() from workspaces w, generate_series(1, case when w.name in ('w1', 'w2', 'w3') then 8000 else 3 end) i;
		insert into deliveries (webhook_id, event_id, state, next_attempt_at, finished_at)
			select w.webhook_id, e.event_id, s.state, case when s.state = 'pending' then now() end, case when s.state <> 'pending' then e.created_at end
			from events e join webhooks w on w.workspace_id = e.workspace_id,
			lateral (select case when random() < 0.99 or e.event_id is null then 'delivered' when random() < 0.5 then 'failed' else 'pending' end as state) s;
		analyze`); err != nil {
		t.Fatal(err)
	}
	var workspace, webhook uuid.UUID
	if err := db.Pool.QueryRow(ctx, "select workspace_id, webhook_id from webhooks join workspaces using (workspace_id) where name = 'w1'").
		Scan(&workspace, &webhook); err != nil {
		t.Fatal(err)
	}
	ids := []uuid.UUID{uuid.New(), uuid.New()}
	unsent, all := []string{"failed", "held"}, []string{"pending", "delivered", "failed", "held"}
	list := func(states []string) func(q *dbsqlc.Queries) error {
		return func(q *dbsqlc.Queries) error {
			_, err := q.ListDeliveries(
				ctx,
				dbsqlc.ListDeliveriesParams{
					WorkspaceID: workspace,
					WebhookID:   webhook,
					States:      states,
					Before:      uuid.Max,
					MaxRows:     10,
				},
			)
			return err
		}
	}
	walk := func(states []string) func(q *dbsqlc.Queries) error {
		return func(q *dbsqlc.Queries) error {
			_, err := q.WalkDeliveries(
				ctx,
				dbsqlc.WalkDeliveriesParams{
					WorkspaceID: workspace,
					WebhookID:   webhook,
					States:      states,
					Before:      uuid.Max,
					MaxRows:     10,
				},
			)
			return err
		}
	}
	for name, c := range map[string]struct {
		replan bool
		index  string // those that have to be used
		query  func(q *dbsqlc.Queries) error
	}{
		"list what was not sent": {true, "deliveries_unsent", list(unsent)},
		"list all":               {true, "deliveries_pkey", list(all)},
		"walk what was not sent": {true, "deliveries_unsent", walk(unsent)},
		"walk what was sent":     {true, "deliveries_pkey", walk([]string{"delivered"})},
		"replay": {false, "deliveries_pkey", func(q *dbsqlc.Queries) error {
			_, err := q.ReplayDeliveries(ctx, dbsqlc.ReplayDeliveriesParams{WebhookID: webhook, EventIds: ids, States: unsent})
			return err
		}},
		"old events": {false, "events_workspace_id_created_at_event_id_idx", func(q *dbsqlc.Queries) error {
			_, err := q.OldEvents(ctx, dbsqlc.OldEventsParams{WorkspaceID: workspace, EndedBefore: time.Now().Add(-48 * time.Hour), MaxRows: 500})
			return err
		}},
		"drop deliveries": {false, "deliveries_event_id_idx", func(q *dbsqlc.Queries) error {
			_, err := q.DropDeliveries(ctx, dbsqlc.DropDeliveriesParams{EventIds: ids, EndedBefore: time.Now().Add(-time.Hour), MaxRows: 1000})
			return err
		}},
		"drop events": {false, "events_pkey", func(q *dbsqlc.Queries) error {
			_, err := q.DropEvents(ctx, ids)
			return err
		}},
		"workspaces to look through": {false, "workspaces_retention_due_at_idx", func(q *dbsqlc.Queries) error {
			_, err := q.DueRetentions(ctx, 1000)
			return err
		}},
		"take from the outbox": {false, "events_outbox_of_accounts events_pkey", func(q *dbsqlc.Queries) error {
			_, err := q.TakeEvents(ctx, dbsqlc.TakeEventsParams{
				WorkspaceID:   workspace,
				After:         uuid.New(),
				MaxRows:       500,
				MaxDeliveries: 5000,
			})
			return err
		}},
		"what is due": {false, "deliveries_pending", func(q *dbsqlc.Queries) error {
			_, err := q.DueDeliveries(ctx, dbsqlc.DueDeliveriesParams{
				WebhookID: webhook,
				Busy:      ids,
				MaxRows:   128,
				MaxBytes:  1 << 17,
			})
			return err
		}},
		"hold": {false, "deliveries_pending deliveries_pkey", func(q *dbsqlc.Queries) error {
			_, err := q.HoldDeliveries(ctx, dbsqlc.HoldDeliveriesParams{WebhookID: webhook, MaxRows: 5000})
			return err
		}},
		"delete a webhook": {false, "deliveries_pkey", func(q *dbsqlc.Queries) error {
			_, err := q.DeleteWebhook(ctx, dbsqlc.DeleteWebhookParams{WorkspaceID: workspace, WebhookID: webhook, MaxDeliveries: 2000})
			return err
		}},
		"some of a webhook": {false, "deliveries_pkey", func(q *dbsqlc.Queries) error {
			_, err := q.ListDeliveryIDs(ctx, dbsqlc.ListDeliveryIDsParams{WorkspaceID: workspace, WebhookID: webhook, MaxRows: 2000})
			return err
		}},
		"drop these": {false, "deliveries_pkey", func(q *dbsqlc.Queries) error {
			return q.DropDeliveriesOf(ctx, dbsqlc.DropDeliveriesOfParams{WebhookID: webhook, EventIds: ids})
		}},
		"count the outbox":   {false, "events_outbox", func(q *dbsqlc.Queries) error { _, err := q.CountOutbox(ctx, 100_000); return err }},
		"the oldest event":   {false, "events_outbox_of_accounts", func(q *dbsqlc.Queries) error { _, err := q.OldestEvent(ctx); return err }},
		"count what waits":   {false, "deliveries_pending", func(q *dbsqlc.Queries) error { _, err := q.CountPending(ctx, 100_000); return err }},
		"the oldest due":     {false, "deliveries_pending", func(q *dbsqlc.Queries) error { _, err := q.OldestDue(ctx); return err }},
		"count the disabled": {false, "webhooks_disabled_at_idx", func(q *dbsqlc.Queries) error { _, err := q.CountDisabledWebhooks(ctx); return err }},
	} {
		plan := explain(t, db, c.replan, c.query)
		for _, table := range []string{"deliveries", "events", "workspaces", "webhooks"} {
			if strings.Contains(plan, "Seq Scan on "+table) {
				t.Errorf("%s: the plan reads a whole table:\n%s", name, plan)
			}
		}
		for index := range strings.FieldsSeq(c.index) {
			if !strings.Contains(plan, index) {
				t.Errorf("%s: the plan does without %s:\n%s", name, index, plan)
			}
		}
		if strings.Contains(plan, "Sort  (") && name != "drop deliveries" && name != "take from the outbox" &&
			name != "what is due" { // these sort few
			t.Errorf("%s: the plan sorts:\n%s", name, plan)
		}
	}
}
