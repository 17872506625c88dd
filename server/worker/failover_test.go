package worker_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// After a failover, a listener on the former primary would hear nothing more.
func TestFailover_ReplacesListener(t *testing.T) {
	t.Parallel()
	db := open(t)
	start(t, db, worker.Options{Sweep: 20 * time.Millisecond}, newCounter())
	listener := func() (pid int32) {
		err := db.Pool.QueryRow(t.Context(), "select coalesce(max(pid), 0) from pg_stat_activity "+
			"where datname = current_database() and query ilike 'listen %'").Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	var before int32
	testenv.Until(t, "the queue listens", func() bool { before = listener(); return before != 0 })
	err := pgx.BeginTxFunc(t.Context(), db.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "delete from leases") // fails, as on a former primary
		return err
	})
	if err == nil {
		t.Fatal("a read-only transaction has written")
	}
	testenv.Until(t, "the queue listens on another connection", func() bool {
		now := listener()
		return now != 0 && now != before
	})
}
