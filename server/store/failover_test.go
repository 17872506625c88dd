package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// insertWorkspace writes a row in a transaction.
func insertWorkspace(t *testing.T, db *store.DB) error {
	t.Helper()
	return db.InTx(t.Context(), func(tx store.Tx) error {
		return tx.InsertWorkspace(t.Context(), dbsqlc.InsertWorkspaceParams{WorkspaceID: uuid.New(), Name: "w"})
	})
}

// After a failover, the connections to the former primary stay open and are read-only. The first write replaces them.
func TestFailover_ReplacesReadOnlyConnections(t *testing.T) {
	t.Parallel()
	const connections = 4
	db, err := store.Open(t.Context(), storetest.New(t), connections)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	var held []*pgxpool.Conn
	for range connections {
		conn, err := db.Pool.Acquire(t.Context())
		if err == nil {
			_, err = conn.Exec(t.Context(), "set default_transaction_read_only = on")
		}
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	epoch := db.Epoch()
	for _, conn := range held[1:] {
		conn.Release()
	}
	if err := insertWorkspace(t, db); err != nil {
		t.Errorf("the first write: %v", err)
	}
	if epoch.Err() == nil {
		t.Error("connections outside of the pool are kept")
	}
	held[0].Release() // it was in use during the reset
	for range connections {
		conn, err := db.Pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
		var readOnly bool
		const state = "select current_setting('transaction_read_only')::boolean"
		if err := conn.QueryRow(t.Context(), state).Scan(&readOnly); err != nil || readOnly {
			t.Errorf("a connection is read-only: %t, %v", readOnly, err)
		}
	}
}

// A database that is read-only on new connections too rejects writes, without a new connection for each.
func TestFailover_DoesNotFloodReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	db, err := store.Open(t.Context(), dsn+"&default_transaction_read_only=on", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	begin := time.Now()
	for range 50 {
		if err := insertWorkspace(t, db); !store.IsUnavailable(err) {
			t.Fatalf("a write to a read-only database: %v", err)
		}
	}
	opened, most := db.Pool.Stat().NewConnsCount(), 2+int64(time.Since(begin)/store.ResetInterval)
	if opened > most {
		t.Errorf("50 writes opened %d connections, want at most %d", opened, most)
	}
	c, err := db.Condition(t.Context())
	if err != nil || !c.ReadOnly {
		t.Errorf("the condition is %+v, %v", c, err)
	}
}
