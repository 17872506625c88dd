package webhook_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func TestHangingEndpoint_DelaysNoOther(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback})
	released, release := gate(t)
	var hanging []*sink
	for range 20 {
		s := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-released })
		hanging = append(hanging, s)
		b.hook(s.URL)
	}
	defer release()
	prompt := newSink(t, nil)
	w := b.hook(prompt.URL)
	for range 60 {
		b.emit(b.p, "device.connected", "")
	}
	b.until("the prompt endpoint has all events", b.is(w, 60, webhook.DeliveryDelivered))
	for _, s := range hanging {
		b.until("the hanging endpoint was tried, too", s.got(1))
		if n := len(s.messages()); n > 32 {
			t.Errorf("%d concurrent requests", n)
		}
	}
	late := b.emit(b.p, "device.connected", "")
	b.until("the later event arrives", func() bool { return slices.Contains(ids(prompt.messages()), late) })
}

// Enough endpoints of one workspace hang to occupy all workers. Those of another workspace are
// served.
func TestHangingEndpoints_OfOneWorkspaceLeaveRoom(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback})
	b.stop(patience)
	passed, open := gate(t)
	defer open()
	hanging := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-passed })
	for n := range 40 {
		b.hook(fmt.Sprintf("%s/%d", hanging.URL, n), "device.connected")
	}
	b.engineOf(16, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
	b.emit(b.p, "device.connected", "")
	b.until("eight hang", hanging.got(8))
	b.p = b.workspace("others")
	good := newSink(t, nil)
	b.hook(good.URL, "device.connected")
	b.emit(b.p, "device.connected", "")
	b.until("the other webhook gets the event", good.got(1))
}

func TestHangingRequest_DelaysNoOtherOfSameEndpoint(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback})
	released, release := gate(t)
	s := newSink(t, func(_ http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			<-released
		}
	})
	defer release()
	b.hook(s.URL)
	b.emit(b.p, "device.connected", "")
	b.until("the first hangs", s.got(1))
	b.emit(b.p, "device.connected", "")
	b.until("the second arrives", s.got(2))
}

func TestGone_DisablesAndKeepsEvents(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	var repaired atomic.Bool
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		if !repaired.Load() {
			w.WriteHeader(http.StatusGone)
		}
	})
	told := newSink(t, nil)
	w := b.hook(s.URL, "device.connected")
	b.hook(told.URL, event.WebhookDisabled)
	first := b.emit(b.p, "device.connected", "")
	b.until("an event announces it", told.got(1))
	if got := told.messages()[0]; got.eventType(t) != "webhook.disabled" {
		t.Errorf("event %s", got.body)
	}
	second := b.emit(b.p, "device.connected", "")
	b.until("both are held", b.is(w, 2, webhook.DeliveryHeld))
	if n := len(s.messages()); n != 1 {
		t.Errorf("%d messages", n)
	}
	repaired.Store(true)
	if _, err := b.access.Webhooks.ReplayDeliveries(
		t.Context(),
		b.p,
		w.ID,
		webhook.DeliveryFilter{},
		uuid.Nil,
	); err == nil ||
		!strings.Contains(err.Error(), "410 Gone") {
		t.Errorf("replayed to a disabled webhook: %v", err)
	}
	if was, err := b.access.Webhooks.EnableWebhook(t.Context(), b.p, w.ID); !was || err != nil {
		t.Fatalf("it was disabled: %v, %v", was, err)
	}
	if was, err := b.access.Webhooks.EnableWebhook(t.Context(), b.p, w.ID); was || err != nil {
		t.Errorf("disabled: %v, %v", !was, err)
	}
	if n := b.replay(w, webhook.DeliveryFilter{}, uuid.Nil); n != 2 {
		t.Fatalf("replayed %d", n)
	}
	b.until("both are delivered", b.is(w, 2, webhook.DeliveryDelivered))
	if got := ids(s.messages()); !slices.Contains(got, first) || !slices.Contains(got, second) {
		t.Errorf("%v", got)
	}
	b.emit(b.p, "device.connected", "")
	b.until("it is enabled again", b.is(w, 3, webhook.DeliveryDelivered))
}

// Other webhooks receive the event that a webhook was disabled. The webhook itself neither receives
// nor keeps it.
func TestDisabledWebhook_GetsNoEventAboutItself(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	gone, told := newSink(t, status(http.StatusGone)), newSink(t, nil)
	w := b.hook(gone.URL)
	all := b.hook(told.URL)
	id := b.emit(b.p, "device.connected", "")
	b.until("the other webhook has both", b.is(all, 2, webhook.DeliveryDelivered))
	if own := b.deliveries(w); len(own) != 1 || own[0].EventID != id {
		t.Errorf("the webhook has an event about itself: %+v", own)
	}
}

