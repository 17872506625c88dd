package webhook_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// An event that cannot be decrypted fails alone, whatever its size. The endpoint gets the other
// events and keeps its health.
func TestUndecryptableEvent_DelaysNoOther(t *testing.T) {
	t.Parallel()
	o := quick()
	o.DisableAfter = time.Nanosecond
	b := start(t, o)
	b.stop(patience)
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	w := b.hook(s.URL)
	small, large := b.emit(b.p, "access_code.set_on_device", "1234"), b.emit(b.p, "access_code.set_on_device", "1234")
	_, err := b.db.Pool.Exec(
		t.Context(),
		"update events set pin_sealed = set_byte(pin_sealed, 20, get_byte(pin_sealed, 20) # 1) where event_id = any($1)",
		[]uuid.UUID{small, large},
	)
	b.must(err)
	_, err = b.db.Pool.Exec(t.Context(),
		"update events set payload = jsonb_build_object('device_custom_metadata', $2::text) where event_id = $1",
		large, strings.Repeat("x", 200_000))
	b.must(err)
	good := b.emit(b.p, "device.connected", "")
	b.engine(o)
	stands := func(state webhook.DeliveryState, events ...uuid.UUID) func() bool {
		return func() bool {
			n := 0
			for _, d := range b.deliveries(w) {
				if d.State == state && slices.Contains(events, d.EventID) {
					n++
				}
			}
			return n == len(events)
		}
	}
	b.until("the other event is delivered", stands(webhook.DeliveryDelivered, good))
	b.until("the damaged events have failed", stands(webhook.DeliveryFailed, small, large))
	for _, event := range []uuid.UUID{small, large} {
		all := b.attempts(w, event)
		if len(all) != 8 || !strings.Contains(all[0].Error, "cannot be decrypted") ||
			strings.Contains(all[0].Error, "1234") {
			t.Errorf("attempts %+v", all)
		}
	}
	if got := ids(s.messages()); len(got) != 2 || got[0] != good || got[1] != good {
		t.Errorf("sent: %v", got)
	}
	if e, err := b.access.Webhooks.GetEndpoint(t.Context(), w.ID); err != nil || e.Failures != 0 || e.Disabled {
		t.Errorf("%d failures, %v", e.Failures, err)
	}
}
