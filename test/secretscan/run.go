package secretscan

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces/tracestest"
)

// Run is a server whose requests are watched, and what it leaves behind.
type Run struct {
	Ledger
	log      log
	traces   *tracestest.Receiver
	database string
	broken   atomic.Pointer[[]string] // functions in which the clock panics
}

// Configure returns an option of apptest.Start that watches a server, with the most verbose log and all traces.
func (r *Run) Configure(t testing.TB) func(*app.Config) {
	t.Helper()
	r.traces = tracestest.New(t)
	return func(c *app.Config) {
		r.database = c.DatabaseURL
		c.Access.Now = r.now
		c.MetricsListen, c.Traces = "127.0.0.1:0", r.traces.Options()
		c.Log = slog.New(slog.NewJSONHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		inner := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler { return r.Watch(inner(next)) }
	}
}

// Check stops the server, and searches for all learned secrets in what it has left behind and in others. Each finding
// fails the test.
func (r *Run) Check(t testing.TB, server *app.App, others map[string][]byte) {
	t.Helper()
	metrics := Get(t, server.MetricsURL)
	if err := server.Stop(t.Context()); err != nil {
		t.Errorf("stop the server: %v", err)
	}
	places := map[string][]byte{
		"the log":                r.Log(),
		"the metrics":            metrics,
		"the traces":             r.traces.Raw(),
		"the traces in words":    r.traces.Readable(),
		"a dump of the database": Dump(t, r.database),
		"refusals":               r.ErrorResponses(),
	}
	maps.Copy(places, others)
	r.Search(t, places)
}

// Log returns the server's log so far.
func (r *Run) Log() []byte { return r.log.bytes() }

// Search searches places for all learned secrets. Each finding fails the test. So does an empty place, because it
// proves nothing.
func (l *Ledger) Search(t testing.TB, places map[string][]byte) {
	t.Helper()
	for place, written := range places {
		if len(written) == 0 {
			t.Errorf("%s: nothing was written", place)
		}
		for _, found := range l.Find(written) {
			t.Errorf("%s: %s", place, found)
		}
		t.Logf("%s: %d bytes", place, len(written))
	}
}

// AddCheck makes the database reject rows that do not meet a condition, an error the server does not expect. Its
// response and log must not reveal anything either.
func (r *Run) AddCheck(t testing.TB, table, unless string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // nothing is lost
	if _, err := conn.Exec(
		t.Context(),
		"alter table "+pgx.Identifier{table}.Sanitize()+" add constraint forbidden check ("+unless+") not valid",
	); err != nil {
		t.Fatal(err)
	}
}

// PanicIn makes the server panic when it reads the time while all of these functions are on the stack, named as in a
// stack trace: "rest.(*handlers).CreateAccessCode". Its log must not reveal anything either.
func (r *Run) PanicIn(functions ...string) { r.broken.Store(&functions) }

// StopPanics ends PanicIn.
func (r *Run) StopPanics() { r.broken.Store(nil) }

func (r *Run) now() time.Time {
	if broken := r.broken.Load(); broken != nil && calledBy(*broken) {
		var nowhere *time.Time
		return *nowhere
	}
	return time.Now()
}

// calledBy reports whether all of these functions are on the caller's stack.
func calledBy(functions []string) bool {
	callers := make([]uintptr, 200)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	missing := slices.Clone(functions)
	for more := true; more && len(missing) > 0; {
		var f runtime.Frame
		f, more = frames.Next()
		missing = slices.DeleteFunc(missing, func(name string) bool { return strings.HasSuffix(f.Function, "/"+name) })
	}
	return len(missing) == 0
}

// Get returns the body at a URL, such as that of metrics.
func Get(t testing.TB, url string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Dump returns a database as statements: text in quotes, bytes in hexadecimal.
func Dump(t testing.TB, dsn string) []byte {
	t.Helper()
	bin, err := pglocal.Locate(t.Context(), pglocal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(bin.Dir, "pg_dump")
	if _, err := exec.LookPath(program); err != nil {
		if program, err = exec.LookPath("pg_dump"); err != nil {
			storetest.Missing(t, "pg_dump: install PostgreSQL")
		}
	}
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "--data-only", "--column-inserts", dsn)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("dump the database: %v\n%s", err, complaints.String())
	}
	return out.Bytes()
}

type log struct {
	mu      sync.Mutex
	written bytes.Buffer
}

func (l *log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written.Write(data)
}

func (l *log) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.written.Bytes())
}
