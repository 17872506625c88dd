// Package chaos_test kills real servers in the middle of their work and checks that nothing is lost or duplicated.
package chaos_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) {
	defer removePrograms()
	storetest.Main(m, store.Migrate, store.MigrationsVersion())
}

// isLong reports whether a variable asks for the long form of a test, as make chaos does. The short form takes some
// seconds.
func isLong(setting string) bool { return os.Getenv(setting) != "" }

// number reads a numeric variable, such as CHAOS_KILLS or CHAOS_SEED.
func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is no number: %v", name, err)
	}
	return n
}

// receiver is two endpoints, one of them slow.
type receiver struct {
	*httptest.Server
	testing.TB
	mu         sync.Mutex
	secrets    map[string]string            // secrets by path, if known
	bodies     map[string][sha256.Size]byte // by path and id
	meanings   map[string][sha256.Size]byte // content independent of JSON formatting
	messages   int
	duplicates int
	unsigned   int // number of wrong messages, which are listed
	last       time.Time
	silence    time.Duration // longest time between two messages
}

// newReceiver calls begins for each request with its path and remote address, and the returned function at its end.
func newReceiver(t testing.TB, begins func(path, from string) (done func())) *receiver {
	t.Helper()
	r := &receiver{
		TB:       t,
		secrets:  map[string]string{},
		bodies:   map[string][sha256.Size]byte{},
		meanings: map[string][sha256.Size]byte{},
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		defer begins(req.URL.Path, req.RemoteAddr)()
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // cut off while it was received
		}
		r.receive(req, body)
		if req.URL.Path == "/slow/" {
			select {
			case <-req.Context().Done(): // the sender has exited
			case <-time.After(20 * time.Millisecond):
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) receive(req *http.Request, raw []byte) {
	key, body := req.URL.Path+req.Header.Get("webhook-id"), sha256.Sum256(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	if secret, known := r.secrets[req.URL.Path]; known {
		if err := wrongWith(
			secret,
			req.Header,
			raw,
		); err != nil &&
			r.unsigned < 10 { // with all, there could be as many as messages
			r.unsigned++
			r.Errorf("message %s: %v", key, err)
		}
	}
	r.messages++
	now := time.Now()
	if !r.last.IsZero() {
		r.silence = max(r.silence, now.Sub(r.last))
	}
	r.last = now
	if before, ok := r.bodies[key]; ok {
		r.duplicates++
		if before != body {
			r.Errorf("%s came a second time with other bytes", key)
		}
	}
	r.bodies[key], r.meanings[key] = body, meaning(raw)
}

func (r *receiver) since(t time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.After(t)
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages
}

// waiting returns the number of pending deliveries.
func waiting(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	if err := db.Pool.QueryRow(t.Context(), "select count(*) from deliveries where state = 'pending'").
		Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *receiver) missing(events []uuid.UUID) (keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range events {
		for _, path := range []string{"/fast/", "/slow/"} {
			if _, ok := r.bodies[path+id.String()]; !ok {
				keys = append(keys, path+id.String())
			}
		}
	}
	return keys
}

// databaseTime returns the time of the database. The transactions of earlier events may have begun before a change that
// was committed before the call; those of later events see the change.
func databaseTime(t testing.TB, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (now time.Time) {
	t.Helper()
	if err := db.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now); err != nil {
		t.Fatal(err)
	}
	return now
}

// Clients of the server and another process without deliveries write events without a pause, while the server is killed
// and restarted. Each event must arrive at both endpoints, and repeated deliveries must be identical.
func TestEvents_NotLostWhenServerIsKilled(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	kills, seed := number(t, "CHAOS_KILLS", 2), number(t, "CHAOS_SEED", 1)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	dsn := storetest.New(t)
	s, r := newServer(t, dsn), newReceiver(t, func(string, string) func() { return func() {} })
	s.start()
	db, err := store.Open(t.Context(), dsn, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for _, path := range []string{"/fast/", "/slow/"} {
		var out struct{ Webhook struct{ URL string } }
		if err := s.post(
			s.ready.URL,
			"/webhooks/create",
			map[string]any{"url": r.URL + path},
			&out,
		); err != nil ||
			out.Webhook.URL == "" {
			t.Fatalf("create a webhook: %v", err)
		}
	}
	begun := time.Now()
	var url atomic.Value
	url.Store(s.ready.URL)
	loading, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { callAPI(loading, s, &url) })
	for range 2 {
		load.Go(func() { writeEvents(loading, t, db, uuid.MustParse(s.ready.Workspace)) })
	}
	t.Cleanup(load.Wait)
	t.Cleanup(stop)

	interrupted := 0
	for n := range kills {
		if n == 0 || random.IntN(4) > 0 { // during deliveries, else while it starts to work
			enough := r.count() + 1 + random.IntN(100) // the seed decides the moment
			until(
				t,
				fmt.Sprintf("deliveries go on after %d kills", n),
				func() bool { return r.count() >= enough && waiting(t, db) > 0 },
			)
		}
		s.kill()
		if waiting(t, db) > 0 {
			interrupted++
		}
		s.start()
		url.Store(s.ready.URL)
	}
	until(t, "there are events enough", func() bool { return len(eventsOf(t, db)) >= 20*kills })
	stop()
	load.Wait()

	events := eventsOf(t, db)
	until(t, "all events have arrived at both endpoints, or no more arrive", func() bool {
		return len(r.missing(events)) == 0 || !r.since(time.Now().Add(-testenv.Timeout(2*time.Minute)))
	})
	lost := r.missing(events)
	until(t, "all is recorded", func() bool {
		var pending bool
		if err := db.Pool.QueryRow(t.Context(), "select exists (select 1 from deliveries where state = 'pending' and "+
			"event_id = any($1))", events).
			Scan(&pending); err != nil {
			t.Fatal(err)
		}
		return !pending
	})
	var attempts int
	if err := db.Pool.QueryRow(t.Context(), "select count(*) from delivery_attempts").Scan(&attempts); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Logf(`
seed %d, %d kills in %s, %d of them with deliveries waiting; the longest silence was %s
events written            %6d
deliveries owed           %6d  to two endpoints
messages received         %6d
  of these a second time  %6d  with the same identifier and bytes
attempts in the log       %6d
lost                      %6d`, seed, kills, time.Since(begun).Round(time.Second), interrupted, r.silence.Round(100*time.Millisecond),
		len(events), 2*len(events), r.messages, r.duplicates, attempts, len(lost))
	if len(lost) > 0 {
		t.Errorf("lost: %v", lost[:min(len(lost), 10)])
	}
	if interrupted == 0 {
		t.Errorf("that was no load: none of %d kills interrupted deliveries", kills)
	}
}

// callAPI creates and deletes codes on a lock until ctx ends, and retries errors.
func callAPI(ctx context.Context, s *server, url *atomic.Value) {
	var device string
	for n := 0; ctx.Err() == nil; n++ {
		at := url.Load().(string)
		var devices struct {
			Devices []struct {
				ID string `json:"device_id"`
			}
		}
		if device == "" && s.post(at, "/locks/list", map[string]any{}, &devices) == nil && len(devices.Devices) > 0 {
			device = devices.Devices[0].ID
		}
		var made struct {
			Code struct {
				ID string `json:"access_code_id"`
			} `json:"access_code"`
		}
		if s.post(
			at,
			"/access_codes/create",
			map[string]any{"device_id": device, "name": fmt.Sprint("Guest ", n)},
			&made,
		) == nil &&
			made.Code.ID != "" {
			var gone struct{}
			_ = s.post(at, "/access_codes/delete", map[string]any{"access_code_id": made.Code.ID}, &gone)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond): // do not retry in a busy loop
		}
	}
}

// writeEvents writes events like an instance without deliveries.
func writeEvents(ctx context.Context, t *testing.T, db *store.DB, workspace uuid.UUID) {
	waker, err := worker.NewWaker(db)
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		err := db.InTx(ctx, func(tx store.Tx) error {
			waits, err := tx.InsertEvent(
				ctx,
				dbsqlc.InsertEventParams{
					EventID:     uuid.Must(uuid.NewV7()),
					WorkspaceID: workspace,
					EventType:   "device.connected",
					Payload:     []byte(`{"device_id":"0190a4a2-5f3e-7c39-8d1c-3b5f1f6f0a12","note":"<&\u2028>"}`),
				},
			)
			if err != nil || !waits {
				return err
			}
			return waker.Wake(ctx, tx, domain.OutboxLane, workspace)
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("write an event: %v", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(15 * time.Millisecond):
		}
	}
}

// eventsOf returns the events that both webhooks must receive.
func eventsOf(t *testing.T, db *store.DB) (ids []uuid.UUID) {
	t.Helper()
	rows, err := db.Pool.Query(
		t.Context(),
		`select event_id from events e where created_at >= (select max(created_at) from webhooks w where w.workspace_id = e.workspace_id)`,
	)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return ids
}
