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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// holder is the holder of every lease.
type holder struct{}

func (holder) Check(context.Context, store.Tx) error { return nil }

// Whoever hands out events has their webhooks locked, for seconds where there are many. What was sent meanwhile is written down, or
// all connections that deliveries have would wait.
func TestAnswersAreRecordedWhileMoreIsHandedOut(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, nil)
	w := b.hook(s.URL)
	b.emit(b.p, "device.connected", "")
	b.until("the first is delivered", b.is(w, 1, access.DeliveryDelivered))
	b.emitAll(1, "device.connected")
	b.must(b.db.InTx(t.Context(), func(tx store.Tx) error {
		if _, err := tx.LockWebhooksFor(t.Context(), dbsqlc.LockWebhooksForParams{WorkspaceID: b.p.WorkspaceID, EventTypes: []string{"device.connected"}}); err != nil {
			return err
		}
		var event uuid.UUID
		if err := b.db.Pool.QueryRow(t.Context(), "select event_id from deliveries").Scan(&event); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(testenv.WaitTimeout))
		defer cancel()
		return b.access.RecordDeliveries(ctx, holder{}, w.ID, []access.DeliveryAttempt{{EventID: event, State: access.DeliveryDelivered, Status: 204}}, access.Health{Recovered: true, Prompt: true})
	}))
}

// What waits for an endpoint that is given up is held a part at a time: one transaction for a million deliveries would outlast the
// lease under which it is made, and be made again and again.
func TestAllThatWaitsForADisabledEndpointIsHeld(t *testing.T) {
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
	b.until("all are held, and nothing is due", func() bool {
		var held int
		var due bool
		b.must(b.db.Pool.QueryRow(t.Context(), "select (select count(*) from deliveries where state = 'held'), due_at is not null from webhooks").Scan(&held, &due))
		return held == many && !due
	})
	if n := len(s.messages()); n > 2 {
		t.Errorf("%d requests", n)
	}
	var most int
	b.must(b.db.Pool.QueryRow(t.Context(), "select max(n) from (select count(*) as n from deliveries group by finished_at) t").Scan(&most))
	if most > many/2 {
		t.Errorf("%d were held in one transaction", most)
	}
}

// Events that carry much are in memory until endpoints have read them. Those of one workspace wait for one another, and keep neither
// small ones waiting, nor those to endpoints that answer, nor those of others.
func TestLargeEventsWaitForRoom(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
	const size, many, room = 400_000, 40, 6
	large := func() {
		_, err := b.db.Pool.Exec(t.Context(), `insert into events (event_id, workspace_id, event_type, payload) select gen_random_uuid(), $1, 'device.connected', jsonb_build_object('device_custom_metadata', $2::text)`,
			b.p.WorkspaceID, strings.Repeat("x", size))
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
	b.until("one has answered", b.is(w, 1, access.DeliveryDelivered))
	large()
	b.until("as many as there is room for are on their way", func() bool { return at.Load() >= room })
	large()
	b.until("one that has answered gets both", steady.got(3))
	b.emit(b.p, "device.disconnected", "")
	b.until("a small one arrives", small.got(1))
	b.p = b.workspace("others")
	good := newSink(t, nil)
	b.hook(good.URL, "device.connected")
	large()
	b.until("that of another workspace arrives", good.got(1))
	if n := at.Load(); n > room {
		t.Errorf("%d events of %d bytes are on their way at once", n, size)
	}
	for _, m := range append(steady.messages()[1:], good.messages()...) {
		if len(m.body) < size {
			t.Errorf("%d bytes arrive", len(m.body))
		}
	}
}

// An endpoint that thinks about a large event keeps none of the room: it has read it.
func TestLargeEventsThatAreReadLeaveRoom(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
	passed, open := gate(t)
	defer open()
	hanging := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-passed })
	const many = 40
	for range many {
		b.hook(hanging.URL, "device.connected")
	}
	_, err := b.db.Pool.Exec(t.Context(), `insert into events (event_id, workspace_id, event_type, payload) select gen_random_uuid(), $1, 'device.connected', jsonb_build_object('device_custom_metadata', $2::text)`,
		b.p.WorkspaceID, strings.Repeat("x", 400_000))
	b.must(err)
	b.until("all have it", hanging.got(many))
}

// An endpoint that asks for an hour has it, whatever is still answered of what was in the air.
func TestPauseThatAnEndpointAsksForLasts(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	b.stop(patience)
	w := b.hook("http://127.0.0.1:1", "device.connected")
	for _, health := range []access.Health{{Failures: 1, Pause: time.Hour}, {Failures: 2}} {
		b.must(b.access.RecordDeliveries(t.Context(), holder{}, w.ID, nil, health))
	}
	paused := func() bool {
		e, err := b.access.GetEndpoint(t.Context(), w.ID)
		b.must(err)
		return e.Paused
	}
	if !paused() {
		t.Error("the pause is forgotten")
	}
	b.must(b.access.RecordDeliveries(t.Context(), holder{}, w.ID, nil, access.Health{Recovered: true}))
	if paused() {
		t.Error("it has answered, and the pause goes on")
	}
}

