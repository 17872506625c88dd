package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

const (
	connections = 8                // of each side's pool: on two cores more are slower
	patience    = 20 * time.Second // with what is stopped
)

// bed is the server and a floor beside it on the same database.
type bed struct {
	cluster *cluster
	app     *app.App
	pool    *pgxpool.Pool
	bare    *http.Server
	bareURL string
	key     string
}

// cluster is a PostgreSQL with the settings of a server's private one.
type cluster struct {
	*pglocal.Cluster
	dir string
}

func newCluster(ctx context.Context) (c *cluster, err error) {
	c = &cluster{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.dir, err = os.MkdirTemp("", "deviceaccess-bench-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(c.dir, 0o711); err != nil { // the database may run as another user
		return nil, err
	}
	c.Cluster, err = pglocal.Start(ctx, pglocal.Options{Dir: filepath.Join(c.dir, "postgres"), Progress: os.Stderr})
	return c, err
}

func (c *cluster) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c.Cluster != nil {
		if err := c.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop the database:", err)
		}
	}
	os.RemoveAll(c.dir) //nolint:errcheck // a temporary directory
}

func newBed(ctx context.Context) (_ *bed, err error) {
	b := &bed{}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.cluster, err = newCluster(ctx); err != nil {
		return nil, err
	}
	dsn := b.cluster.DSN("postgres")
	b.app, err = app.Start(ctx, app.Config{
		Database: app.Database{DatabaseURL: dsn, DataDir: b.cluster.dir, MaxConns: connections}, Listen: "127.0.0.1:0", Sandbox: true,
		Sandboxing: app.Sandboxing{Profiles: []string{"august"}}, Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), // as logged in production
	})
	if err != nil {
		return nil, err
	}
	b.key = b.app.Sandbox.APIKey
	for { // until the one device is there
		devices, _, err := b.app.Access.ListDevices(ctx, access.Principal{WorkspaceID: b.app.Sandbox.WorkspaceID}, access.DeviceFilter{}, access.Page{Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(devices) == 1 {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return b, b.serveFloor(ctx, dsn)
}

// serveFloor runs the least that answers the same questions: chi, pgx, JSON, and a look-up of the credential.
func (b *bed) serveFloor(ctx context.Context, dsn string) error {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	cfg.MaxConns = connections
	if b.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	if _, err := b.pool.Exec(ctx, "create table bench_hooks (id uuid primary key, workspace_id uuid, url text, created_at timestamptz default now())"); err != nil {
		return err
	}
	r := chi.NewRouter()
	r.Post("/select", b.authenticated(func(ctx context.Context, workspace uuid.UUID, _ []byte) (any, error) {
		var id uuid.UUID
		var name string
		var at time.Time
		err := b.pool.QueryRow(ctx, "select device_id, name, created_at from devices where workspace_id = $1 order by created_at, device_id limit 1", workspace).Scan(&id, &name, &at)
		return map[string]any{"device_id": id, "name": name, "created_at": at}, err
	}))
	r.Post("/insert", b.authenticated(func(ctx context.Context, workspace uuid.UUID, body []byte) (any, error) {
		var in struct {
			URL string `json:"url"`
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		id := uuid.Must(uuid.NewV7())
		_, err := b.pool.Exec(ctx, "insert into bench_hooks (id, workspace_id, url) values ($1, $2, $3)", id, workspace, in.URL)
		return map[string]any{"id": id, "url": in.URL}, err
	}))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.bareURL = "http://" + listener.Addr().String()
	b.bare = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go b.bare.Serve(listener) //nolint:errcheck // ends with close
	return nil
}

func (b *bed) authenticated(f func(ctx context.Context, workspace uuid.UUID, body []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		hash := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		var workspace uuid.UUID
		err := b.pool.QueryRow(r.Context(), `select w.workspace_id from credentials c join credential_workspaces w using (credential_id)
			where c.token_hash = $1 and c.revoked_at is null`, hash[:]).Scan(&workspace)
		if err != nil {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := f(r.Context(), workspace, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(out) //nolint:errcheck // the load generator counts whole answers
	}
}

func (b *bed) floor(path, body string) target {
	return target{url: b.bareURL + path, token: b.key, body: body}
}

func (b *bed) ours(path, body string) target {
	return target{url: b.app.URL + path, token: b.key, body: body}
}

func (b *bed) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if b.bare != nil {
		b.bare.Close() //nolint:errcheck // nothing is in hand
	}
	if b.pool != nil {
		b.pool.Close()
	}
	if b.app != nil {
		if err := b.app.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop the server:", err)
		}
	}
	if b.cluster != nil {
		b.cluster.close()
	}
}
