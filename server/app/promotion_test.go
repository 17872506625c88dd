package app_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// forwarder is the address of a database. New connections reach the current cluster, and earlier ones stay open.
type forwarder struct {
	addr   string
	socket atomic.Pointer[string] // of the current cluster
}

func newForwarder(t *testing.T, dsn string) *forwarder {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	f := &forwarder{addr: l.Addr().String()}
	f.move(t, dsn)
	var all sync.WaitGroup
	all.Go(func() {
		for near, err := l.Accept(); err == nil; near, err = l.Accept() {
			all.Go(func() { f.forward(near) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return f
}

// move forwards new connections to the cluster of dsn.
func (f *forwarder) move(t *testing.T, dsn string) {
	t.Helper()
	query := must(url.Parse(dsn))(t).Query()
	f.socket.Store(new(filepath.Join(query.Get("host"), ".s.PGSQL."+query.Get("port"))))
}

// url returns the URL of a database through the forwarder.
func (f *forwarder) url(t *testing.T, dsn string) string {
	t.Helper()
	u := must(url.Parse(dsn))(t)
	u.Host, u.RawQuery = f.addr, "sslmode=disable"
	return u.String()
}

// forward forwards a connection until one of its sides closes it.
func (f *forwarder) forward(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("unix", *f.socket.Load())
	if err != nil {
		return
	}
	defer far.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			io.Copy(way[0], way[1])
			way[0].Close()
		})
	}
	both.Wait()
}

// The address of the database moves to a promoted standby. Connections to the former primary, which is read-only, stay
// open. Requests, work, health, and notifications continue within 15 s, without a restart.
func TestFailover_ToPromotedStandby(t *testing.T) {
	t.Parallel()
	dsn, standby := storetest.NewWithStandby(t)
	f := newForwarder(t, dsn)
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) { c.DatabaseURL = f.url(t, dsn) })
	create := func() int {
		return s.Post(t, "/webhooks/create", map[string]any{"url": "https://hooks.example/x"}, nil)
	}
	setReadOnly(t, dsn)
	apptest.Until(t, "the former primary rejects writes also on new connections", func() bool {
		return create() == http.StatusServiceUnavailable
	})
	successor := standby.Promote()
	moved := time.Now()
	f.move(t, successor)
	apptest.Until(t, "requests write", func() bool { return create() == http.StatusOK })
	device := s.Device(t, "august")
	in := map[string]any{"device_id": device, "code": "2846"}
	if status := s.Post(t, "/access_codes/create", in, nil); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	lock := s.Lock(t, device)
	apptest.Until(t, "work reaches locks", func() bool { return lock.Has(t, "2846") })
	apptest.Until(t, "the server is healthy", func() bool {
		return s.Send(t, http.MethodGet, "/health", nil, "", nil).StatusCode == http.StatusOK
	})
	conn := must(pgx.Connect(t.Context(), successor))(t)
	t.Cleanup(func() { conn.Close(context.Background()) })
	apptest.Until(t, "both queues listen", func() bool { return listeners(t, conn) == 2 })
	if took := time.Since(moved); took > testenv.Timeout(15*time.Second) {
		t.Errorf("the server works again after %s", took)
	}
}

// listeners returns how many connections wait for notifications. They do nothing else but answer pings.
func listeners(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	const query = "select count(*) from pg_stat_activity where query ilike 'listen %' or " +
		"query = '-- ping' and state_change < now() - interval '1 second'"
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// setReadOnly lets the sessions of a cluster reject writes.
func setReadOnly(t *testing.T, dsn string) {
	t.Helper()
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, stmt := range []string{"alter system set default_transaction_read_only = on", "select pg_reload_conf()"} {
		if _, err := conn.Exec(t.Context(), stmt); err != nil {
			t.Fatal(err)
		}
	}
}
