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

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// forwarder is the address of a database. New connections reach the current cluster, and earlier ones stay open.
type forwarder struct {
	addr    string
	cluster atomic.Pointer[forwardTarget]
}

// forwardTarget is a cluster that a forwarder has forwarded to.
type forwardTarget struct {
	socket string
	mute   atomic.Bool // the cluster seems to receive and to answer nothing
}

func newForwarder(t *testing.T, to string) *forwarder {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	f := &forwarder{addr: l.Addr().String()}
	f.move(t, to)
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for near, err := l.Accept(); err == nil; near, err = l.Accept() {
			all.Go(func() { f.cluster.Load().forward(ctx, near) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		end()
		all.Wait()
	})
	return f
}

// move forwards new connections to another cluster, and returns the former one.
func (f *forwarder) move(t *testing.T, dsn string) (former *forwardTarget) {
	t.Helper()
	query := must(url.Parse(dsn))(t).Query()
	return f.cluster.Swap(&forwardTarget{socket: filepath.Join(query.Get("host"), ".s.PGSQL."+query.Get("port"))})
}

// url returns the URL of a database through the forwarder.
func (f *forwarder) url(t *testing.T, dsn string) string {
	t.Helper()
	u := must(url.Parse(dsn))(t)
	u.Host, u.RawQuery = f.addr, "sslmode=disable"
	return u.String()
}

func (c *forwardTarget) forward(ctx context.Context, near net.Conn) {
	defer near.Close()
	far, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return
	}
	defer far.Close()
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			io.Copy(mutable{way[0], &c.mute}, way[1])
			if c.mute.Load() {
				<-ctx.Done()
			}
			way[0].Close()
		})
	}
	both.Wait()
}

// mutable discards what is written while it is mute.
type mutable struct {
	io.Writer
	mute *atomic.Bool
}

func (m mutable) Write(b []byte) (int, error) {
	if m.mute.Load() {
		return len(b), nil
	}
	return m.Writer.Write(b)
}

// The address of the database moves to a promoted standby while connections to the former primary stay open. Requests,
// work, health, and notifications continue there within 15 s, without a restart.
func TestFailover_ToPromotedStandby(t *testing.T) {
	t.Parallel()
	for name, mute := range map[string]bool{"a read-only primary": false, "a primary that does not answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, standby := storetest.NewWithStandby(t)
			f := newForwarder(t, dsn)
			s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
				c.DatabaseURL = f.url(t, dsn)
			})
			create := func() int {
				return s.Post(t, "/webhooks/create", map[string]any{"url": "https://hooks.example/x"}, nil)
			}
			if status := create(); status != http.StatusOK {
				t.Fatalf("create a webhook before: %d", status)
			}
			if mute {
				f.cluster.Load().mute.Store(true)
			} else {
				setReadOnly(t, dsn)
				apptest.Until(t, "the server has replaced its connections in vain", func() bool {
					return create() == http.StatusServiceUnavailable
				})
			}
			successor := standby.Promote()
			moved := time.Now()
			f.move(t, successor)

			conn := must(pgx.Connect(t.Context(), successor))(t)
			t.Cleanup(func() { conn.Close(context.Background()) })
			within := func(what string, ok func() bool) {
				t.Helper()
				apptest.Until(t, what, ok)
				if took := time.Since(moved); took > testenv.Timeout(15*time.Second) {
					t.Errorf("it took %s until %s", took, what)
				}
				t.Logf("%s until %s", time.Since(moved), what)
			}
			within("requests write", func() bool { return create() == http.StatusOK })
			var code api.AccessCodeResponse
			in := map[string]any{"device_id": s.Device(t, "august"), "code": "2846"}
			if status := s.Post(t, "/access_codes/create", in, &code); status != http.StatusOK {
				t.Fatalf("create a code: %d", status)
			}
			within("work reaches locks", func() bool { return s.Lock(t, s.Device(t, "august")).Has(t, "2846") })
			within("the server is healthy", func() bool {
				return s.Send(t, http.MethodGet, "/health", nil, "", nil).StatusCode == http.StatusOK
			})
			within("both queues listen", func() bool { return listeners(t, conn) == 2 })
		})
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
