package webhook_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// A webhook with a long history is deleted in parts. A canceled request keeps its progress, and
// each part locks the webhook only briefly.
func TestDeleteWebhook_LongHistory(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	b.stop(patience)
	w := b.hook("http://127.0.0.1:1", "device.connected")
	const many = 11_000
	_, err := b.db.Pool.Exec(t.Context(), `with e as (
		insert into events (event_id, workspace_id, event_type, payload, fanned_out_at) select gen_random_uuid(), $1, 'device.connected', '{}', now() from generate_series(1, $3::integer) returning event_id
	), d as (
		insert into deliveries (webhook_id, event_id, state, attempts, finished_at) select $2, event_id, 'delivered', 2, now() from e returning webhook_id, event_id)
		insert into delivery_attempts (webhook_id, event_id, attempt, attempted_at, latency_us, status) select webhook_id, event_id, n, now(), 1, 204 from d cross join generate_series(1, 2) n`,
		b.p.WorkspaceID, w.ID, many)
	b.must(err)
	left := func() (deliveries, attempts int) {
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select (select count(*) from deliveries), (select count(*) from delivery_attempts)").
				Scan(&deliveries, &attempts),
		)
		return deliveries, attempts
	}
	acting := audit.Acting(t.Context(),
		audit.Act{Principal: b.p, RequestID: uuid.New(), Operation: "/webhooks/delete"})
	told := func() (entries []audit.Entry) {
		for e, err := range b.access.Audit.Audit(t.Context(), audit.Filter{Operation: "/webhooks/delete"}) {
			b.must(err)
			entries = append(entries, e)
		}
		return entries
	}
	if err := b.access.Webhooks.DeleteWebhook(t.Context(), b.workspace("others"), w.ID.String()); err == nil {
		t.Error("another workspace deleted the webhook")
	}
	if deliveries, attempts := left(); deliveries != many || attempts != 2*many {
		t.Fatalf("another workspace left %d deliveries and %d attempts", deliveries, attempts)
	}
	b.must(b.db.InTx(t.Context(), func(tx store.Tx) error {
		own, err := tx.Start(t.Context())
		if err == nil { // another transaction locks the last one
			_, err = own.Exec(
				t.Context(),
				"select from deliveries where event_id = (select event_id from deliveries order by event_id desc limit 1) for update",
			)
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(acting)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- b.access.Webhooks.DeleteWebhook(ctx, b.p, w.ID.String()) }()
		b.until("most deliveries are gone", func() bool { deliveries, _ := left(); return deliveries < many/2 })
		if _, err := b.db.Pool.Exec(t.Context(), "select from webhooks for no key update nowait"); err != nil {
			t.Errorf("the webhook is locked: %v", err)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("the webhook was deleted with a locked delivery")
		}
		return nil
	}))
	if _, err := b.access.Webhooks.GetWebhook(t.Context(), b.p, w.ID.String()); err != nil {
		t.Error(err)
	}
	if n := len(told()); n != 0 {
		t.Errorf("%d audit entries for the deletion", n)
	}
	b.must(b.access.Webhooks.DeleteWebhook(acting, b.p, w.ID.String()))
	if all := told(); len(all) != 1 || !slices.Contains(all[0].Subjects, audit.Subject{Kind: "webhook_id", ID: w.ID}) {
		t.Errorf("audit log after the deletion: %+v", all)
	}
	if deliveries, attempts := left(); deliveries+attempts != 0 {
		t.Errorf("%d deliveries and %d attempts left", deliveries, attempts)
	}
	if err := b.access.Webhooks.DeleteWebhook(t.Context(), b.p, w.ID.String()); err == nil {
		t.Error("the webhook was deleted twice")
	}
	if all, err := b.access.Webhooks.ListWebhooks(
		t.Context(),
		domain.Principal{WorkspaceID: b.p.WorkspaceID},
	); err != nil ||
		len(all) != 0 {
		t.Errorf("%d listed, %v", len(all), err)
	}
}
