package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func (b *bed) suspend(p domain.Principal, suspended bool) {
	b.Helper()
	b.must(b.access.Accounts.UpdateWorkspace(b.Context(), p, account.WorkspaceChange{Suspended: &suspended}))
}

// rests reports whether no look at a webhook is scheduled.
func (b *bed) rests(w webhook.Webhook) func() bool {
	return func() bool {
		b.Helper()
		var rests bool
		b.must(
			b.db.Pool.QueryRow(b.Context(), "select due_at is null from webhooks where webhook_id = $1", w.ID).
				Scan(&rests),
		)
		return rests
	}
}

// Events of a suspended workspace are delivered after the suspension and do not count as late.
func TestSuspendedWorkspace_DeliversAfterwards(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s, at := newSink(t, nil), newSink(t, nil)
	w := b.hook(s.URL, "device.connected")
	mine := b.p
	b.suspend(mine, true)
	b.emit(mine, "device.connected", "")
	b.p = b.workspace("others")
	b.hook(at.URL, "device.connected")
	b.emit(b.p, "device.connected", "")
	b.until("the event of another workspace arrives", at.got(1))
	b.p = mine
	b.until("the delivery waits", func() bool { return b.is(w, 1, webhook.DeliveryPending)() && b.rests(w)() })
	_, err := b.db.Pool.Exec(t.Context(), "update deliveries set next_attempt_at = now() - interval '10 min'")
	b.must(err)
	late, err := b.access.Health.Lateness(t.Context())
	b.must(err)
	if late.Deliveries != 0 || !s.got(0)() {
		t.Errorf("late by %s; %d messages arrived", late.Deliveries, len(s.messages()))
	}
	b.suspend(mine, false)
	b.until("the message arrives", b.is(w, 1, webhook.DeliveryDelivered))
	if n := len(s.messages()); n != 1 {
		t.Errorf("%d messages arrived", n)
	}
}

// Once its workspace is suspended, a busy endpoint only finishes the requests in flight.
func TestSuspendedWorkspace_StopsBusyEndpoint(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour, PollInterval: time.Millisecond})
	passed, open := gate(t)
	defer open()
	s := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-passed })
	w := b.hook(s.URL, "device.connected")
	const all = 20
	b.emitAll(all, "device.connected")
	b.until("two are in flight", s.got(2))
	b.suspend(b.p, true)
	open()
	b.until("no look is scheduled", b.rests(w))
	if n := len(s.messages()); n != 2 {
		t.Errorf("%d messages sent", n)
	}
	b.suspend(b.p, false)
	b.until("all arrive", b.is(w, all, webhook.DeliveryDelivered))
}

// Pending deliveries of a suspended workspace expire with the retention, because the suspension may
// never end.
func TestSuspendedWorkspace_RetentionApplies(t *testing.T) {
	t.Parallel()
	o := quick()
	keep := retention.Options{Events: 30 * 24 * time.Hour}
	b := start(t, o, keep)
	b.look() // the next run follows on request
	w := b.hook(newSink(t, nil).URL)
	old, within := b.emitAt(
		time.Now().Add(-31*24*time.Hour),
		"device.connected",
	), b.emitAt(
		time.Now().Add(-29*24*time.Hour),
		"device.connected",
	)
	b.suspend(b.p, true)
	b.until("no work is in progress",
		func() bool { return b.count("leases where key like 'endpoint:%' and held_until > now()") == 0 })
	_, err := b.db.Pool.Exec(
		t.Context(),
		"update deliveries set state = 'pending', next_attempt_at = e.created_at, finished_at = null from events e where e.event_id = deliveries.event_id",
	)
	b.must(err)
	b.look()
	if gone, kept := b.count(
		"events where event_id = $1",
		old,
	), b.count(
		"deliveries where event_id = $1 and state = 'pending'",
		within,
	); gone != 0 ||
		kept != 1 {
		t.Errorf("%d old and %d new deliveries left", gone, kept)
	}
	b.suspend(b.p, false)
	b.until("the remaining delivery arrives", b.is(w, 1, webhook.DeliveryDelivered))
}

// An event of a suspended workspace causes no look at its webhooks, not even for a later attempt.
func TestSuspendedWorkspace_CausesNoLooks(t *testing.T) {
	t.Parallel()
	b, w := failing(t)
	b.suspend(b.p, true)
	b.until("no look is scheduled", b.rests(w))
	for range 3 {
		b.emit(b.p, "device.connected", "")
	}
	b.until("the events are fanned out", func() bool { return len(b.deliveries(w)) == 4 })
	if !b.rests(w)() {
		t.Error("a look is scheduled")
	}
}
