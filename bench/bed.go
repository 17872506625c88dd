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
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

const (
	// of each side's pool: more are slower on two cores.
	connections = 8
	stopTimeout = 20 * time.Second // for stopping servers
	lockProfile = "august"         // of the simulated locks
)

// bed is the server, and a floor on the same database.
type bed struct {
	cluster *cluster
	config  app.Config
	app     *app.App
	handler http.Handler // the server's handler
	pool    *pgxpool.Pool
	bare    *http.Server
	bareURL string
	key     string

	withTraces *app.App // set by startTraced
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

// postgres returns the directory of the cluster's data.
func (c *cluster) postgres() string { return filepath.Join(c.dir, "postgres") }

func (c *cluster) close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if c.Cluster != nil {
		if err := c.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop the database:", err)
		}
	}
	os.RemoveAll(c.dir) //nolint:errcheck // a temporary directory
}

// newBed starts both sides, with this number of simulated locks. change changes the server's configuration.
func newBed(ctx context.Context, locks int, change ...func(*app.Config)) (_ *bed, err error) {
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
		Database: app.Database{DatabaseURL: dsn, DataDir: b.cluster.dir, MaxConns: connections + app.ConnsOutsidePool},
		Listen:   "127.0.0.1:0",
		Sandbox:  true,
		Access:   access.Options{MaxWebhooks: 1 << 30}, // thousands are created per second
		Wrap:     func(h http.Handler) http.Handler { b.handler = h; return h },
		// encodes log records as in production
		Sandboxing: app.Sandboxing{Profiles: []string{lockProfile}, LocksPerProfile: locks},
		Log:        slog.New(slog.NewJSONHandler(io.Discard, nil)),
	}
	for _, c := range change {
		c(&b.config)
	}
	if b.app, err = app.Start(ctx, b.config); err != nil {
		return nil, err
	}
	b.key = b.app.Sandbox.APIKey
	for { // wait for the locks
		devices, _, err := b.app.Access.Devices.ListDevices(
			ctx,
			domain.Principal{WorkspaceID: b.app.Sandbox.WorkspaceID},
			device.Filter{},
			domain.Page{Limit: locks},
		)
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
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	b.stopTraced(ctx)
	if b.bare != nil {
		b.bare.Close() //nolint:errcheck // no request is running
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
