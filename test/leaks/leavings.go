package leaks

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

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
}

// Configure has a server watched, with the fullest log and all traces: it makes an option of apptest.Start.
func (r *Run) Configure(t testing.TB) func(*app.Config) {
	t.Helper()
	r.traces = tracestest.New(t)
	return func(c *app.Config) {
		r.database = c.DatabaseURL
		c.MetricsListen, c.Traces = "127.0.0.1:0", r.traces.Options()
		c.Log = slog.New(slog.NewJSONHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		inner := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler { return r.Watch(inner(next)) }
	}
}

// Judge looks for all that was learned in what the server has left behind, and in what others have written: whatever is
// found fails the test. So does a place where nothing was written: then it proves nothing. It stops the server, so that
// nothing is on its way.
func (r *Run) Judge(t testing.TB, server *app.App, others map[string][]byte) {
	t.Helper()
	metrics := get(t, server.MetricsURL)
	if err := server.Stop(t.Context()); err != nil {
		t.Errorf("stop the server: %v", err)
	}
	places := map[string][]byte{"the log": r.log.bytes(), "the metrics": metrics, "the traces": r.traces.Raw(), "the traces in words": r.traces.Readable(), "a dump of the database": dump(t, r.database), "refusals": r.Refusals()}
	for place, written := range others {
		places[place] = written
	}
	for place, written := range places {
		if len(written) == 0 {
			t.Errorf("%s: nothing was written", place)
		}
		for _, found := range r.Find(written) {
			t.Errorf("%s: %s", place, found)
		}
		t.Logf("%s: %d bytes", place, len(written))
	}
}

// Forbid has the database refuse certain rows from now on, as nobody foresaw: what is answered and logged of that is to
// tell nothing either.
func (r *Run) Forbid(t testing.TB, table, unless string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // nothing is lost
	if _, err := conn.Exec(t.Context(), "alter table "+pgx.Identifier{table}.Sanitize()+" add constraint forbidden check ("+unless+") not valid"); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, url string) []byte {
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

// dump is the database as statements: text in quotes, bytes in hexadecimal.
func dump(t testing.TB, dsn string) []byte {
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
