package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

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
	config  app.Config
	app     *app.App
	handler http.Handler // of the server
	pool    *pgxpool.Pool
	bare    *http.Server
	bareURL string
	key     string

	withTraces *app.App // of startTraced
	collector  *httptest.Server
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
	if c.dir, err = tempDir(); err != nil {
		return nil, err
	}
	c.Cluster, err = pglocal.Start(ctx, pglocal.Options{Dir: c.postgres(), Progress: os.Stderr})
	return c, err
}

func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "deviceaccess-bench-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711) // the database may run as another user
}

// postgres is the directory of the cluster's data.
func (c *cluster) postgres() string { return filepath.Join(c.dir, "postgres") }

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

// newBed starts both, with so many simulated locks.
func newBed(ctx context.Context, locks int) (_ *bed, err error) {
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
	b.config = app.Config{
		Database: app.Database{DatabaseURL: dsn, DataDir: b.cluster.dir, MaxConns: connections + app.BesidePool}, Listen: "127.0.0.1:0", Sandbox: true,
		Access:     access.Options{MostWebhooks: 1 << 30}, // thousands a second are created
		Wrap:       func(h http.Handler) http.Handler { b.handler = h; return h },
		Sandboxing: app.Sandboxing{Profiles: []string{"august"}, LocksPerProfile: locks}, Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), // as logged in production
	}
	if b.app, err = app.Start(ctx, b.config); err != nil {
		return nil, err
	}
	b.key = b.app.Sandbox.APIKey
	for { // until the locks are there
		devices, _, err := b.app.Access.ListDevices(ctx, access.Principal{WorkspaceID: b.app.Sandbox.WorkspaceID}, access.DeviceFilter{}, access.Page{Limit: locks})
		if err != nil {
			return nil, err
		}
		if len(devices) == locks {
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

func (b *bed) floor(path string, bodies ...string) target {
	return target{url: b.bareURL + path, token: b.key, bodies: bodies}
}

func (b *bed) ours(path string, bodies ...string) target {
	return target{url: b.app.URL + path, token: b.key, bodies: bodies}
}

func (b *bed) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b.stopTraced(ctx)
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
