package app_test

import (
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A server never has more database connections than its limit, so that operators can add up those of several servers.
func TestMaxConns_IsNotExceeded(t *testing.T) {
	t.Parallel()
	const given = 8
	servers, _ := strconv.Atoi(os.Getenv("INSTANCES"))
	servers = max(servers, 1)
	var dsn string
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		dsn = c.DatabaseURL
		c.MaxConns = given
		c.DatabaseURL += "&lock_timeout=0&application_name=measured" // a statement that waits at the gate must not be retried
	})
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	t.Cleanup(func() { conn.Close(t.Context()) })
	has := func(which string) (n int) {
		t.Helper()
		err := conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and "+
			"application_name = 'measured' and "+which).
			Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	apptest.Until(t, "the queues listen", func() bool { return has("query ilike 'listen%'") == 2*servers })
	gate := s.Gate(t, "before insert", "webhooks", "true")
	var asked sync.WaitGroup
	defer asked.Wait()
	for range 2 * given {
		asked.Go(func() {
			if status := s.Post(
				t,
				"/webhooks/create",
				map[string]any{"url": "https://hooks.example/x"},
				nil,
			); status != http.StatusOK {
				t.Errorf("create: %d", status)
			}
		})
	}
	defer gate.Open()
	gate.Await(given-3, "insert into webhooks")
	for range 50 { // others may still be connecting
		if n := has("true") - 1; n > given*servers { // the gate's own connection has this name, too
			t.Fatalf("%d servers have %d connections, with a limit of %d each", servers, n, given)
		}
	}
}