// How fast an endpoint answers is its own affair: what waits while it is sent other events makes nobody here late.
func TestWhatASlowEndpointKeepsWaitingIsItsOwn(t *testing.T) {
	t.Parallel()
	b := start(t, webhook.Options{AllowPrefixes: loopback, Timeout: time.Hour})
	passed, open := gate(t)
	defer open()
	s := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-passed })
	b.hook(s.URL, "device.connected")
	b.emitAll(3, "device.connected")
	b.until("two are on their way", s.got(2))
	_, err := b.db.Pool.Exec(t.Context(), "update deliveries set next_attempt_at = now() - interval '10 min'")
	b.must(err)
	told := func(what string, slow, late time.Duration) {
		t.Helper()
		backlog, err := b.access.Backlog(t.Context())
		b.must(err)
		found, err := b.access.Lateness(t.Context())
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
	told("while nobody is at work", 0, 10*time.Minute)
}

// However much waits for endpoints that fail, what waits for those that work is counted.
func TestWhatWaitsIsCountedByHowItsEndpointIs(t *testing.T) {
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
		t.Errorf("%d wait for one that fails, and %d for one that works, want 10 (of 20, counted to 10) and 5", got.Failing, got.Healthy)
	}
}

// Whoever's they are, endpoints that hang leave workers to those that have answered: when the service that hundreds of customers send to is down,
// others are told all the same.
func TestEndpointsThatHangLeaveWorkersToThoseThatAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prompt, known, otherwise bool // the endpoints that hang are known to be so, by this server too, and another server has found that they are not
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
			b.until("one has answered", b.is(proven, 1, access.DeliveryDelivered))
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
				if c.fails && times.(*atomic.Int64).Add(1) <= 2 { // which are sent at once
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				hanging.Store(r.URL.Path, true)
				<-passed
			})
			const many = 30
			customers, hooks := make([]access.Principal, many), make([]access.Webhook, many)
			for n := range many {
				b.p = b.workspace("hangs")
				customers[n], hooks[n] = b.p, b.hook(bad.URL+"/"+strconv.Itoa(n), "device.connected")
				if c.known {
					b.emit(b.p, "device.connected", "")
				}
			}
			for n := range many {
				if b.p = customers[n]; c.known {
					b.until("it has answered", b.is(hooks[n], 1, access.DeliveryDelivered))
				}
				if c.prompt {
					b.until("nobody is at work there", func() (free bool) {
						b.must(b.db.Pool.QueryRow(t.Context(), "select not exists (select from leases where key = $1 and held_until > now())", "endpoint:"+hooks[n].ID.String()).Scan(&free))
						return free
					})
					b.must(b.access.RecordDeliveries(t.Context(), holder{}, hooks[n].ID, nil, access.Health{Recovered: true, Prompt: !c.otherwise}))
				}
			}
			hang.Store(true)
			for _, b.p = range customers {
				b.emitAll(4, "device.connected")
				b.emit(b.p, "device.connected", "")
			}
			b.until("as many as may hang do", func() bool {
				n := 0
				hanging.Range(func(any, any) bool { n++; return true })
				return n >= 14
			})
			b.emit(mine, "device.connected", "")
			b.until("the other is told", good.got(2))
		})
	}
}

// One of which another server has found since that it answers is one of those that do, though this one has seen it when it had not.
func TestAnEndpointIsPromptAsAnotherServerHasFound(t *testing.T) {
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
	b.until("as many as may hang do", hanging.got(14))
	b.p = mine
	w := b.hook(good.URL, "device.connected")
	b.emit(mine, "device.connected", "")
	b.until("it is due", func() bool {
		due, err := b.access.WebhookDue(t.Context(), w.ID)
		b.must(err)
		return due
	})
	if len(good.messages()) != 0 {
		t.Error("one that was never sent to does not wait for those")
	}
	b.must(b.access.RecordDeliveries(t.Context(), holder{}, w.ID, nil, access.Health{Recovered: true, Prompt: true}))
	b.until("it is told", good.got(1))
}

// It is written down that an endpoint is prompt, and that it no longer is, for whoever sends to it next.
func TestWhetherAnEndpointIsPromptIsWrittenDown(t *testing.T) {
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
			e, err := b.access.GetEndpoint(t.Context(), w.ID)
			b.must(err)
			return e.Prompt == want
		}
	}
	if !prompt(false)() {
		t.Error("one that was never sent anything is prompt")
	}
	b.emit(b.p, "device.connected", "")
	b.until("it is prompt", prompt(true))
	fails.Store(true)
	b.emit(b.p, "device.connected", "")
	b.until("it no longer is", prompt(false))
	fails.Store(false)
	b.emit(b.p, "device.connected", "")
	b.until("it is again", prompt(true))
}
