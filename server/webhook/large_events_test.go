package webhook_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// holder holds every lease.
type holder struct{}

func (holder) Check(context.Context, store.Tx) error { return nil }

// A fan-out locks its webhooks, for seconds if there are many. Recording attempts does not wait for
// that. Otherwise, all connections for deliveries would wait.
func TestRecord_DuringFanOut(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, nil)
	w := b.hook(s.URL)
	b.emit(b.p, "device.connected", "")
	b.until("the first is delivered", b.is(w, 1, webhook.DeliveryDelivered))
	b.emitAll(1, "device.connected")
	b.must(b.db.InTx(t.Context(), func(tx store.Tx) error {
		if _, err := tx.LockWebhooksFor(
			t.Context(),
			dbsqlc.LockWebhooksForParams{WorkspaceID: b.p.WorkspaceID, EventTypes: []string{"device.connected"}},
		); err != nil {
			return err
		}
		var event uuid.UUID
		if err := b.db.Pool.QueryRow(t.Context(), "select event_id from deliveries").Scan(&event); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(testenv.WaitTimeout))
		defer cancel()
		return b.access.Webhooks.RecordDeliveries(ctx, holder{}, w.ID,
			[]webhook.DeliveryAttempt{{EventID: event, State: webhook.DeliveryDelivered, Status: 204}},
			webhook.Health{Recovered: true, Healthy: true})
	}))
}

// Deliveries of a disabled endpoint are held in parts. One transaction for a million deliveries
// would outlast its lease and repeat forever.
func TestDisabledEndpoint_HoldsInParts(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	b.stop(patience)
	s := newSink(t, status(http.StatusGone))
	w := b.hook(s.URL, "device.connected")
	const many = 11_000
	_, err := b.db.Pool.Exec(t.Context(), `with e as (
		insert into events (event_id, workspace_id, event_type, payload, fanned_out_at) select gen_random_uuid(), $1, 'device.connected', '{}', now() from generate_series(1, $3::integer) returning event_id)
		insert into deliveries (webhook_id, event_id, state, next_attempt_at) select $2, event_id, 'pending', now() from e`, b.p.WorkspaceID, w.ID, many)
	b.must(err)
	_, err = b.db.Pool.Exec(t.Context(), "update webhooks set due_at = now()")
	b.must(err)
	b.engine(quick())
	b.until("all are held, and none is due", func() bool {
		var held int
		var due bool
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select (select count(*) from deliveries where state = 'held'), due_at is not null from webhooks").
				Scan(&held, &due),
		)
		return held == many && !due
	})
	if n := len(s.messages()); n > 2 {
		t.Errorf("%d requests", n)
	}
	var most int
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select max(n) from (select count(*) as n from deliveries group by finished_at) t").
			Scan(&most),
	)
	if most > many/2 {
		t.Errorf("%d were held in one transaction", most)
	}
}

// Large events stay in memory until their endpoints have read them. Events of one workspace wait
// for each other, but not small ones, those to healthy endpoints, or those of other workspaces.
func TestLargeEvents_WaitForMemory(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
	const size, many, room = 400_000, 40, 6
	large := func() {
		_, err := b.db.Pool.Exec(
			t.Context(),
			`insert into events (event_id, workspace_id, event_type, payload) select gen_random_uuid(), $1, 'device.connected', jsonb_build_object('device_custom_metadata', $2::text)`,
			b.p.WorkspaceID,
			strings.Repeat("x", size),
		)
		b.must(err)
	}
	var at atomic.Int64
	unread, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	b.must(err)
	go func() {
		for {
			c, err := unread.Accept()
			if err != nil {
				return
			}
			at.Add(1)
			defer c.Close()
		}
	}()
	defer unread.Close()
	for range many {
		b.hook("http://"+unread.Addr().String(), "device.connected")
	}
	small, steady := newSink(t, nil), newSink(t, nil)
	b.hook(small.URL, "device.disconnected")
	w := b.hook(steady.URL, "device.connected", "device.added")
	b.emit(b.p, "device.added", "")
	b.until("one has answered", b.is(w, 1, webhook.DeliveryDelivered))
	large()
	b.until("as many as fit are in flight", func() bool { return at.Load() >= room })
	large()
	b.until("the healthy endpoint gets both", steady.got(3))
	b.emit(b.p, "device.disconnected", "")
	b.until("a small event arrives", small.got(1))
	b.p = b.workspace("others")
	good := newSink(t, nil)
	b.hook(good.URL, "device.connected")
	large()
	b.until("the event of another workspace arrives", good.got(1))
	if n := at.Load(); n > room {
		t.Errorf("%d events of %d bytes are in flight together", n, size)
	}
	for _, m := range append(steady.messages()[1:], good.messages()...) {
		if len(m.body) < size {
			t.Errorf("%d bytes arrive", len(m.body))
		}
	}
}

