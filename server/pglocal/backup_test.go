package pglocal_test

import (
	"archive/tar"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// The target of a backup may hang without anyone noticing. The log that is kept for the backup must not fill the disk.
func TestHangingBackup_EndsBeforeLogFillsDisk(t *testing.T) {
	t.Parallel()
	if got := setting(t, start(t, pglocal.Options{Dir: seeded(t)}), "max_slot_wal_keep_size"); got != "4GB" {
		t.Errorf("%s of the log is kept for a backup, want 4GB", got)
	}
	dir := seeded(t)
	// the usual size takes long to write
	c := start(t, pglocal.Options{Dir: dir, Settings: map[string]string{"max_slot_wal_keep_size": "16MB"}})
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	h, err := pglocal.Open(ctx, pglocal.Options{Dir: dir})
	ok(t, err)
	t.Cleanup(func() { ok(t, h.Close(context.WithoutCancel(t.Context()))) })
	b, err := h.BaseBackup(ctx)
	ok(t, err)
	t.Cleanup(func() { ok(t, b.Close(ctx)) })

	begun, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		ended <- b.Copy(ctx, io.Discard, func(_ *tar.Header, r io.Reader) error {
			if first {
				first = false
				close(begun)
				<-goOn
			}
			_, err := io.Copy(io.Discard, r)
			return err
		})
	}()
	<-begun
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	ok(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	for slots := 1; slots > 0; {
		for _, sql := range []string{
			"select pg_logical_emit_message(false, 'x', 'x')",
			"select pg_switch_wal()",
			"checkpoint",
		} {
			_, err = conn.Exec(ctx, sql)
			ok(t, err)
		}
		ok(t, conn.QueryRow(ctx, "select count(*) from pg_replication_slots").Scan(&slots))
	}
	close(goOn)
	select {
	case err = <-ended:
	case <-time.After(within):
		t.Fatal("the backup does not end")
	}
	if err == nil || !strings.Contains(err.Error(), "4GB") {
		t.Errorf("the backup ends with %v", err)
	}
}
