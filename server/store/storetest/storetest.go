// Package storetest gives every test an empty, migrated PostgreSQL database of its own in about twenty milliseconds.
//
// A package that uses it defines
//
//	func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.Version) }
//
// and each of its tests calls New. The server is private to the test process, is started by the first call
// of New, and works in memory where it can. What initdb and the migrations have made is kept in the user's
// cache, so that they run once on a machine and not once in every package.
//
// It must not know what is in the database: the migrations are a parameter.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Migrate brings the empty database at dsn to the schema under test.
type Migrate func(ctx context.Context, dsn string) error

const (
	startTimeout = 5 * time.Minute // the first start on a machine may have to fetch PostgreSQL
	dropTimeout  = 3 * time.Minute
)

var (
	// clusterOnce and newCluster are set by Main.
	clusterOnce func() (*cluster, error)
	newCluster  func(settings map[string]string) (*cluster, error)

	databases atomic.Int64
)

// Main runs the tests of a package whose tests call New, and stops the server afterwards. It is called by
// TestMain as the last thing it does. Servers that the tests start do not obey what the shell has for another one.
// Version names what migrate makes in a cache that all packages and all branches share, so it has to change with it: a hash
// of the migrations, and not a number counted by hand.
func Main(m *testing.M, migrate Migrate, version string) {
	newCluster = func(settings map[string]string) (*cluster, error) {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(startTimeout))
		defer cancel()
		cache, err := cacheDir()
		if err != nil {
			return nil, err
		}
		return startCluster(ctx, scratchRoot(), template{cache: cache, migrate: migrate, version: version}, settings)
	}
	var started *cluster
	clusterOnce = sync.OnceValues(func() (_ *cluster, err error) {
		started, err = newCluster(nil)
		return started, err
	})
	testenv.Unset()
	m.Run() // its result becomes the process's when TestMain returns
	if started == nil {
		return
	}
	if err := started.stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "storetest:", err)
	}
}

// New returns the URL of a fresh database, which is dropped after the test with whatever is still connected
// to it. Where there is no PostgreSQL and none can be fetched the test is treated as by Missing, and as by NeedPostgres when
// the run is to have none.
//
// The server's goroutines begin with the first call: a test that looks for leaked goroutines takes its
// goleak.IgnoreCurrent after New.
func New(t testing.TB) (dsn string) {
	t.Helper()
	NeedPostgres(t)
	if clusterOnce == nil {
		t.Fatal("storetest.New: the package's TestMain has to call storetest.Main")
	}
	c := started(t, clusterOnce)
	name := databaseName(t.Name())
	if err := c.create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(dropTimeout))
		defer cancel()
		if err := c.drop(ctx, name); err != nil {
			t.Error(err)
		}
	})
	return c.server.DSN(name)
}

// NewOnCluster is New on a PostgreSQL of its own, for tests that change settings of the whole PostgreSQL.
func NewOnCluster(t testing.TB) (dsn string) {
	t.Helper()
	c, name := newOnCluster(t, nil)
	return c.server.DSN(name)
}

// newOnCluster starts a cluster with settings, which may be nil, and creates a database on it.
func newOnCluster(t testing.TB, settings map[string]string) (_ *cluster, name string) {
	t.Helper()
	NeedPostgres(t)
	if newCluster == nil {
		t.Fatal("storetest.NewOnCluster: the package's TestMain has to call storetest.Main")
	}
	c := started(t, func() (*cluster, error) { return newCluster(settings) })
	t.Cleanup(func() {
		if err := c.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	name = databaseName(t.Name())
	if err := c.create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return c, name
}

// AsRole returns the URL of a database for another role.
func AsRole(t testing.TB, dsn, role, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the URL of the test's database is malformed") // the error quotes the password
	}
	u.User = url.UserPassword(role, password)
	return u.String()
}

// started returns a cluster that start starts.
func started(t testing.TB, start func() (*cluster, error)) *cluster {
	t.Helper()
	c, err := start()
	if errors.Is(err, pglocal.ErrNoBinaries) {
		Missing(t, "%v", err)
	}
	if err != nil {
		t.Fatalf("start a database for the tests: %v", err)
	}
	return c
}

// NeedPostgres skips the test with -short, whatever REQUIRE_ALL says. New does so. A test that starts PostgreSQL or a server of
// the product in another way calls it first.
func NeedPostgres(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs PostgreSQL, and -short is set")
	}
}

// Missing skips the test because something it needs is not on this machine, and says what. Where all has to
// be there, as in CI with REQUIRE_ALL=1, the test fails instead.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv("REQUIRE_ALL") == "1" {
		t.Fatalf("REQUIRE_ALL=1, and this is missing: %s", reason)
	}
	t.Skipf("skipped, this is missing: %s", reason)
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName is unique, and shows in PostgreSQL's views which test it belongs to. Names have 63 bytes.
func databaseName(test string) string {
	name := fmt.Sprintf("t%d_%s", databases.Add(1), notInName.ReplaceAllString(strings.ToLower(test), "_"))
	return name[:min(len(name), 63)]
}

func (c *cluster) create(ctx context.Context, name string) error {
	stmt := "create database " + pgx.Identifier{name}.Sanitize() + " template " + templateName
	if c.major >= 15 {
		stmt += " strategy file_copy" // the other strategy writes all of it to the log: three times as slow
	}
	if err := c.execute(ctx, stmt); err != nil {
		return fmt.Errorf("create a database for the test: %w", err)
	}
	return nil
}

func (c *cluster) drop(ctx context.Context, name string) error {
	stmt := "drop database " + pgx.Identifier{name}.Sanitize() + " with (force)"
	if err := c.execute(ctx, stmt); err != nil {
		return fmt.Errorf("drop the test's database: %w", err)
	}
	return nil
}

// execute runs one statement as the superuser. Connections are kept for the next one: to open one takes PostgreSQL half as
// much processor time as to copy the template. A connection that is not in use has no goroutine.
func (c *cluster) execute(ctx context.Context, stmt string) error {
	conn, err := c.connection(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, stmt); err != nil {
		return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, conn)
	return nil
}

func (c *cluster) connection(ctx context.Context) (*pgx.Conn, error) {
	c.mu.Lock()
	if last := len(c.idle) - 1; last >= 0 {
		conn := c.idle[last]
		c.idle = c.idle[:last]
		c.mu.Unlock()
		return conn, nil
	}
	c.mu.Unlock()
	return pgx.Connect(ctx, c.server.DSN("postgres"))
}

// execute runs one statement on a connection of its own, which leaves no goroutine behind.
func execute(ctx context.Context, dsn, stmt string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, stmt)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}
