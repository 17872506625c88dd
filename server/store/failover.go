package store

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// resetInterval is the minimum interval between two resets, so that the server does not flood a database that is
// read-only with connections.
const resetInterval = 3 * time.Second

// failover replaces the connections of pools when one of them is read-only. After a failover, connections to the former
// primary may stay open, while new ones reach the current primary.
type failover struct {
	mu    sync.Mutex
	pools []*pgxpool.Pool
	last  time.Time       // the last reset
	epoch context.Context // ends with the next reset
	end   context.CancelFunc
}

// detectFailover returns a failover that resets when a statement on a connection of c fails because it is read-only.
func detectFailover(c *pgconn.Config) *failover {
	f, before := &failover{}, c.OnPgError
	f.epoch, f.end = context.WithCancel(context.Background())
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		if e.Code == readOnlyTransaction {
			f.reset()
		}
		return before(conn, e)
	}
	return f
}

// watch sets the pools.
func (f *failover) watch(pools ...*pgxpool.Pool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pools = pools
}

// reset closes the idle connections of the pools, and the others when they are released.
func (f *failover) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.last.IsZero() && time.Since(f.last) < resetInterval {
		return
	}
	f.last = time.Now()
	for _, p := range f.pools {
		p.Reset()
	}
	f.end()
	f.epoch, f.end = context.WithCancel(context.Background())
}

// Epoch returns a context that ends when the server replaces all connections because of a failover. Connections that were
// taken out of the pool must be replaced then, too.
func (db *DB) Epoch() context.Context {
	db.failover.mu.Lock()
	defer db.failover.mu.Unlock()
	return db.failover.epoch
}
