package rest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// health requests the health without a credential, like a load balancer.
func health(t *testing.T, url string) (status int, parts map[string]api.ServiceHealth) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	var out api.HealthResponse
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	parts = map[string]api.ServiceHealth{}
	for _, p := range out.ServiceHealthStatuses {
		parts[p.Service] = p
	}
	if out.Ok != (res.StatusCode == http.StatusOK) {
		t.Errorf("status %d with %+v", res.StatusCode, out)
	}
	return res.StatusCode, parts
}

// Each part fails, is reported, and recovers.
func TestHealthReportsEachPart(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.DatabaseURL = dsn
		c.Health = app.HealthOptions{
			Stalled:        3 * time.Second,
			LateDevices:    300 * time.Millisecond,
			LateDeliveries: 300 * time.Millisecond,
			DiskFull:       time.Second,
		}
	})
	admin, name := elsewhere(t, dsn)
	sql := func(text string, args ...any) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	apart := func() { // ends the connections of the server, which opens new ones
		sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", strings.Trim(name, `"`))
	}
	inside := func(do func(ctx context.Context, conn *pgx.Conn)) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		do(t.Context(), conn)
	}
	run := func(texts ...string) func() {
		return func() {
			t.Helper()
			inside(func(ctx context.Context, conn *pgx.Conn) {
				for _, text := range texts {
					if _, err := conn.Exec(ctx, text); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
				}
			})
		}
	}
	var release func()
	locked := func(text string) func() { // until release is called
		return func() {
			ready, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
			release = func() { close(end); <-ended }
			go func() {
				defer close(ended)
				conn, err := pgx.Connect(context.WithoutCancel(t.Context()), dsn)
				if err != nil {
					t.Error(err)
					close(ready)
					return
				}
				defer conn.Close(context.WithoutCancel(t.Context()))
				if _, err := conn.Exec(context.WithoutCancel(t.Context()), "begin; "+text); err != nil {
					t.Error(err)
				}
				close(ready)
				<-end
			}()
			<-ready
		}
	}
	unlock := func() { release() }
	// blocked prevents work on due rows of a table, after running work has ended.
	blocked := func(kind, table string) func() {
		return func() {
			t.Helper()
			run("alter table leases add constraint blocked check (key not like '" + kind + ":%') not valid")()
			apptest.Until(t, "no worker is busy with any "+kind, func() (free bool) {
				inside(func(ctx context.Context, conn *pgx.Conn) {
					if err := conn.QueryRow(ctx, "select not exists (select from leases where key like $1 and held_until > now())", kind+":%").
						Scan(&free); err != nil {
						t.Fatal(err)
					}
				})
				return free
			})
			run("update " + table + " set due_at = now()")()
		}
	}
	hook := must(t, s, "/webhooks/create", "webhook", in{"url": "https://127.0.0.1:1/x", "event_types": []string{"device.disconnected"}})["webhook_id"].(string)
	device := s.Device(t, "august")
	s.AccessSystem(t)
	change := func() {
		t.Helper()
		if status, _ := call(
			t,
			s,
			http.MethodPost,
			"/devices/update",
			in{"device_id": device, "name": "Changed"},
		); status != http.StatusServiceUnavailable {
			t.Errorf("a change is answered with %d", status)
		}
	}
	repeated := map[string]func(){"a disk without a page more": change} // faults whose effect expires
	for _, c := range []struct {
		name       string
		part       string
		want       api.ServiceHealthStatus
		ill, cured func()
	}{
		{
			"read-only", "database", api.Down, func() { sql("alter database " + name + " set default_transaction_read_only = on"); apart() },
			func() { sql("alter database " + name + " reset default_transaction_read_only"); apart() },
		},
		{"gone", "database", api.Down, func() { sql("alter database " + name + " allow_connections false"); apart() }, func() { sql("alter database " + name + " allow_connections true") }},
		{"refuses writes", "database", api.Down, run("alter table leases add constraint full_disk check (key <> 'health') not valid"), run("alter table leases drop constraint full_disk")},
		{"a disk without a page more", "database", api.Down, func() {
			run("create function full_disk() returns trigger language plpgsql as $$ begin raise 'could not extend file' using errcode = 'disk_full'; end $$",
				"create trigger full_disk before insert on audit_log execute function full_disk()")()
		}, run("drop trigger full_disk on audit_log")},
		{
			"a data key that no master key of it opens", "server", api.Down,
			run(`insert into data_keys (key_id, wrapped, is_current) values (250, decode(repeat('5a', 61), 'hex'), false)`), run("delete from data_keys where key_id = 250"),
		},
		{"an older backup", "database", api.Down, run("update goose_db_version set is_applied = false where version_id = (select max(version_id) from goose_db_version)"), run("update goose_db_version set is_applied = true")},
		{"the work stands still", "work", api.Down, locked("lock table acs_systems in access exclusive mode"), unlock},
		{
			"an overdue device", "devices", api.Degraded,
			blocked("device", "devices"), run("alter table leases drop constraint blocked"),
		},
		{
			"an overdue account", "devices", api.Degraded,
			blocked("account", "connected_accounts"), run("alter table leases drop constraint blocked"),
		},
		{
			"an overdue access system", "devices", api.Degraded,
			blocked("acs_system", "acs_systems"), run("alter table leases drop constraint blocked"),
		},
		{"undelivered events", "deliveries", api.Degraded, func() {
			locked("select from webhooks where webhook_id = '" + hook + "' for update")()
			if status, out := call(t, s, http.MethodPost, "/devices/simulate/disconnect", in{"device_id": device}); status != http.StatusOK {
				t.Errorf("disconnect the device: %v", out)
			}
		}, unlock},
	} {
		apptest.Until(t, "all is well before "+c.name, func() bool {
			status, parts := health(t, s.URL)
			for _, p := range parts {
				if p.Status != api.Healthy {
					return false
				}
			}
			return status == http.StatusOK && len(parts) == 6
		})
		c.ill()
		apptest.Until(t, c.name+" is told", func() bool {
			if repeat := repeated[c.name]; repeat != nil {
				repeat()
			}
			status, parts := health(t, s.URL)
			want := http.StatusOK
			if c.want == api.Down {
				want = http.StatusServiceUnavailable
			}
			return parts[c.part].Status == c.want && status == want
		})
		c.cured()
		apptest.Until(t, c.name+" is over", func() bool {
			_, parts := health(t, s.URL)
			return parts[c.part].Status == api.Healthy
		})
	}
}

// A clock that may be wrong deletes nothing, which does not keep the server from answering.
func TestHealth_ReportsWrongClock(t *testing.T) {
	t.Parallel()
	ahead := func() time.Time { return time.Now().Add(time.Hour) }
	s := apptest.Start(t, apptest.WithAccess(func(o *access.Options) { o.Now = ahead }))
	apptest.Until(t, "the clocks differ", func() bool {
		status, parts := health(t, s.URL)
		return status == http.StatusOK && parts["retention"].Status == api.Degraded &&
			strings.Contains(parts["retention"].Description, "differs")
	})
}

// The log contains the cause at the default level.
func TestHealthLogsCause(t *testing.T) {
	t.Parallel()
	dsn, path := storetest.New(t), filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.DatabaseURL, c.Log, c.Health = dsn, slog.New(
			slog.NewTextHandler(f, nil),
		), app.HealthOptions{
			LateDevices: 300 * time.Millisecond,
		}
	})
	s.Device(t, "august")
	admin, name := elsewhere(t, dsn)
	run := func(conn *pgx.Conn, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := conn.Exec(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
	says := func(part, cause string) {
		t.Helper()
		line := regexp.MustCompile(
			`(?m)^.*level=WARN msg="health has changed" part=` + part + ` .*error=".*` + cause + `.*"$`,
		)
		apptest.Until(t, "the log says why "+part+" are not well", func() bool {
			health(t, s.URL)
			log, err := os.ReadFile(path)
			return err == nil && line.Match(log)
		})
	}
	inside, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	run(inside, "alter table leases add constraint blocked check (key not like 'device:%') not valid")
	apptest.Until(t, "no worker is busy with a device", func() (free bool) { // running work would mark it as done
		if err := inside.QueryRow(t.Context(), "select not exists (select from leases where key like 'device:%' and held_until > now())").
			Scan(&free); err != nil {
			t.Fatal(err)
		}
		return free
	})
	run(inside, "update devices set due_at = now()")
	apptest.Until(t, "devices are late", func() bool {
		_, parts := health(t, s.URL)
		return parts["devices"].Status == api.Degraded
	})
	run(inside, "alter table deliveries rename to hidden") // the health becomes unknown
	says("devices", `relation \\"deliveries\\" does not exist`)
	says("deliveries", `relation \\"deliveries\\" does not exist`)
	run(inside, "alter table hidden rename to deliveries")
	if err := inside.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(
		admin,
		"alter database "+name+" allow_connections false",
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = '"+strings.Trim(name, `"`)+"'",
	)
	says("database", "is not currently accepting connections")
	run(admin, "alter database "+name+" allow_connections true")
}

