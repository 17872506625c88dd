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

// Whoever runs several servers on one database adds up what each may take of its connections.
func TestAServerHasNoMoreConnectionsThanItIsGiven(t *testing.T) {
	t.Parallel()
	const given = 8
	servers, _ := strconv.Atoi(os.Getenv("INSTANCES"))
	servers = max(servers, 1)
	var dsn string
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		dsn = c.DatabaseURL
		c.MaxConns = given
		c.DatabaseURL += "&lock_timeout=0&application_name=measured" // what stands at the gate is not run again
	})
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	t.Cleanup(func() { conn.Close(t.Context()) })
	has := func(which string) (n int) {
		t.Helper()
		err := conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'measured' and "+which).Scan(&n)
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
			if status := s.Post(t, "/webhooks/create", map[string]any{"url": "https://hooks.example/x"}, nil); status != http.StatusOK {
				t.Errorf("create: %d", status)
			}
		})
	}
	defer gate.Open()
	gate.Await(given-3, "insert into webhooks")
	for range 50 { // should others still be connecting
		if n := has("true") - 1; n > given*servers { // the gate has one that is named so, too
			t.Fatalf("%d servers have %d connections, and were given %d each", servers, n, given)
		}
	}
}
