package webhook_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

func (b *bed) count(query string, args ...any) (n int) {
	b.Helper()
	b.must(b.db.Pool.QueryRow(b.Context(), "select count(*) from "+query, args...).Scan(&n))
	return n
}

func (b *bed) look() {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), "update workspaces set retention_due_at = now()")
	b.must(err)
	b.until("all workspaces are processed", func() bool {
		return b.count("workspaces where retention_due_at <= now()") == 0 &&
			b.count("leases where key like 'retention:%' and held_until > now()") == 0
	})
}

func TestRetention_RemovesOnlyExpiredData(t *testing.T) {
	t.Parallel()
	o := quick()
	keep := retention.Options{Events: 30 * 24 * time.Hour}
	b := start(t, o, keep)
	b.engine(o, keep) // a second instance
	b.look()          // the next run follows on request
	w := b.hook(newSink(t, nil).URL)
	old, within := time.Now().Add(-31*24*time.Hour), time.Now().Add(-29*24*time.Hour)
	gone, kept := b.emitAt(old, "device.connected"), b.emitAt(within, "device.connected")
	_, err := b.db.Pool.Exec(
		t.Context(),
		`insert into delivery_attempts (webhook_id, event_id, attempt, attempted_at, latency_us) select webhook_id, event_id, 1, now(), 1 from deliveries`,
	)
	b.must(err)
	pending, recent, held := b.emitAt(old, "device.added"), b.emitAt(old, "device.added"), b.emitAt(old, "device.added")
	for id, state := range map[uuid.UUID]string{
		pending: "state = 'pending', next_attempt_at = now() + interval '1 h', finished_at = null",
		recent:  "state = 'delivered', finished_at = now()", held: "state = 'held'",
	} {
		_, err := b.db.Pool.Exec(t.Context(), "update deliveries set "+state+" where event_id = $1", id)
		b.must(err)
	}
	_, err = b.db.Pool.Exec(
		t.Context(),
		`insert into events (event_id, workspace_id, event_type, payload, created_at, fanned_out_at)
		select overlay(gen_random_uuid()::text placing '00000000' from 1)::uuid, $1, 'device.added', '{}', $2, now() from generate_series(1, 1200)`,
		b.p.WorkspaceID,
		old,
	) // more than two batches without deliveries, from a time without a partition
	b.must(err)
	b.look()
	for id, want := range map[uuid.UUID]int{gone: 0, kept: 1, pending: 1, recent: 1, held: 0} {
		if events, deliveries := b.count(
			"events where event_id = $1",
			id,
		), b.count(
			"deliveries where event_id = $1",
			id,
		); events != want ||
			deliveries != want {
			t.Errorf("%s: %d events and %d deliveries, want %d", id, events, deliveries, want)
		}
	}
	if n := b.count("delivery_attempts where event_id = $1", gone); n != 0 {
		t.Errorf("%d attempts left", n)
	}
	if n := b.count("events"); n != 3 {
		t.Errorf("%d events left", n)
	}
	if all := b.deliveries(w); len(all) != 3 {
		t.Errorf("%d deliveries left", len(all))
	}
}

func TestRetention_ClientSessions(t *testing.T) {
	t.Parallel()
	o := quick()
	keep := retention.Options{Events: 30 * 24 * time.Hour}
	b := start(t, o, keep)
	b.look() // the next run follows on request
	for key, ended := range map[string]string{
		"long over": "now() - interval '31 d', null", "over": "now() - interval '29 d', null", "long revoked": "now() + interval '1 d', now() - interval '31 d'",
		"revoked": "now() + interval '1 d', now() - interval '29 d'", "good": "now() + interval '1 d', null",
	} {
		_, err := b.db.Pool.Exec(
			t.Context(),
			`insert into client_sessions (client_session_id, workspace_id, token_hash, token_sealed, user_identifier_key, expires_at, revoked_at)
			select gen_random_uuid(), $1, sha256($2::text::bytea), '', $2, `+ended,
			b.p.WorkspaceID,
			key,
		)
		b.must(err)
	}
	_, err := b.db.Pool.Exec(
		t.Context(),
		`insert into client_sessions (client_session_id, workspace_id, token_hash, token_sealed, expires_at)
		select gen_random_uuid(), $1, sha256(n::text::bytea), '', now() - interval '31 d' from generate_series(1, 1200) n`,
		b.p.WorkspaceID,
	) // more than one batch
	b.must(err)
	b.look()
	for _, key := range []string{"over", "revoked", "good"} {
		if b.count("client_sessions where user_identifier_key = $1", key) != 1 {
			t.Errorf("the %s session is gone", key)
		}
	}
	if n := b.count("client_sessions"); n != 3 {
		t.Errorf("%d sessions left", n)
	}
}

func TestRetention_ManyDeliveriesInBatches(t *testing.T) {
	t.Parallel()
	o := quick()
	keep := retention.Options{Events: time.Hour}
	b := start(t, o, keep)
	b.look() // the next run follows on request
	old := b.emitAt(time.Now().Add(-48*time.Hour), "device.connected")
	_, err := b.db.Pool.Exec(t.Context(), `
		with w as (insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed)
			select gen_random_uuid(), $1, 'https://example.com', '{}', '' from generate_series(1, 2500) returning webhook_id)
		insert into deliveries (webhook_id, event_id, state, finished_at) select webhook_id, $2, 'delivered', now() - interval '47 h' from w`, b.p.WorkspaceID, old)
	b.must(err)
	b.look()
	if events, deliveries := b.count("events"), b.count("deliveries"); events+deliveries != 0 {
		t.Errorf("%d events and %d deliveries left", events, deliveries)
	}
}

// The retention skips locked deliveries. Waiting for them could deadlock with a replay.
func TestRetention_SkipsLockedDeliveries(t *testing.T) {
	t.Parallel()
	o := quick()
	keep := retention.Options{Events: time.Hour}
	b := start(t, o, keep)
	b.look() // the next run follows on request
	w := b.hook(newSink(t, nil).URL)
	old := time.Now().Add(-48 * time.Hour)
	busy, free := b.emitAt(old, "device.connected"), b.emitAt(old, "device.connected")
	b.must(b.db.InTx(t.Context(), func(tx store.Tx) error {
		own, err := tx.Start(t.Context())
		if err != nil {
			return err
		}
		if _, err := own.Exec(t.Context(), "select from deliveries where event_id = $1 for update", busy); err != nil {
			return err
		}
		b.look()
		return nil
	}))
	if all := b.deliveries(w); len(all) != 1 || all[0].EventID != busy ||
		b.count("events where event_id = $1", free) != 0 {
		t.Errorf("%+v", all)
	}
	b.look()
	if n := b.count("events"); n != 0 {
		t.Errorf("%d events are never removed", n)
	}
}

func TestRetention_DisabledStillDropsOldSecrets(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	w := b.hook(newSink(t, nil).URL)
	b.emitAt(time.Now().Add(-10*365*24*time.Hour), "device.connected")
	b.look()
	// Soon enough for the sweep, but not for the hourly run.
	b.rotate(w, 100*time.Millisecond)
	b.until("the old secret is deleted", func() bool {
		return b.count("webhooks where old_secret_sealed is null and old_secret_until is null") == 1
	})
	if events, deliveries := b.count("events"), len(b.deliveries(w)); events != 1 || deliveries != 1 {
		t.Errorf("%d events and %d deliveries", events, deliveries)
	}
	if e, err := b.access.Webhooks.GetEndpoint(t.Context(), w.ID); err != nil || e.OldSecret != "" || e.Disabled {
		t.Errorf("%v", err)
	}
}
