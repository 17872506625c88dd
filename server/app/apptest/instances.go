package apptest

import (
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// instances returns the number of servers that Start runs: the variable INSTANCES, or 1.
func instances() int {
	n, _ := strconv.Atoi(os.Getenv("INSTANCES"))
	return max(n, 1)
}

// Main runs the tests of a package that calls Start. TestMain calls it last. With several INSTANCES, only the named
// tests run: those whose outcome can differ. The flag -run takes precedence. Without names, all tests run.
func Main(m *testing.M, several ...func(*testing.T)) {
	flag.Parse()
	if run := flag.Lookup("test.run"); instances() > 1 && len(several) > 0 && run.Value.String() == "" {
		names := make([]string, len(several))
		for i, test := range several {
			name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
			names[i] = name[strings.LastIndex(name, ".")+1:]
		}
		if err := run.Value.Set("^(" + strings.Join(names, "|") + ")$"); err != nil {
			panic(err)
		}
	}
	storetest.Main(m, store.Migrate, store.MigrationsVersion())
}

// runAll starts all instances on one database. Several instances are behind a TCP load balancer.
func (s *Server) runAll(t testing.TB, c app.Config) {
	t.Helper()
	n := instances()
	if n < 2 {
		s.run(t, c)
		return
	}
	cloud, err := app.StartCloud(t.Context(), app.CloudConfig{
		Database:   c.Database,
		Listen:     "127.0.0.1:0",
		Sandboxing: c.Sandboxing,
		Wrap:       c.Wrap,
		Log:        c.Log,
	})
	if err != nil {
		t.Fatalf("start the simulated cloud: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
		defer cancel()
		if err := cloud.Stop(ctx); err != nil {
			t.Errorf("stop the simulated cloud: %v", err)
		}
	})
	c.Sandboxing.URL = cloud.URL
	c.Wrap = closing(c.Wrap)
	at := make([]string, n)
	var first *app.App
	for i := range at {
		s.run(t, c)
		at[i] = s.App.URL[len("http://"):]
		if i == 0 {
			first = s.App
		}
	}
	s.App, s.URL = first, "http://"+balance(t, at)
}

// closing closes each client connection after one request, so that different instances answer the requests of a test.
func closing(wrap func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		inner := wrap(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !internal(r.URL.Path) {
				w.Header().Set("Connection", "close")
			}
			inner.ServeHTTP(w, r)
		})
	}
}

// balance starts a TCP load balancer with round-robin and returns its address.
func balance(t testing.TB, to []string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var next atomic.Uint64
	var open sync.WaitGroup
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { forward(t.Context(), c, to[next.Add(1)%uint64(len(to))]) })
		}
	}()
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // the test is over
		open.Wait()
	})
	return l.Addr().String()
}

func forward(ctx context.Context, c net.Conn, to string) {
	defer c.Close() //nolint:errcheck // fully read
	d, err := (&net.Dialer{Timeout: testenv.Timeout(time.Minute)}).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer d.Close()                       //nolint:errcheck // fully read
	defer context.AfterFunc(ctx, func() { // the test is over; close connections that are still open
		c.Close() //nolint:errcheck // best effort
		d.Close() //nolint:errcheck // best effort
	})()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, d}, {d, c}} {
		both.Go(func() {
			io.Copy(way[0], way[1])                               //nolint:errcheck // either side may end
			way[0].(interface{ CloseWrite() error }).CloseWrite() //nolint:errcheck,forcetypeassert // both are TCP
		})
	}
	both.Wait()
}
