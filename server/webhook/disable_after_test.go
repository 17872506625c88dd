package webhook_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// The endpoint may have recovered while the server was off or sent nothing, so that time does not
// count.
func TestDisableAfter_IgnoresTimeWithoutAttempts(t *testing.T) {
	t.Parallel()
	for name, failed := range map[string]string{"": "now() - interval '5 days'", "of a version that did not note the last failure": "null"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, w := failing(t)
			if _, err := b.db.Pool.Exec(
				t.Context(),
				"update webhooks set failing_since = now() - interval '6 days', failed_at = "+failed,
			); err != nil {
				t.Fatal(err)
			}
			id := b.emit(b.p, "device.connected", "")
			b.until("two more attempts have failed", func() bool { return len(b.attempts(w, id)) == 2 })
			if !b.is(w, 2, webhook.DeliveryPending)() {
				t.Error("the webhook is disabled")
			}
			if e, err := b.access.Webhooks.GetEndpoint(
				t.Context(),
				w.ID,
			); err != nil || e.Disabled ||
				e.Failures != 4 ||
				e.FailingFor > time.Hour {
				t.Errorf("disabled %t, %d failures within %s, %v", e.Disabled, e.Failures, e.FailingFor, err)
			}
		})
	}
}
