package pglocal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestFirstStart_CreatesClusterAndSecondKeepsIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(scratch(t), "made", "by us")
	first := start(t, pglocal.Options{Dir: dir})
	ok(t, execute(t.Context(), first.DSN("postgres"), "create table note (text text primary key)"))
	ok(t, insert(t.Context(), first.DSN("postgres"), "kept"))
	stop(t, first)
	if err := first.Err(); err != nil {
		t.Errorf("Err after Stop = %v, want nil", err)
	}
	if exists(first.Socket()) {
		t.Errorf("Stop has left the socket's folder %s", first.Socket())
	}

	second := start(t, pglocal.Options{Dir: dir})
	if got := notes(t, second); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("rows after the second start = %q, want the one of the first", got)
	}
}

func TestServerIsPrivate(t *testing.T) {
	t.Parallel()
	c := start(t, pglocal.Options{Dir: seeded(t), Settings: map[string]string{"work_mem": "7MB"}})
	for name, want := range map[string]string{
		"listen_addresses": "",
		"max_connections":  "200",
		"work_mem":         "7MB",
		"fsync":            "off",
		"TimeZone":         "UTC",
	} {
		if got := setting(t, c, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	info, err := os.Stat(c.Socket())
	ok(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder has mode %v, want 0700", info.Mode().Perm())
	}
	if group, err := syscall.Getpgid(c.Pid()); err != nil || group != c.Pid() {
		t.Errorf("process group = %d (%v), want one of its own, %d: a ^C would reach it", group, err, c.Pid())
	}
}

func TestPathsWithSpecialCharacters(t *testing.T) {
	t.Parallel()
	root := filepath.Join(scratch(t), `a, "b" é`)
	ok(t, os.Mkdir(root, 0o755))
	c := start(t, pglocal.Options{Dir: filepath.Join(root, "dir"), SocketRoot: strings.ReplaceAll(root, `"`, "")})
	ok(t, execute(t.Context(), c.DSN("postgres"), `create database "odd / name?"`))
	ok(t, execute(t.Context(), c.DSN("odd / name?"), "select 1"))
}

// durable keeps only the part of NoSync that has no effect while the machine runs.
var durable = map[string]string{"synchronous_commit": "on"}

func TestKilledServerIsReportedAndRecovers(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	c := start(t, pglocal.Options{Dir: dir, Settings: durable})
	ok(t, insert(t.Context(), c.DSN("postgres"), "committed"))
	busy := occupy(t, c)
	ok(t, syscall.Kill(c.Pid(), syscall.SIGKILL))
	waitDone(t, c)
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "killed") ||
		!strings.Contains(err.Error(), "ready to accept connections") {
		t.Errorf("Err = %v, want the signal and the end of the log", err)
	}
	stop(t, c)

	again := start(t, pglocal.Options{Dir: dir})
	if got := notes(t, again); !slices.Equal(got, []string{"committed"}) {
		t.Errorf("rows after recovery = %q, want what was committed", got)
	}
	if err := <-busy; err == nil {
		t.Error("a statement of the old server still runs")
	}
}

// occupy runs a statement that does not notice the death of the server's first process.
func occupy(t *testing.T, c *pglocal.Cluster) <-chan error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	ok(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "/* busy */ do $$ begin loop end loop; end $$")
		_ = conn.Close(context.Background())
		done <- err
	}()
	testenv.Until(t, "the statement runs", func() bool {
		watch, err := pgx.Connect(t.Context(), c.DSN("postgres"))
		ok(t, err)
		defer watch.Close(context.Background())
		var n int
		ok(
			t,
			watch.QueryRow(t.Context(), "select count(*) from pg_stat_activity where query like '/* busy */%' and "+
				"state = 'active'").
				Scan(&n),
		)
		return n == 1
	})
	return done
}

func TestStop_ImmediateAfterTimeout(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	c := start(t, pglocal.Options{Dir: dir, Settings: durable})
	ok(t, insert(t.Context(), c.DSN("postgres"), "committed"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop = %v, want a timeout", err)
	}
	waitDone(t, c)

	again := start(t, pglocal.Options{Dir: dir})
	if got := notes(t, again); !slices.Equal(got, []string{"committed"}) {
		t.Errorf("rows after recovery = %q, want what was committed", got)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	start(t, pglocal.Options{Dir: dir})
	if _, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir}); !errors.Is(err, pglocal.ErrInUse) {
		t.Errorf("second Start = %v, want ErrInUse", err)
	}
	if err := pglocal.Reap(t.Context(), dir); !errors.Is(err, pglocal.ErrInUse) {
		t.Errorf("Reap = %v, want ErrInUse", err)
	}
}

func TestFailedStart_ReportsReasonAndCleansUp(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	_, err := pglocal.Start(
		t.Context(),
		pglocal.Options{Dir: dir, Settings: map[string]string{"max_connections": "many"}},
	)
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "max_connections": "many"`) {
		t.Errorf("Start = %v, want the server's own reason", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pglocal.Start(ctx, pglocal.Options{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with an ended context = %v, want context.Canceled", err)
	}
	start(t, pglocal.Options{Dir: dir})
}

func TestRowsAreNotLogged(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	c := start(
		t,
		pglocal.Options{
			Dir: seeded(t),
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		},
	)
	ok(t, insert(t.Context(), c.DSN("postgres"), "secret-1234"))
	if err := insert(t.Context(), c.DSN("postgres"), "secret-1234"); err == nil {
		t.Fatal("a row was inserted twice")
	}
	if err := execute(t.Context(), c.DSN("postgres"), "insert into note values ('secret-1234')"); err == nil {
		t.Fatal("a row was inserted twice")
	}
	stop(t, c)
	if !strings.Contains(log.String(), "duplicate key value") || strings.Contains(log.String(), "secret") {
		t.Errorf("the log should name the error but not the row:\n%s", log.String())
	}
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestDurableByDefault(t *testing.T) {
	t.Parallel()
	need(t)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	c, err := pglocal.Start(ctx, pglocal.Options{Dir: scratch(t)})
	ok(t, err)
	t.Cleanup(func() { stop(t, c) })
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if got := setting(t, c, name); got != "on" {
			t.Errorf("%s = %q, want on", name, got)
		}
	}
}

func TestSocket_ShortDirectoryForLongPath(t *testing.T) {
	t.Parallel()
	long := filepath.Join(scratch(t), strings.Repeat("long", 30))
	ok(t, os.Mkdir(long, 0o755))
	c := start(t, pglocal.Options{Dir: seeded(t), SocketRoot: long})
	if strings.HasPrefix(c.Socket(), long) || len(c.Socket()) > 90 {
		t.Errorf("the socket is in %s, want a short folder", c.Socket())
	}
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("left in the long folder: %v, %v", left, err)
	}
}
