package app_test

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// A dump during writes and deliveries contains everything that was acknowledged before it began, and reveals no secret.
// A server with the key continues from it: every code has its PIN, every webhook signs with its secret, and pending
// deliveries are sent. Later codes are found on the locks.
func TestDump_WhileServing(t *testing.T) {
	t.Parallel()
	b := newBusiness(t)
	b.begin()
	apptest.Until(t, "there is something to dump", func() bool { return b.answered() > 90 })
	apptest.Until(t, "a delivery was tried", func() bool { return b.tried() > 0 })
	release := b.endpoint.hold()
	apptest.Until(t, "a delivery is in the air", func() bool { return b.endpoint.waiting() > 0 })

	acknowledged, from := b.acknowledged(), b.answered()
	file := filepath.Join(t.TempDir(), "deviceaccess.dump")
	b.tool("pg_dump", "--format=custom", "--file="+file, b.dsn)
	if during := b.answered() - from; during == 0 {
		t.Error("nothing was acknowledged during the dump, so the test proves nothing")
	}
	later := b.answered() + 30
	apptest.Until(t, "something is acknowledged after the dump", func() bool { return b.answered() > later })
	release()
	b.comesLate()
	b.end()

	script := filepath.Join(t.TempDir(), "deviceaccess.sql")
	b.tool("pg_restore", "--file="+script, file)
	text, err := os.ReadFile(script)
	b.must(err)
	b.secrets.Search(t, map[string][]byte{"the dump": text})

	b.dsn = storetest.New(t)
	b.exec("drop schema public cascade; create schema public")
	b.tool("pg_restore", "--exit-on-error", "--single-transaction", "--no-owner", "--dbname="+b.dsn, file)
	b.refersToWhatIsThere()
	due := b.due()
	b.endpoint.forget()
	b.serveAgain()
	b.judge(acknowledged, due)
}

// serveAgain starts a server on the restored database with the same key. The locks have changed since the dump. The
// read lag is short, so that the server soon knows which writes arrived.
func (b *business) serveAgain() {
	b.Helper()
	a, err := app.Start(b.Context(), app.Config{
		Database: app.Database{
			DatabaseURL: b.dsn,
			DataDir:     b.TempDir(),
			MasterKey:   base64.StdEncoding.EncodeToString(b.master),
			MaxConns:    10,
		},
		Listen:     "127.0.0.1:0",
		Sandboxing: app.Sandboxing{URL: b.cloud, Speed: 50},
		Work: worker.Options{
			Workers:  20,
			Sweep:    200 * time.Millisecond,
			LeaseTTL: 5 * time.Second,
		},
		Access:   access.Options{ConfirmTimeout: 5 * time.Second, ReadLag: time.Second},
		Webhooks: webhook.Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Log:      slog.New(slog.DiscardHandler),
	})
	b.must(err)
	stopAtEnd(b.T, a.Stop)
	b.url = a.URL
}

// refersToWhatIsThere finds rows that refer to missing rows, also without a foreign key.
func (b *business) refersToWhatIsThere() {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), b.dsn)
	b.must(err)
	defer conn.Close(b.Context())
	for what, count := range map[string]string{
		"deliveries without their event": "select count(*) from deliveries d where not exists (select from " +
			"events e where e.event_id = d.event_id)",
		"tries without their delivery": "select count(*) from delivery_attempts a where not exists (select " +
			"from deliveries d where (d.webhook_id, d.event_id) = (a.webhook_id, a.event_id))",
		"codes without an event": "select count(*) from access_codes c where is_managed and not exists " +
			"(select from events e where e.access_code_id = c.access_code_id and event_type = 'access_code.created')",
		"deleted codes that never existed": "select count(*) from events e where event_type = " +
			"'access_code.deleted' and not exists (select from events f where f.access_code_id = e.access_code_id and " +
			"f.event_type = 'access_code.created')",
		"events of locks that there are not": "select count(*) from events e where device_id is not null and not " +
			"exists (select from devices d where d.device_id = e.device_id)",
		"events fanned out, and nothing of them": "select count(*) from events e join webhooks w on '*' = " +
			"any(w.event_types) and w.created_at < e.created_at where fanned_out_at is not null and not exists (select from " +
			"deliveries d where d.event_id = e.event_id and d.webhook_id = w.webhook_id)",
	} {
		var n int
		b.must(conn.QueryRow(b.Context(), count).Scan(&n))
		if n > 0 {
			b.Errorf("%d %s", n, what)
		}
	}
	for _, table := range []string{
		"access_codes",
		"webhooks",
		"events",
		"deliveries",
		"delivery_attempts",
		"action_attempts",
	} {
		var n int
		if b.must(conn.QueryRow(b.Context(), "select count(*) from "+table).Scan(&n)); n == 0 {
			b.Errorf("%s is empty, so the test proves nothing about it", table)
		}
	}
}

