package app_test

import (
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// After a failover, connections to the former primary stay open and are read-only, and new connections reach the new primary.
// Requests, health, and the job queue move there without a restart.
func TestFailover_NeedsNoRestart(t *testing.T) {
	t.Parallel()
	dsn := storetest.NewOnCluster(t)
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.DatabaseURL = dsn + "&target_session_attrs=read-write&application_name=moved"
	})
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	t.Cleanup(func() { conn.Close(t.Context()) })
	connected := func(condition string, args ...any) (pids []int32) {
		t.Helper()
		query := "select pid from pg_stat_activity where application_name = 'moved' and " + condition
		rows, err := conn.Query(t.Context(), query, args...)
		if err == nil {
			pids, err = pgx.CollectRows(rows, pgx.RowTo[int32])
		}
		if err != nil {
			t.Fatal(err)
		}
		return pids
	}
	const listens = "query ilike 'listen %'"
	apptest.Until(t, "both queues listen", func() bool { return len(connected(listens)) == 2 })
	former := connected("true")
	name := pgx.Identifier{conn.Config().Database}.Sanitize()
	for _, statement := range []string{
		"alter database " + name + " set default_transaction_read_only = off", // of new connections
		"alter system set default_transaction_read_only = on",
		"select pg_reload_conf()",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// The transaction of a request is retried, so the request that meets a former connection succeeds, too.
	for range 5 {
		status := s.Post(t, "/webhooks/create", map[string]any{"url": "https://hooks.example/x"}, nil)
		if status != http.StatusOK {
			t.Errorf("create a webhook: %d", status)
		}
	}
	apptest.Until(t, "the former connections are closed, and both queues listen", func() bool {
		return len(connected("pid = any($1)", former)) == 0 && len(connected(listens)) == 2
	})
	apptest.Until(t, "the server is healthy", func() bool {
		res := s.Send(t, http.MethodGet, "/health", nil, "", nil)
		return res.StatusCode == http.StatusOK
	})
}
