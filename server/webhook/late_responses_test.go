package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// late returns a webhook that was disabled by one response while another request was in flight, and
// that is enabled again. open releases the other response. The endpoint accepts all later requests.
func (b *bed) late(answer http.HandlerFunc) (w webhook.Webhook, s *sink, event uuid.UUID, open func()) {
	b.Helper()
	both, answerFirst := gate(b)
	passed, open := gate(b)
	s = newSink(b, func(w http.ResponseWriter, r *http.Request, n int) {
		switch n {
		case 1:
			<-both
			w.WriteHeader(http.StatusGone)
		case 2:
			<-passed
			answer(w, r)
		}
	})
	w = b.hook(s.URL, "device.connected")
	b.emitAll(2, "device.connected")
	b.until("both are in flight", s.got(2))
	answerFirst()
	b.until("both are held", b.is(w, 2, webhook.DeliveryHeld))
	was, err := b.access.Webhooks.EnableWebhook(b.Context(), b.p, w.ID)
	b.must(err)
	if !was {
		b.Fatal("the webhook was not disabled")
	}
	return w, s, ids(s.messages())[1], open
}

// A late response only decides about its own request. The delivery has been replayed meanwhile, so
// the response neither fails nor delays it.
func TestLateFailure_ReplayedDeliveryContinues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schedule []time.Duration
		disable  time.Duration // 0: the default
		answer   http.HandlerFunc
	}{
		"that would be retried": {[]time.Duration{time.Hour}, 0, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		"of the last attempt":   {[]time.Duration{}, 0, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		"that ends the event": {[]time.Duration{time.Hour}, 0, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("webhook-delivery", "abort-message")
			w.WriteHeader(http.StatusBadRequest)
		}},
		"that requests a pause": {[]time.Duration{time.Millisecond}, 0, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		"that disables":             {[]time.Duration{time.Millisecond}, 0, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }},
		"that exceeds DisableAfter": {[]time.Duration{time.Millisecond}, time.Nanosecond, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := quick()
			o.Schedule, o.DisableAfter = c.schedule, c.disable
			b := start(t, o)
			w, s, event, open := b.late(c.answer)
			if n := b.replay(w, webhook.DeliveryFilter{}, uuid.Nil); n != 2 {
				t.Fatalf("replayed %d", n)
			}
			open()
			b.until("both are delivered", b.is(w, 2, webhook.DeliveryDelivered))
			if n := len(s.messages()); n != 4 {
				t.Errorf("%d messages", n)
			}
			if all := b.attempts(w, event); len(all) != 2 || all[0].Error == "" || all[1].Error != "" {
				t.Errorf("attempts %+v", all)
			}
			if e, err := b.access.Webhooks.GetEndpoint(
				t.Context(),
				w.ID,
			); err != nil || e.Failures != 0 ||
				e.FailingFor != 0 ||
				e.Disabled ||
				e.Paused {
				t.Errorf("endpoint %+v, %v", e, err)
			}
		})
	}
}

// The endpoint has the event. A second delivery is possible but not necessary.
func TestLateSuccess_CountsForReplayedDelivery(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	w, s, event, open := b.late(func(http.ResponseWriter, *http.Request) {})
	if n := b.replay(w, webhook.DeliveryFilter{}, uuid.Nil); n != 2 {
		t.Fatalf("replayed %d", n)
	}
	open()
	b.until("both are delivered", b.is(w, 2, webhook.DeliveryDelivered))
	if n := len(s.messages()); n != 3 || len(b.attempts(w, event)) != 1 {
		t.Errorf("%d messages", n)
	}
}

// A held delivery waits for a replay, even if its own request is answered later.
func TestLateFailure_HeldDeliveryStaysHeld(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	w, s, event, open := b.late(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	)
	open()
	b.until("the response is recorded", func() bool { return len(b.attempts(w, event)) == 1 })
	if !b.is(w, 2, webhook.DeliveryHeld)() {
		t.Errorf("deliveries %+v", b.deliveries(w))
	}
	if n := b.replay(w, webhook.DeliveryFilter{}, uuid.Nil); n != 2 {
		t.Errorf("replayed %d", n)
	}
	b.until("both are delivered", b.is(w, 2, webhook.DeliveryDelivered))
	if n := len(s.messages()); n != 4 {
		t.Errorf("%d messages", n)
	}
}

// The same without a disabled webhook, because pending deliveries can be replayed, too.
func TestLateFailure_DoesNotPostponeReplay(t *testing.T) {
	t.Parallel()
	o := webhook.Options{AllowPrefixes: loopback, Schedule: []time.Duration{time.Hour}}
	b := start(t, o)
	passed, open := gate(t)
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			<-passed
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	w := b.hook(s.URL, "device.connected")
	b.emit(b.p, "device.connected", "")
	b.until("the request is in flight", s.got(1))
	if n := b.replay(
		w,
		webhook.DeliveryFilter{States: []webhook.DeliveryState{webhook.DeliveryPending}},
		uuid.Nil,
	); n != 1 {
		t.Fatalf("replayed %d", n)
	}
	open()
	b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
}