// An endpoint that has read a large event and has not answered yet uses no memory.
func TestLargeEvents_ReadOnesFreeMemory(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
	passed, open := gate(t)
	defer open()
	hanging := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-passed })
	const many = 40
	for range many {
		b.hook(hanging.URL, "device.connected")
	}
	_, err := b.db.Pool.Exec(
		t.Context(),
		`insert into events (event_id, workspace_id, event_type, payload) select gen_random_uuid(), $1, 'device.connected', jsonb_build_object('device_custom_metadata', $2::text)`,
		b.p.WorkspaceID,
		strings.Repeat("x", 400_000),
	)
	b.must(err)
	b.until("all endpoints have it", hanging.got(many))
}

// A pause requested by an endpoint lasts, even if other requests in flight get responses.
func TestRetryAfter_SurvivesOtherResponses(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	b.stop(patience)
	w := b.hook("http://127.0.0.1:1", "device.connected")
	for _, health := range []webhook.Health{{Failures: 1, Pause: time.Hour}, {Failures: 2}} {
		b.must(b.access.Webhooks.RecordDeliveries(t.Context(), holder{}, w.ID, nil, health))
	}
	paused := func() bool {
		e, err := b.access.Webhooks.GetEndpoint(t.Context(), w.ID)
		b.must(err)
		return e.Paused
	}
	if !paused() {
		t.Error("the pause was dropped")
	}
	b.must(b.access.Webhooks.RecordDeliveries(t.Context(), holder{}, w.ID, nil, webhook.Health{Recovered: true}))
	if paused() {
		t.Error("the pause continues after a success")
	}
}

// A slow endpoint delays its own deliveries. They do not count as late.
func TestBacklog_SlowEndpointIsNotLate(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
	passed, open := gate(t)
	defer open()
	s := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-passed })
	b.hook(s.URL, "device.connected")
	b.emitAll(3, "device.connected")
	b.until("two are in flight", s.got(2))
	_, err := b.db.Pool.Exec(t.Context(), "update deliveries set next_attempt_at = now() - interval '10 min'")
	b.must(err)
	told := func(what string, slow, late time.Duration) {
		t.Helper()
		backlog, err := b.access.Health.Backlog(t.Context())
		b.must(err)
		found, err := b.access.Health.Lateness(t.Context())
		b.must(err)
		for _, at := range []struct {
			what      string
			got, want time.Duration
		}{{"slow", backlog.Slow, slow}, {"healthy", backlog.Healthy.OldestDue, late}, {"late", found.Deliveries, late}} {
			if at.got < at.want || at.got > at.want+5*time.Minute {
				t.Errorf("%s: %s for %s, want %s", what, at.what, at.got, at.want)
			}
		}
	}
	told("while it is sent others", 10*time.Minute, 0)
	_, err = b.db.Pool.Exec(t.Context(), "update leases set held_until = '-infinity'")
	b.must(err)
	told("while no worker is busy", 0, 10*time.Minute)
}

// Deliveries to working endpoints are counted, however many wait for failing ones.
func TestBacklog_CountsByEndpointHealth(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	b.stop(patience)
	for n, failures := range []int{1, 0} {
		w := b.hook("http://127.0.0.1:1", "device.connected")
		_, err := b.db.Pool.Exec(t.Context(), `with e as (
			insert into events (event_id, workspace_id, event_type, payload, fanned_out_at) select gen_random_uuid(), $1, 'device.connected', '{}', now() from generate_series(1, 20 / (1 + 3 * $3::integer)) returning event_id),
			w as (update webhooks set due_at = now(), consecutive_failures = $4 where webhook_id = $2)
			insert into deliveries (webhook_id, event_id, state, next_attempt_at) select $2, event_id, 'pending', now() from e`, b.p.WorkspaceID, w.ID, n, failures)
		b.must(err)
	}
	got, err := b.db.CountPending(t.Context(), 10)
	b.must(err)
	if got.Failing != 10 || got.Healthy != 5 {
		t.Errorf("%d wait for one that fails, and %d for one that works, want 10 (of 20, counted to 10) and 5",
			got.Failing, got.Healthy)
	}
}