// tried returns the number of recorded delivery attempts.
func (b *business) tried() (n int) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), b.dsn)
	b.must(err)
	defer conn.Close(b.Context())
	b.must(conn.QueryRow(b.Context(), "select count(*) from delivery_attempts").Scan(&n))
	return n
}

// due returns the events of the restored database whose delivery to the main endpoint is pending.
func (b *business) due() (events []string) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), b.dsn)
	b.must(err)
	defer conn.Close(b.Context())
	rows, err := conn.Query(
		b.Context(),
		`select event_id::text from deliveries where state = 'pending' and webhook_id = $1
		union select event_id::text from events where fanned_out_at is null and created_at > (select created_at from webhooks where webhook_id = $1)`,
		b.main,
	)
	b.must(err)
	events, err = pgx.CollectRows(rows, pgx.RowTo[string])
	b.must(err)
	if len(events) == 0 {
		b.Error("nothing was pending at the dump, so the test proves nothing")
	}
	return events
}

// newBusiness starts a server whose locks are in a separate cloud, so that they outlive the server.
func newBusiness(t *testing.T) *business {
	t.Helper()
	b := &business{
		old:      &old{T: t},
		endpoint: &endpoint{},
		codes:    map[string]kept{},
		hooks:    map[string]string{},
		paths:    map[string]string{},
		gone:     map[string]bool{},
	}
	b.secrets.Random = true
	receiver := httptest.NewServer(b.endpoint)
	t.Cleanup(receiver.Close)
	b.receiver = receiver.URL
	srv := apptest.Start(t, apptest.WithProfiles("yale"), apptest.WithLocks(3), func(c *app.Config) {
		b.dsn = c.DatabaseURL
		if os.Getenv("INSTANCES") == "" { // several instances have a separate cloud anyway
			cloud, err := app.StartCloud(
				t.Context(),
				app.CloudConfig{
					Database:   c.Database,
					Listen:     "127.0.0.1:0",
					Sandboxing: c.Sandboxing,
					Wrap:       c.Wrap,
					Log:        c.Log,
				},
			)
			b.must(err)
			stopAtEnd(t, cloud.Stop)
			c.Sandboxing.URL = cloud.URL
		}
		inner := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler { return b.secrets.Watch(inner(next)) }
		key, err := encryption.ReadOrCreateFile(filepath.Join(c.DataDir, "master.key")) // the server uses it
		b.must(err)
		b.master = key[0]
	})
	b.secrets.Learn("master key", string(b.master))
	b.url, b.cloud, b.token, b.stop = srv.URL, strings.TrimSuffix(
		srv.CloudURL(),
		"/sandbox/cloud",
	), srv.APIKey, srv.Stop
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	b.post(b.url, "/devices/list", "{}", &devices)
	for _, d := range devices.Devices {
		b.devices = append(b.devices, d.ID)
	}
	b.main = b.webhook("/main", "*")
	return b
}
