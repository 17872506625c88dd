package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// A failing endpoint is paused most of the time. Its deliveries count as late during a pause.
// Otherwise, no alert would fire.
func TestBacklog_PausedEndpointIsLate(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, ProbePause: time.Hour})
	s := newSink(t,
		func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusInternalServerError) })
	b.hook(s.URL, "device.connected")
	for n := range 5 {
		b.emit(b.p, "device.connected", "")
		b.until("an attempt is made", s.got(n+1))
	}
	b.until("the endpoint is paused", func() bool {
		var alone bool
		if err := b.db.Pool.QueryRow(t.Context(), "select coalesce(bool_and(due_at > now() + interval '1 minute' and due_at = paused_until), false) from webhooks").
			Scan(&alone); err != nil {
			t.Fatal(err)
		}
		return alone
	})
	if _, err := b.db.Pool.Exec(
		t.Context(),
		"update deliveries set next_attempt_at = now() - interval '2 hours' where state = 'pending'",
	); err != nil {
		t.Fatal(err)
	}
	backlog, err := b.access.Health.Backlog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if late := backlog.Failing.OldestDue; late < 2*time.Hour || late > 3*time.Hour {
		t.Errorf("late by %v, want two hours", late)
	}
	if backlog.Healthy.OldestDue > 0 || backlog.Slow > 0 {
		t.Errorf("other endpoints are reported as late: %+v", backlog)
	}
}
