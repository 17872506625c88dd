package store_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// frozen is a connection of a server that stands still once it is told to: of what it writes then only the first part goes
// out, which ends after the first statement, and it reads nothing more.
type frozen struct {
	net.Conn
	mute, deaf *atomic.Bool
	thawed     chan struct{}
}

func (c frozen) Write(b []byte) (int, error) {
	if c.mute.Load() {
		// Execute of the first statement: its name is that of the unnamed portal, and it returns all rows.
		first := []byte{'E', 0, 0, 0, 9, 0, 0, 0, 0, 0}
		if i := bytes.Index(b, first); i >= 0 {
			b = append(b[:i+len(first):i+len(first)], 'H', 0, 0, 0, 4) // and a Flush, so that it is at it
		}
		_, _ = c.Conn.Write(b)
		<-c.thawed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c frozen) Read(b []byte) (int, error) {
	if c.deaf.Load() {
		<-c.thawed
		return 0, net.ErrClosed
	}
	return c.Conn.Read(b)
}

// What a server has locked that stands still while it sends, or that takes no answer, is free for others after as long as that of one
// that stands still between two statements.
func TestSessionsThatStandStillInTheMiddleAreEnded(t *testing.T) {
	t.Parallel()
	for name, still := range map[string]struct{ mute, deaf bool }{"half of a batch was sent": {mute: true}, "an answer is not read": {deaf: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.New(t)
			c := frozen{mute: &atomic.Bool{}, deaf: &atomic.Bool{}, thawed: make(chan struct{})}
			thaw := sync.OnceFunc(func() { close(c.thawed) })
			defer thaw()
			// Only the one who ends others has the short limit: with it, a machine that is slow could end the session before.
			one, other := open(t, dsn), open(t, dsn+"&idle_in_transaction_session_timeout=1")
			db, err := store.Open(t.Context(), dsn, 1, func(cfg *pgxpool.Config) {
				dial := cfg.ConnConfig.DialFunc
				cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					return frozen{conn, c.mute, c.deaf, c.thawed}, err
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			id := uuid.New()
			if err := one.InsertWorkspace(
				t.Context(),
				dbsqlc.InsertWorkspaceParams{WorkspaceID: id, Name: "w"},
			); err != nil {
				t.Fatal(err)
			}
			locked := func(tx store.Tx) error { _, err := tx.LockWorkspace(t.Context(), id); return err }
			ctx := context.WithoutCancel(t.Context())
			done := make(chan error, 1)
			work := func(freeze bool) error {
				return db.InTxOnce(ctx, func(tx store.Tx) error {
					if still.mute {
						if err := locked(tx); err != nil {
							return err
						}
						c.mute.Store(freeze)
						return tx.BatchLast(ctx, locked, locked)
					}
					own, err := tx.Start(ctx)
					if err != nil {
						return err
					}
					c.deaf.Store(freeze)
					rows, err := own.Query(
						ctx,
						"-- name: LockMuch :many\nselect repeat('x', 2000) from workspaces w, generate_series(1, 10000) where w.workspace_id = $1 for no key update of w",
						pgx.QueryExecModeExec,
						id,
					)
					if err == nil {
						rows.Close()
						err = rows.Err()
					}
					return err
				})
			}
			if err := work(false); err != nil { // everything is prepared
				t.Fatal(err)
			}
			go func() { done <- work(true) }()
			free := func() bool {
				_, err := one.Pool.Exec(
					t.Context(),
					"select from workspaces where workspace_id = $1 for update nowait",
					id,
				)
				return err == nil
			}
			testenv.Until(t, "the row is locked", func() bool { return !free() })
			var ended int64
			testenv.Until(t, "the row is free", func() bool {
				n, err := other.EndHungSessions(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ended += n
				return free()
			})
			if ended != 1 {
				t.Errorf("%d sessions were ended", ended)
			}
			thaw()
			if err := <-done; err == nil {
				t.Error("the work of a session that was ended is done")
			}
			c.mute.Store(false)
			c.deaf.Store(false)
			db.Close()
		})
	}
}