// The health changes before the server rejects requests.
func TestHealth_Stopping(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) { c.ShutdownDelay = time.Minute })
	if status, _ := health(t, s.App.URL); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	stopping, cut := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- s.App.Stop(stopping) }()
	apptest.Until(t, "the server says that it stops", func() bool {
		status, parts := health(t, s.App.URL)
		return status == http.StatusServiceUnavailable && parts["server"].Status == api.Down
	})
	if status, _ := call(
		t,
		&apptest.Server{URL: s.App.URL, APIKey: s.APIKey},
		http.MethodPost,
		"/devices/list",
		in{},
	); status != http.StatusOK {
		t.Errorf("meanwhile requests are answered with %d", status)
	}
	if res := s.Send(t, http.MethodPost, "/devices/list", apptest.Bearer(s.APIKey), "{}", nil); !res.Close {
		t.Error("a kept connection is not closed, so the client cannot move to another server")
	}
	cut()
	<-stopped
	if status, _ := health(t, s.App.URL); status != 0 {
		t.Errorf("after the stop the server responds with %d", status)
	}
}

// Frequent health requests cost the database no more than one request per second.
func TestHealthIsCached(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) { c.DatabaseURL = dsn })
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	begin := time.Now()
	for range 300 {
		if status, _ := health(t, s.App.URL); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	var asked int
	if err := conn.QueryRow(t.Context(), "select coalesce(max(fence), 0) from leases where key = 'health'").
		Scan(&asked); err != nil {
		t.Fatal(err)
	}
	if most := int(time.Since(begin)/time.Second) + 1; asked < 1 || asked > most {
		t.Errorf("300 questions were passed on to the database %d times, want at most %d", asked, most)
	}
}

// elsewhere connects to another database of the same server, and returns the name of the database of dsn.
func elsewhere(t *testing.T, dsn string) (*pgx.Conn, string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := cfg.Database
	cfg.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn, pgx.Identifier{name}.Sanitize()
}
