package chaos_test

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// database is a PostgreSQL that can be stopped, killed, and restarted behind one address.
type database struct {
	testing.TB
	dir     string
	gate    *gate
	socket  atomic.Value // string
	login   *url.Userinfo
	log     *os.File // log of PostgreSQL
	cluster *pglocal.Cluster
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos-") //nolint:usetesting // another user must be able to enter it
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // so that it can
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	d := &database{TB: t, dir: dir, log: log}
	d.start()
	t.Cleanup(func() { d.stop() })
	d.gate = newGate(t, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.socket.Load().(string))
	})
	return d
}

func (d *database) dsn() string {
	return "postgres://" + d.login.String() + "@" + d.gate.addr + "/postgres?sslmode=disable&connect_timeout=5"
}

func (d *database) start() {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.Context()), testenv.Timeout(testenv.WaitTimeout))
	defer cancel()
	c, err := pglocal.Start(
		ctx,
		pglocal.Options{
			Dir: d.dir,
			Log: slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		},
	)
	if err != nil {
		d.Fatalf("start the database: %v", err)
	}
	u, err := url.Parse(c.DSN("postgres"))
	if err != nil {
		d.Fatal(err)
	}
	d.cluster, d.login = c, u.User
	d.socket.Store(filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port")))
}

func (d *database) stop() {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.Context()), testenv.Timeout(testenv.WaitTimeout))
	defer cancel()
	if err := d.cluster.Stop(ctx); err != nil {
		d.Errorf("stop the database: %v", err)
	}
}

// restart stops or kills the database and starts it again.
func (d *database) restart(kill bool) {
	d.Helper()
	if kill {
		_ = syscall.Kill(d.cluster.Pid(), syscall.SIGKILL)
		<-d.cluster.Done()
		_ = d.cluster.Stop(d.Context()) // releases resources; the error of a killed cluster is expected
	} else {
		d.stop()
	}
	d.start()
}