// failing returns a webhook whose first event has failed twice and is retried in an hour.
func failing(t *testing.T) (*bed, webhook.Webhook) {
	t.Helper()
	o := quick()
	o.Schedule = []time.Duration{time.Millisecond, time.Hour}
	b := start(t, o)
	w := b.hook(newSink(t, status(http.StatusInternalServerError)).URL)
	id := b.emit(b.p, "device.connected", "")
	b.until("it has failed twice", func() bool { return len(b.attempts(w, id)) == 2 })
	return b, w
}

func TestDisableAfter_FiveDaysOfFailures(t *testing.T) {
	t.Parallel()
	b, w := failing(t)
	if !b.is(w, 1, webhook.DeliveryPending)() {
		t.Error("disabled immediately")
	}
	if _, err := b.db.Pool.Exec(
		t.Context(),
		"update webhooks set failing_since = now() - interval '5 days 1 second'",
	); err != nil {
		t.Fatal(err)
	}
	b.emit(b.p, "device.connected", "")
	b.until("both are held", b.is(w, 2, webhook.DeliveryHeld))
}

func TestDisableAfter_SuccessResetsTime(t *testing.T) {
	t.Parallel()
	o := quick()
	o.DisableAfter = time.Hour
	b := start(t, o)
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n != 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	w := b.hook(s.URL)
	b.emit(b.p, "device.connected", "")
	b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
	id := b.emit(b.p, "device.connected", "")
	b.until("it is given up, the webhook being enabled", func() bool { return len(b.attempts(w, id)) == 8 })
	e, err := b.access.Webhooks.GetEndpoint(t.Context(), w.ID)
	if err != nil || e.Disabled || e.Failures != 8 || e.FailingFor <= 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

// Requests in flight at the end of a quantum are awaited and not sent twice.
func TestBusyEndpoint_ReceivesEachEventOnce(t *testing.T) {
	t.Parallel()
	o := quick()
	o.Quantum = time.Millisecond
	b := start(t, o)
	s := newSink(t, nil)
	w := b.hook(s.URL)
	for range 200 {
		b.emit(b.p, "device.connected", "")
	}
	b.until("all are delivered", b.is(w, 200, webhook.DeliveryDelivered))
	if n := len(s.messages()); n != 200 {
		t.Errorf("%d messages", n)
	}
}

func TestHangingEndpoint_HoldsFewRequests(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Minute})
	released, release := gate(t)
	s := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-released })
	prompt := newSink(t, nil)
	w := b.hook(s.URL)
	wPrompt := b.hook(prompt.URL)
	for range 40 {
		b.emit(b.p, "device.connected", "")
	}
	b.until("another endpoint has all events", b.is(wPrompt, 40, webhook.DeliveryDelivered))
	b.until("the endpoint is tried", s.got(2))
	if n := len(s.messages()); n != 2 {
		t.Errorf("%d concurrent requests", n)
	}
	release()
	b.until("the endpoint has all events once it answers", b.is(w, 40, webhook.DeliveryDelivered))
}

// Endpoints that were healthy and then hang share a bounded number of requests, and others are
// served.
func TestHangingEndpoints_ShareFewRequests(t *testing.T) {
	t.Parallel()
	const endpoints, prompt, all, most = 12, 60, 120, 12*2 + 256
	const enough = endpoints * (2 + 14) // each could have sixteen more alone
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Minute})
	begun, begin := gate(t)
	released, release := gate(t)
	var hangs atomic.Int64
	var hooks []webhook.Webhook
	for range endpoints {
		s := newSink(t, func(_ http.ResponseWriter, _ *http.Request, n int) {
			<-begun
			if n > prompt {
				hangs.Add(1)
				<-released
			}
		})
		hooks = append(hooks, b.hook(s.URL))
	}
	b.emitAll(all, "device.connected")
	b.until("all are due", func() bool { return b.count("deliveries") == endpoints*all })
	begin()
	b.until("they hang", func() bool { return hangs.Load() >= enough })
	var came atomic.Int64
	three, reached := gate(t)
	other := newSink(t, func(_ http.ResponseWriter, _ *http.Request, n int) {
		if n <= 2 {
			return
		}
		if came.Add(1) == 3 {
			reached()
		}
		<-three
	})
	w := b.hook(other.URL)
	// Emit together: between single events the run could end, and its window with it.
	b.emitAll(20, "device.disconnected")
	b.until("another endpoint gets all events", b.is(w, 20, webhook.DeliveryDelivered))
	if n := hangs.Load(); n > most {
		t.Errorf("%d concurrent requests to %d endpoints", n, endpoints)
	}
	release()
	for _, h := range hooks {
		b.until("the endpoints have all events once they answer", b.is(h, all+20, webhook.DeliveryDelivered))
	}
}

