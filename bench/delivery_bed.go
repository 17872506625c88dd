package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

const (
	// default pool size of the server; the floor uses the same.
	deliveryConnections = 16
	eventType           = "device.connected"
	stuckType           = "device.added" // only for the hanging endpoints
)

var payload = []byte(
	`{"connected_account_id":"0190a4a2-5f3e-7c39-8d1c-3b5f1f6f0a11","device_id":"0190a4a2-5f3e-7c39-8d1c-3b5f1f6f0a12"}`,
)

// deliveryBed is the delivery part of the server, a receiver, and the floor's tables in the same database.
type deliveryBed struct {
	cluster        *cluster
	db             *store.DB
	waker          *worker.Waker
	access         *access.Services
	deliverer      *webhook.Deliverer
	engine         *worker.Engine
	workspace      uuid.UUID
	healthyWebhook uuid.UUID // the webhook of the healthy endpoint
	receiver       *receiver
	client         *http.Client // the floor's client
}

func newDeliveryBed(ctx context.Context) (_ *deliveryBed, err error) {
	b := &deliveryBed{receiver: newReceiver()}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: publisherCount}}
	if b.cluster, err = newCluster(ctx); err != nil {
		return nil, err
	}
	dsn := b.cluster.DSN("postgres")
	if err := store.Migrate(ctx, dsn); err != nil {
		return nil, err
	}
	if b.db, err = store.Open(ctx, dsn, deliveryConnections); err != nil {
		return nil, err
	}
	if _, err := b.db.Pool.Exec(
		ctx,
		`create table bench_events (id uuid primary key, type text not null, payload jsonb not null, created_at timestamptz default now());
		create table bench_log (event_id uuid primary key references bench_events, status integer, latency_us bigint, at timestamptz default now())`,
	); err != nil {
		return nil, err
	}
	if b.waker, err = worker.NewWaker(b.db); err != nil {
		return nil, err
	}
	keys, err := encryption.New(encryption.NewMaster())
	if err != nil {
		return nil, err
	}
	b.access = access.New(b.db, keys, b.waker, access.Options{})
	w, err := b.access.Accounts.CreateWorkspace(ctx, "bench", "", true)
	if err != nil {
		return nil, err
	}
	b.workspace = w.ID
	prompt, err := b.access.Webhooks.CreateWebhook(ctx, domain.Principal{WorkspaceID: w.ID}, b.receiver.URL+
		"/prompt", []string{eventType})
	if err != nil {
		return nil, err
	}
	b.healthyWebhook = prompt.ID
	b.deliverer = webhook.New(b.access.Webhooks, webhook.Options{
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if b.engine, err = worker.NewEngine(b.waker, worker.Options{Workers: 2000}, b.deliverer.Lanes()...); err != nil {
		return nil, err
	}
	return b, b.engine.Start(ctx)
}

// publish writes an event in a transaction like the operations of the domain.
func (b *deliveryBed) publish(ctx context.Context) error { return b.emit(ctx, eventType) }

func (b *deliveryBed) emit(ctx context.Context, eventType string) error {
	return b.db.InTx(ctx, func(tx store.Tx) error {
		waits, err := tx.InsertEvent(ctx, dbsqlc.InsertEventParams{
			EventID:     uuid.Must(uuid.NewV7()),
			WorkspaceID: b.workspace,
			EventType:   eventType,
			Payload:     payload,
		})
		if err != nil || !waits {
			return err
		}
		return b.waker.Wake(ctx, tx, domain.OutboxLane, b.workspace)
	})
}

// floorDelivery is the floor: it does the work of publish and of the workers directly, without any precautions.
func (b *deliveryBed) floorDelivery(ctx context.Context) error {
	id := uuid.Must(uuid.NewV7())
	if _, err := b.db.Pool.Exec(
		ctx,
		"insert into bench_events (id, type, payload) values ($1, $2, $3)",
		id,
		eventType,
		payload,
	); err != nil {
		return err
	}
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.receiver.URL+"/prompt", bytes.NewReader(payload))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	_, err = b.db.Pool.Exec(
		ctx,
		"insert into bench_log (event_id, status, latency_us) values ($1, $2, $3)",
		id,
		res.StatusCode,
		time.Since(begin).Microseconds(),
	)
	return err
}

// hang creates endpoints that do not respond, with deliveries, and returns when all are being tried.
func (b *deliveryBed) hang(ctx context.Context) error {
	for range hangingEndpoints {
		if _, err := b.access.Webhooks.CreateWebhook(ctx, domain.Principal{WorkspaceID: b.workspace}, b.receiver.URL+
			"/stuck", []string{stuckType}); err != nil {
			return err
		}
	}
	for range queuedDeliveries {
		if err := b.emit(ctx, stuckType); err != nil {
			return err
		}
	}
	return poll(
		ctx,
		"all of them hang",
		func() (bool, error) { return b.receiver.stuck.Load() >= hangingEndpoints, nil },
	)
}

// untilLogged waits until all deliveries to the healthy endpoint are recorded.
func (b *deliveryBed) untilLogged(ctx context.Context) error {
	return poll(ctx, "all is logged", func() (idle bool, err error) {
		err = b.db.Pool.QueryRow(
			ctx,
			`select not exists (select 1 from deliveries where webhook_id = $1 and state = 'pending')`,
			b.healthyWebhook,
		).Scan(
			&idle,
		)
		return idle, err
	})
}

func poll(ctx context.Context, what string, ok func() (bool, error)) error {
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if done, err := ok(); done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timeout waiting: %s", what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (b *deliveryBed) close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	b.receiver.close()
	if b.engine != nil {
		b.deliverer.Quiesce()
		if err := b.engine.Stop(ctx); err != nil {
			fmt.Println("bench: stop the deliveries:", err)
		}
	}
	if b.db != nil {
		b.db.Close()
	}
	if b.cluster != nil {
		b.cluster.close()
	}
}

// receiver serves all endpoints. It counts the messages to the healthy one.
type receiver struct {
	*httptest.Server
	count, stuck atomic.Int64
	mu           sync.Mutex
	last         time.Time     // when count last grew
	grown        chan struct{} // signals growth
	released     chan struct{}
}

func newReceiver() *receiver {
	r := &receiver{grown: make(chan struct{}, 1), released: make(chan struct{})}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/stuck" {
			r.stuck.Add(1)
			select {
			case <-r.released:
			case <-req.Context().Done():
			}
			return
		}
		io.Copy(io.Discard, req.Body) //nolint:errcheck // the content does not matter
		r.mu.Lock()
		r.last = time.Now()
		r.mu.Unlock()
		r.count.Add(1)
		select {
		case r.grown <- struct{}{}:
		default:
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	return r
}

// awaitCount waits for n messages in total, and returns the time of the last one.
func (r *receiver) awaitCount(ctx context.Context, n int64) (time.Time, error) {
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for r.count.Load() < n {
		select {
		case <-r.grown:
		case <-deadline.C:
			return time.Time{}, fmt.Errorf("%d messages of %d have arrived", r.count.Load(), n)
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, nil
}

func (r *receiver) close() {
	close(r.released)
	r.CloseClientConnections()
	r.Close()
}
