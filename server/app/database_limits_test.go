package app_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// limitedTo returns the URL of a database for a role that owns it and may open so many connections.
func limitedTo(t *testing.T, connections string) (dsn string) {
	t.Helper()
	dsn = storetest.New(t)
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	defer conn.Close(t.Context())
	role := "limited_" + connections
	for _, statement := range []string{
		"drop schema public cascade",
		"drop role if exists " + role,
		"create role " + role + " login password '" + role + "' connection limit " + connections,
		"create schema public authorization " + role,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return storetest.AsRole(t, dsn, role, role)
}

// A server uses fewer connections than --database-connections if the database accepts fewer, and names the limit.
func TestStart_FitsConnectionsToLimit(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.DatabaseURL, c.MaxConns = limitedTo(t, "12"), 19
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	var asked sync.WaitGroup
	for range 40 { // 12 connections of the role would not be enough for 19
		asked.Go(func() {
			status := s.Post(t, "/webhooks/create", map[string]any{"url": "https://hooks.example/x"}, nil)
			if status != http.StatusOK {
				t.Errorf("create a webhook: %d", status)
			}
		})
	}
	asked.Wait()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--database-connections", "connections=9", "limit=12", "alter role limited_12"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

// A server does not start with too few connections to work.
func TestStart_RejectsTooFewConnections(t *testing.T) {
	t.Parallel()
	_, err := app.Start(t.Context(), app.Config{
		Database: app.Database{DatabaseURL: limitedTo(t, "6"), DataDir: t.TempDir(), MaxConns: 19},
		Listen:   "127.0.0.1:0",
	})
	const want = "the database accepts 6 connections, and a server needs at least 7: raise the limit of the role " +
		"(alter role limited_6 connection limit …)"
	if err == nil || err.Error() != want {
		t.Errorf("the start ends with %v, want %s", err, want)
	}
}
