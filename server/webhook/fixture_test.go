package webhook_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// quick returns options with as many schedule steps as the real ones.
func quick() webhook.Options {
	return webhook.Options{
		AllowPrefixes: loopback,
		Schedule:      slices.Repeat([]time.Duration{time.Millisecond}, 7),
		ProbePause:    time.Millisecond,
	}
}

// bed is a running deliverer.
type bed struct {
	testing.TB
	db     *store.DB
	keys   *encryption.Keys
	waker  *worker.Waker
	access *access.Services
	p      domain.Principal
	uptime atomic.Int64                 // how far the clock of the server is ahead
	last   uuid.UUID                    // the account whose events were fanned out last
	stop   func(patience time.Duration) // stops the engine of start
}

func start(t testing.TB, o webhook.Options, keep ...retention.Options) *bed {
	t.Helper()
	b := newBed(t, storetest.New(t))
	b.stop = b.engine(o, keep...)
	return b
}

func startOn(t testing.TB, o webhook.Options, dsn string, options ...store.Option) *bed {
	t.Helper()
	b := newBed(t, dsn, options...)
	b.stop = b.engine(o)
	return b
}

// newBed returns a bed without a deliverer.
func newBed(t testing.TB, dsn string, options ...store.Option) *bed {
	t.Helper()
	b := &bed{TB: t}
	var err error
	b.db, err = store.Open(t.Context(), dsn, 20, options...)
	b.must(err)
	t.Cleanup(b.db.Close)
	b.keys, err = encryption.New(encryption.NewMaster())
	b.must(err)
	b.waker, err = worker.NewWaker(b.db)
	b.must(err)
	b.access = access.New(b.db, b.keys, b.waker, access.Options{
		Now: func() time.Time { return time.Now().Add(time.Duration(b.uptime.Load())) },
	})
	b.p = b.workspace("mine")
	return b
}

func (b *bed) workspace(name string) domain.Principal {
	b.Helper()
	w, err := b.access.Accounts.CreateWorkspace(b.Context(), name, "c", true)
	b.must(err)
	return domain.Principal{WorkspaceID: w.ID}
}

// patience is the timeout for work in progress when an engine stops.
var patience = testenv.Timeout(time.Minute)

// engine runs until the test ends or stop is called. stop cancels the work in progress after its
// timeout.
func (b *bed) engine(o webhook.Options, keep ...retention.Options) (stop func(patience time.Duration)) {
	b.Helper()
	return b.engineOf(600, o, keep...) // as in package app
}

func (b *bed) engineOf(workers int, o webhook.Options, keep ...retention.Options) (stop func(patience time.Duration)) {
	b.Helper()
	d, sweeper := webhook.New(b.access.Webhooks, o), retention.NewSweeper(b.access.Retention, cmp.Or(keep...))
	opt := worker.Options{Workers: workers, Log: slog.New(slog.DiscardHandler)}
	if _, measured := b.TB.(*testing.B); !measured {
		opt.Sweep = 50 * time.Millisecond
	}
	e, err := worker.NewEngine(b.waker, opt, append(d.Lanes(), sweeper.Lanes()...)...)
	b.must(err)
	b.must(e.Start(b.Context()))
	var once sync.Once
	stop = func(patience time.Duration) {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			d.Quiesce()
			sweeper.Quiesce()
			if err := e.Stop(ctx); err != nil && ctx.Err() == nil {
				b.Errorf("stop: %v", err)
			}
		})
	}
	b.Cleanup(func() { stop(patience) })
	return stop
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) until(what string, ok func() bool) {
	b.Helper()
	testenv.Until(b.TB, what, ok)
}

// emit writes an event like the operations of the domain.
func (b *bed) emit(p domain.Principal, eventType, pin string) uuid.UUID {
	b.Helper()
	id := uuid.Must(uuid.NewV7())
	arg := dbsqlc.InsertEventParams{
		EventID:     id,
		WorkspaceID: p.WorkspaceID,
		EventType:   eventType,
		Payload:     []byte(`{"device_id":"d","n":1.5}`),
	}
	if pin != "" {
		arg.PinSealed = b.keys.Seal("events.pin/"+id.String(), []byte(pin))
	}
	b.must(b.db.InTx(b.Context(), func(tx store.Tx) error {
		waits, err := tx.InsertEvent(b.Context(), arg)
		if err != nil || !waits {
			return err
		}
		return b.waker.Wake(b.Context(), tx, domain.OutboxLane, p.WorkspaceID)
	}))
	return id
}

