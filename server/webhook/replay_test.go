package webhook_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// emitAt writes an event with the given creation time.
func (b *bed) emitAt(at time.Time, eventType string) uuid.UUID {
	b.Helper()
	id := b.emit(b.p, eventType, "")
	past := id
	for i, shift := 0, 40; i < 6; i, shift = i+1, shift-8 {
		past[i] = byte(at.UnixMilli() >> shift)
	}
	b.until("the event is fanned out", func() bool {
		var waits bool
		b.must(
			b.db.Pool.QueryRow(b.Context(), "select fanned_out_at is null from events where event_id = $1", id).
				Scan(&waits),
		)
		return !waits
	})
	_, err := b.db.Pool.Exec(b.Context(), `
		with e as (insert into events (event_id, workspace_id, event_type, payload, occurred_at, created_at, fanned_out_at)
			select $2, workspace_id, event_type, payload, $3, $3, $3 from events where event_id = $1 returning event_id),
		d as (insert into deliveries (webhook_id, event_id, state, finished_at, created_at)
			select webhook_id, (select event_id from e), 'failed', $3, $3 from deliveries where event_id = $1),
		gone as (delete from deliveries where event_id = $1)
		delete from events where event_id = $1`, id, past, at)
	b.must(err)
	return past
}

func TestReplay_Filters(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, nil)
	w := b.hook(s.URL)
	now := time.Now()
	old := b.emitAt(now.Add(-72*time.Hour), "device.connected")
	recent := b.emitAt(now.Add(-time.Hour), "device.connected")
	other := b.emitAt(now.Add(-time.Hour), "device.added")
	for name, c := range map[string]struct {
		filter webhook.DeliveryFilter
		want   []uuid.UUID
	}{
		"all":        {webhook.DeliveryFilter{}, []uuid.UUID{old, recent, other}},
		"an event":   {webhook.DeliveryFilter{EventID: &other}, []uuid.UUID{other}},
		"a type":     {webhook.DeliveryFilter{EventTypes: []string{"device.connected"}}, []uuid.UUID{old, recent}},
		"since":      {webhook.DeliveryFilter{Since: now.Add(-2 * time.Hour)}, []uuid.UUID{recent, other}},
		"until":      {webhook.DeliveryFilter{Until: now.Add(-2 * time.Hour)}, []uuid.UUID{old}},
		"in between": {webhook.DeliveryFilter{Since: now.Add(-2 * time.Hour), Until: now.Add(-90 * time.Minute)}, nil},
		"a state":    {webhook.DeliveryFilter{States: []webhook.DeliveryState{webhook.DeliveryHeld}}, nil},
	} {
		listed, err := b.access.Webhooks.ListDeliveries(t.Context(), b.p, w.ID, c.filter, 100)
		b.must(err)
		counts, err := b.access.Webhooks.CountDeliveries(t.Context(), b.p, w.ID, c.filter, uuid.Nil)
		b.must(err)
		if want := len(c.want); len(listed) != want || counts[webhook.DeliveryFailed] != want {
			t.Errorf("%s: %d listed and %d counted, want %d", name, len(listed), counts[webhook.DeliveryFailed],
				want)
		}
		for _, d := range listed {
			if !slices.Contains(c.want, d.EventID) || d.EventType == "" || d.OccurredAt.IsZero() {
				t.Errorf("%s: lists %+v", name, d)
			}
		}
	}
	if n := b.replay(
		w,
		webhook.DeliveryFilter{EventTypes: []string{"device.connected"}, Since: now.Add(-2 * time.Hour)},
		uuid.Nil,
	); n != 1 {
		t.Errorf("replayed %d", n)
	}
	b.until("it is delivered", func() bool { return slices.Contains(ids(s.messages()), recent) })
	if got := ids(s.messages()); slices.Contains(got, old) || slices.Contains(got, other) {
		t.Error("more was delivered than requested")
	}
	if all, err := b.access.Webhooks.ListDeliveries(
		t.Context(),
		b.workspace("other"),
		w.ID,
		webhook.DeliveryFilter{},
		100,
	); err != nil ||
		len(all) > 0 {
		t.Errorf("another workspace sees %d, %v", len(all), err)
	}
}

// delivered writes deliveries that have finished in a state.
func (b *bed) delivered(w webhook.Webhook, n int, state webhook.DeliveryState) {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), `
		with e as (insert into events (event_id, workspace_id, event_type, payload, fanned_out_at)
			select ('01900000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, $1, 'device.connected', '{}', now() from generate_series(1, $3) i returning event_id)
		insert into deliveries (webhook_id, event_id, state, finished_at) select $2, event_id, $4, now() from e`, b.p.WorkspaceID, w.ID, n, string(state))
	b.must(err)
}

func TestReplay_ContinuesAfterInterruption(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, nil)
	w := b.hook(s.URL, "device.connected")
	const n = 1100 // more than two batches
	b.delivered(w, n, webhook.DeliveryDelivered)
	again := webhook.DeliveryFilter{States: []webhook.DeliveryState{webhook.DeliveryDelivered}}
	first, err := b.access.Webhooks.ReplayDeliveries(t.Context(), b.p, w.ID, again, uuid.Nil)
	if err != nil || first.Deliveries != 500 || !first.More {
		t.Fatalf("first batch %+v, %v", first, err)
	}
	// Without a position to continue from, a replay would repeat them.
	b.until("it is delivered", s.got(500))
	rest, err := b.access.Webhooks.CountDeliveries(t.Context(), b.p, w.ID, again, first.Last)
	if err != nil || rest[webhook.DeliveryDelivered] != n-500 {
		t.Errorf("remaining %v, %v", maps.Clone(rest), err)
	}
	if got := b.replay(w, again, first.Last); got != n-500 {
		t.Errorf("then replayed %d", got)
	}
	b.until("all are delivered", s.got(n))
	seen := map[string]int{}
	for _, m := range s.messages() {
		seen[m.id()]++
	}
	if len(seen) != n {
		t.Errorf("%d events arrived", len(seen))
	}
}