// A long transaction locks a webhook.
func TestFanOut_LockedWebhookDelaysNoOtherEvents(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, nil)
	w := b.hook(s.URL, "device.connected")
	busy := b.hook(s.URL, "device.added")
	b.must(b.db.InTx(t.Context(), func(tx store.Tx) error {
		if _, err := tx.LockWebhook(t.Context(), busy.ID); err != nil {
			return err
		}
		b.emit(b.p, "device.connected", "")
		b.until("it is delivered meanwhile", b.is(w, 1, webhook.DeliveryDelivered))
		return nil
	}))
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The log shows the operator which webhook was disabled, why, and what becomes of its events.
func TestLog_DisabledWebhookWithoutSecrets(t *testing.T) {
	t.Parallel()
	const pin, token = "73519284", "hush-in-the-url"
	for why, c := range map[string]struct {
		status int
		says   string
	}{
		"gone": {http.StatusGone, "410 Gone"}, "five days of nothing but failure": {http.StatusInternalServerError, "Every attempt failed for"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			log := &lines{}
			o := quick()
			o.DisableAfter, o.Log = time.Nanosecond, slog.New(
				slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}),
			)
			b := start(t, o)
			s := newSink(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, pin, r.Header.Get("webhook-signature"))
			})
			w := b.hook(s.URL+"?token="+token, "access_code.set_on_device")
			id := b.emit(b.p, "access_code.set_on_device", pin)
			b.until("it is disabled", b.is(w, 1, webhook.DeliveryHeld))
			b.stop(patience)
			told := 0
			for line := range strings.Lines(log.String()) {
				var entry struct {
					Level, Msg, Reason string
					Webhook            string `json:"webhook_id"`
				}
				b.must(json.Unmarshal([]byte(line), &entry))
				if entry.Level != "ERROR" {
					continue
				}
				told++
				if entry.Webhook != w.ID.String() || !strings.Contains(entry.Reason, c.says) ||
					!strings.Contains(entry.Msg, "disabled") ||
					!strings.Contains(entry.Msg, "replayed") {
					t.Errorf("log line %s", line)
				}
			}
			if told != 1 {
				t.Errorf("%d log lines:\n%s", told, log)
			}
			secrets := []string{"whsec_", strings.TrimPrefix(w.Secret, "whsec_"), pin, token}
			for _, m := range s.messages() {
				secrets = append(secrets, strings.TrimPrefix(m.signatures()[0], "v1,"))
			}
			for _, secret := range secrets {
				if strings.Contains(log.String(), secret) {
					t.Errorf("the log contains a secret")
				}
			}
			if n := len(b.attempts(w, id)); n == 0 {
				t.Error("no attempt is recorded")
			}
		})
	}
}

// The log warns once of an endpoint that keeps failing, not for its first failures, and reports the recovery.
func TestLog_FailingWebhookOnce(t *testing.T) {
	t.Parallel()
	log := &lines{}
	o := quick()
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	b := start(t, o)
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n <= 5 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	w := b.hook(s.URL+"/hush-in-the-url", "access_code.set_on_device")
	b.emit(b.p, "access_code.set_on_device", "73519284")
	b.until("the recovery is logged", func() bool {
		return strings.Contains(
			log.String(),
			`level=INFO msg="a webhook's endpoint works again" webhook_id=`+w.ID.String(),
		)
	})
	const warning = `level=WARN msg="a webhook's endpoint is failing"`
	if said := log.String(); strings.Count(said, "endpoint is failing") != 1 || !strings.Contains(said, warning) ||
		!strings.Contains(said, "endpoint=127.0.0.1:") || !strings.Contains(said, "failures=3") ||
		strings.Contains(said, "hush") {
		t.Error(said)
	}
}

// The pause that an endpoint requests overrides the schedule, up to an hour.
func TestRetryAfter_OverridesSchedule(t *testing.T) {
	t.Parallel()
	for asked, least := range map[string]time.Duration{"1800": 29 * time.Minute, "86400": 59 * time.Minute} {
		b := start(t, quick())
		s := newSink(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Retry-After", asked)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		w := b.hook(s.URL)
		id := b.emit(b.p, "device.connected", "")
		b.until("an attempt is made", func() bool { return len(b.attempts(w, id)) == 1 })
		next := b.deliveries(w)[0].Next
		if next == nil || time.Until(*next) < least || time.Until(*next) > least+2*time.Minute {
			t.Errorf("requested %s s, next attempt at %v", asked, next)
		}
		later := b.emit(b.p, "device.connected", "") // waits, too
		b.until("the event is fanned out", b.is(w, 2, webhook.DeliveryPending))
		if n := len(b.attempts(w, later)); n != 0 || len(s.messages()) != 1 {
			t.Errorf("%d requests", len(s.messages()))
		}
	}
}