// Hanging endpoints of any workspaces leave workers to healthy ones. If a service with hundreds of
// customers is down, other customers still receive their events.
func TestHangingEndpoints_LeaveWorkersToHealthyOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// The hanging endpoints are prompt as stored, prompt as this server knows, or prompt as
		// another server has found meanwhile.
		prompt, known, otherwise bool
		fails                    bool // they fail before they hang
	}{
		"that were never sent to":      {},
		"that have answered before":    {prompt: true, fails: true},
		"to a server that knows them":  {prompt: true, known: true, fails: true},
		"as another server knows them": {prompt: true, known: true, otherwise: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, quick())
			b.stop(patience)
			b.engineOf(16, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
			good := newSink(t, nil)
			proven, mine := b.hook(good.URL, "device.connected"), b.p
			b.emit(mine, "device.connected", "")
			b.until("one has answered", b.is(proven, 1, webhook.DeliveryDelivered))
			passed, open := gate(t)
			defer open()
			var hang atomic.Bool
			var hanging sync.Map // by path
			var asked sync.Map   // path → *atomic.Int64: since they hang
			bad := newSink(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				if !hang.Load() {
					return
				}
				times, _ := asked.LoadOrStore(r.URL.Path, &atomic.Int64{})
				if c.fails && times.(*atomic.Int64).Add(1) <= 2 { // sent immediately
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				hanging.Store(r.URL.Path, true)
				<-passed
			})
			const many = 30
			customers, hooks := make([]domain.Principal, many), make([]webhook.Webhook, many)
			for n := range many {
				b.p = b.workspace("hangs")
				customers[n], hooks[n] = b.p, b.hook(bad.URL+"/"+strconv.Itoa(n), "device.connected")
				if c.known {
					b.emit(b.p, "device.connected", "")
				}
			}
			for n := range many {
				if b.p = customers[n]; c.known {
					b.until("it has answered", b.is(hooks[n], 1, webhook.DeliveryDelivered))
				}
				if c.prompt {
					b.until("no worker is busy there", func() (free bool) {
						b.must(
							b.db.Pool.QueryRow(t.Context(), "select not exists (select from leases where key = $1 and held_until > now())", "endpoint:"+hooks[n].ID.String()).
								Scan(&free),
						)
						return free
					})
					b.must(
						b.access.Webhooks.RecordDeliveries(t.Context(), holder{}, hooks[n].ID, nil,
							webhook.Health{Recovered: true, Healthy: !c.otherwise}),
					)
				}
			}
			hang.Store(true)
			for _, b.p = range customers {
				b.emitAll(4, "device.connected")
				b.emit(b.p, "device.connected", "")
			}
			b.until("the maximum number hangs", func() bool {
				n := 0
				hanging.Range(func(any, any) bool { n++; return true })
				return n >= 14
			})
			b.emit(mine, "device.connected", "")
			b.until("the other webhook gets the event", good.got(2))
		})
	}
}

// The latest health of an endpoint counts, even if another server found it.
func TestHealth_FoundByAnotherServer(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	b.stop(patience)
	b.engineOf(16, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
	passed, open := gate(t)
	defer open()
	hanging, good := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-passed }), newSink(t, nil)
	mine := b.p
	for range 30 {
		b.p = b.workspace("hangs")
		b.hook(hanging.URL, "device.connected")
		b.emit(b.p, "device.connected", "")
	}
	b.until("the maximum number hangs", hanging.got(14))
	b.p = mine
	w := b.hook(good.URL, "device.connected")
	b.emit(mine, "device.connected", "")
	b.until("it is due", func() bool {
		due, err := b.access.Webhooks.WebhookDue(t.Context(), w.ID)
		b.must(err)
		return due
	})
	if len(good.messages()) != 0 {
		t.Error("a new endpoint does not wait for the hanging ones")
	}
	b.must(
		b.access.Webhooks.RecordDeliveries(
			t.Context(),
			holder{},
			w.ID,
			nil,
			webhook.Health{Recovered: true, Healthy: true},
		),
	)
	b.until("the webhook gets the event", good.got(1))
}

// The health of an endpoint is stored for the next server that sends to it.
func TestHealth_IsStored(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	var fails atomic.Bool
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		if fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	w := b.hook(s.URL, "device.connected")
	prompt := func(want bool) func() bool {
		return func() bool {
			e, err := b.access.Webhooks.GetEndpoint(t.Context(), w.ID)
			b.must(err)
			return e.Healthy == want
		}
	}
	if !prompt(false)() {
		t.Error("a new endpoint is prompt")
	}
	b.emit(b.p, "device.connected", "")
	b.until("the endpoint is prompt", prompt(true))
	fails.Store(true)
	b.emit(b.p, "device.connected", "")
	b.until("the endpoint is not prompt", prompt(false))
	fails.Store(false)
	b.emit(b.p, "device.connected", "")
	b.until("the endpoint is prompt again", prompt(true))
}