// emitAll writes count events in one transaction, so that all become due together.
func (b *bed) emitAll(n int, eventType string) {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), `insert into events (event_id, workspace_id, event_type, payload)
		select gen_random_uuid(), $1, $2, '{}' from generate_series(1, $3::integer)`, b.p.WorkspaceID, eventType, n)
	b.must(err)
}

func (b *bed) hook(url string, types ...string) webhook.Webhook {
	b.Helper()
	w, err := b.access.Webhooks.CreateWebhook(b.Context(), b.p, url, types)
	b.must(err)
	return w
}

func (b *bed) deliveries(w webhook.Webhook) []webhook.DeliveryLog {
	b.Helper()
	out, err := b.access.Webhooks.ListDeliveries(b.Context(), b.p, w.ID, webhook.DeliveryFilter{}, 10_000)
	b.must(err)
	return out
}

// replay replays deliveries in batches, starting after the delivery of an event, and returns their
// number.
func (b *bed) replay(w webhook.Webhook, f webhook.DeliveryFilter, after uuid.UUID) (n int) {
	b.Helper()
	for r := (webhook.Replayed{Last: after, More: true}); r.More; n += r.Deliveries {
		var err error
		r, err = b.access.Webhooks.ReplayDeliveries(b.Context(), b.p, w.ID, f, r.Last)
		b.must(err)
	}
	return n
}

// is reports whether the webhook has n deliveries, all in one state.
func (b *bed) is(w webhook.Webhook, n int, state webhook.DeliveryState) func() bool {
	return func() bool {
		all := b.deliveries(w)
		return len(all) == n && !slices.ContainsFunc(all, func(d webhook.DeliveryLog) bool { return d.State != state })
	}
}

func (b *bed) attempts(w webhook.Webhook, event uuid.UUID) []webhook.DeliveryAttempt {
	b.Helper()
	out, err := b.access.Webhooks.ListDeliveryAttempts(b.Context(), b.p, w.ID, event)
	b.must(err)
	return out
}

// message is a request that a sink has received.
type message struct {
	header http.Header
	body   []byte
}

func (m message) id() string { return m.header.Get("Webhook-Id") }

func (m message) eventType(t testing.TB) string {
	t.Helper()
	var e struct {
		Type string `json:"event_type"`
	}
	if err := json.Unmarshal(m.body, &e); err != nil {
		t.Fatal(err)
	}
	return e.Type
}

// verify checks a message as Standard Webhooks requires of receivers. It shares no code with the
// sender.
func (m message) verify(t testing.TB, secret string) {
	t.Helper()
	if !m.verifies(secret) {
		t.Errorf("the signatures %q and %q are not those of the secret", m.header.Get("webhook-signature"),
			m.header.Get("svix-signature"))
	}
}

func (m message) verifies(secret string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	for _, name := range []string{"webhook", "svix"} {
		id, timestamp := m.header.Get(name+"-id"), m.header.Get(name+"-timestamp")
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "." + string(m.body)))
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if err != nil || id == "" || m.header.Get(name+"-signature") != want {
			return false
		}
	}
	return true
}

// sink is an endpoint.
type sink struct {
	*httptest.Server
	mu       sync.Mutex
	received []message
}

// newSink starts an endpoint that responds with answer; nil means 204.
func newSink(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, n int)) *sink {
	t.Helper()
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.received = append(s.received, message{r.Header, body})
		n := len(s.received)
		s.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(w, r, n)
	}))
	t.Cleanup(s.Close)
	return s
}

// gate blocks endpoints until it is opened or the test has ended. A longer wait would block a
// failing test.
func gate(t testing.TB) (passed <-chan struct{}, open func()) {
	ctx, open := context.WithCancel(t.Context())
	return ctx.Done(), open
}

func (s *sink) messages() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

func (s *sink) got(n int) func() bool { return func() bool { return len(s.messages()) >= n } }

func status(code int) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(code) }
}
