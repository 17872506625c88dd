package pglocal_test

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// An unlogged table whose creation was rolled back leaves an empty file until the next checkpoint. If all processes are
// killed before the log contains that, recovery creates the table's files again, finds the old one, and stops the
// server (PostgreSQL bug 17731). The next recovery removes the file.
func TestRecoveryBlockedByItself_IsRetried(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	var log bytes.Buffer
	var want []string
	for !strings.Contains(log.String(), "the server retries it once") { // a checkpoint may have removed the file
		if len(want) == 5 {
			t.Fatal("no recovery has failed: is the retry still necessary?")
		}
		killed(t, dir)
		want = append(want, "committed")
		again := start(t, pglocal.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if got := notes(t, again); !slices.Equal(got, want) {
			t.Errorf("rows after recovery = %q, want what was committed", got)
		}
		stop(t, again)
	}
}

// killed leaves such a file behind.
func killed(t *testing.T, dir string) {
	t.Helper()
	settings := maps.Clone(durable)
	settings["wal_writer_delay"] = "10s"
	c := start(t, pglocal.Options{Dir: dir, Settings: settings})
	conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	ok(t, err)
	tx, err := conn.Begin(t.Context())
	ok(t, err)
	_, err = tx.Exec(t.Context(), "create unlogged table taken_back (id int)")
	ok(t, err)
	// writes the log so far to the disk
	ok(t, insert(t.Context(), c.DSN("postgres"), "committed"))
	ok(t, tx.Rollback(t.Context()))
	pids, err := pglocal.ServersOf(c.DataDir())
	ok(t, err)
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			ok(t, err)
		}
	}
	waitDone(t, c)
	_ = conn.Close(t.Context())
	stop(t, c)
}
