package store

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A database may disappear silently: its machine loses power, its address moves, or a router forgets the connection.
// Linux then retransmits for 15 minutes. These limits detect it sooner, without ending statements that the database is
// working on, because its kernel still acknowledges.
const (
	connectTimeout = 10 * time.Second // to connect, unless the URL has a connect_timeout
	pingAfterIdle  = time.Second      // an idle connection is pinged before use after this time
	pingTimeout    = 5 * time.Second  // to answer the ping, unless the URL has a pool_ping_timeout
	sideTimeout    = 10 * time.Second // to answer on the separate connection, whose statements are short
	ackTimeout     = 30 * time.Second // for an acknowledgment
)

// dialer returns a dialer whose connections fail after ackTimeout without an acknowledgment.
func dialer(cfg *pgx.ConnConfig) *net.Dialer {
	return &net.Dialer{
		Timeout: cfg.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable:   true,
			Idle:     ackTimeout / 2,
			Interval: ackTimeout / 6,
			Count:    3,
		},
		Control: func(network, _ string, c syscall.RawConn) (err error) {
			if runtime.GOOS != "linux" || !strings.HasPrefix(network, "tcp") {
				return nil
			}
			const tcpUserTimeout = 18 // TCP_USER_TIMEOUT, linux/tcp.h
			if failed := c.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(
					int(fd),
					syscall.IPPROTO_TCP,
					tcpUserTimeout,
					int(ackTimeout.Milliseconds()),
				)
			}); failed != nil {
				return failed
			}
			return err
		},
	}
}

// newPool creates a pool that pings connections that were idle for longer than pingAfterIdle. If one does not answer, it pings all other
// idle ones concurrently, so that later callers do not wait for each.
func newPool(ctx context.Context, cfg *pgxpool.Config) (*pgxpool.Pool, error) {
	within := cfg.PingTimeout
	var pool atomic.Pointer[pgxpool.Pool]
	cfg.ShouldPing = func(ctx context.Context, at pgxpool.ShouldPingParams) (again bool) {
		if at.IdleDuration <= pingAfterIdle {
			return false
		}
		answers, lost := pingConn(ctx, at.Conn, within)
		if p := pool.Load(); lost && p != nil {
			go pingIdle(p, within)
		}
		return !answers // the pool pings it again, and finds it closed
	}
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	pool.Store(p)
	return p, err
}

// pingConn pings a connection. lost means that it had time to answer: the deadline of ctx, but at least a second. If ctx is
// canceled the ping continues, because interrupting it would close the connection.
func pingConn(ctx context.Context, conn *pgx.Conn, within time.Duration) (answers, lost bool) {
	if until, limited := ctx.Deadline(); limited {
		within = max(min(within, time.Until(until)), time.Second)
	}
	limited, end := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer end()
	answers = conn.Ping(limited) == nil
	lost = !answers && limited.Err() != nil
	if lost {
		hangUp(conn)
	}
	return answers, lost
}

func pingIdle(pool *pgxpool.Pool, within time.Duration) {
	var all sync.WaitGroup
	for _, conn := range pool.AcquireAllIdle(context.Background()) {
		all.Go(func() {
			defer conn.Release()
			pingConn(context.Background(), conn.Conn(), within)
		})
	}
	all.Wait()
}

// hangUp closes a connection that does not answer. The driver would wait 15 seconds, while the connection occupies its
// place in the pool.
func hangUp(conn *pgx.Conn) { _ = conn.PgConn().Conn().Close() }

type withinKey struct{}

// WithStatementTimeout returns the context for short statements. Each fails if the answer takes longer than limit after it got a
// connection. Statements in transactions are not affected.
func WithStatementTimeout(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, withinKey{}, limit)
}

// timedQueries sends statements with a time limit.
type timedQueries struct {
	acquire func(context.Context) (_ *pgxpool.Conn, release func(), err error)
	within  time.Duration
}

// begin returns a connection for a statement, and a context with the time limit. end releases both.
func (q timedQueries) begin(ctx context.Context) (_ context.Context, _ *pgxpool.Conn, end func(), err error) {
	conn, release, err := q.acquire(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, q.within)
	return limited, conn, sync.OnceFunc(func() {
		if errors.Is(limited.Err(), context.DeadlineExceeded) && conn.Conn().IsClosed() {
			hangUp(conn.Conn())
		}
		cancel()
		release()
	}), nil
}

func (q timedQueries) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	ctx, conn, end, err := q.begin(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer end()
	return conn.Exec(ctx, sql, args...)
}

func (q timedQueries) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	ctx, conn, end, err := q.begin(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		end()
		return nil, err
	}
	return sharedRows{rows, end}, nil
}

func (q timedQueries) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	ctx, conn, end, err := q.begin(ctx)
	if err != nil {
		return failedRow{err}
	}
	return sharedRow{conn.QueryRow(ctx, sql, args...), end}
}
