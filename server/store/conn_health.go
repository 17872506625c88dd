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

// A database may vanish without a word: its machine has lost its power, or another one has its address, or something in between has
// forgotten the connection. Linux tries for a quarter of an hour then to be heard. What follows ends that sooner, and no statement
// that the database is at: its system answers in its stead.
const (
	connectWithin = 10 * time.Second // all that it takes, unless the URL has a connect_timeout
	rested        = time.Second      // a connection at rest for so long is asked whether it is there still, before it is used
	pongWithin    = 5 * time.Second  // it answers that in this time, unless the URL has a pool_ping_timeout
	besideWithin  = 10 * time.Second // what is asked on the connection beside is answered: it is little, and others wait for it
	heardWithin   = 30 * time.Second // what is sent arrives, or the connection is lost
)

// dialer finds out that a connection is lost after heardWithin, whether something was sent or not.
func dialer(cfg *pgx.ConnConfig) *net.Dialer {
	return &net.Dialer{
		Timeout:         cfg.ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: heardWithin / 2, Interval: heardWithin / 6, Count: 3},
		Control: func(network, _ string, c syscall.RawConn) (err error) {
			if runtime.GOOS != "linux" || !strings.HasPrefix(network, "tcp") {
				return nil
			}
			const tcpUserTimeout = 18 // TCP_USER_TIMEOUT, linux/tcp.h
			if failed := c.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(heardWithin.Milliseconds()))
			}); failed != nil {
				return failed
			}
			return err
		},
	}
}

// newPool makes a pool whose connections are asked whether they are there, once they have rested. Where one does not answer, all the
// others at rest are asked at the same time: asked one after the other as somebody needs them, they would take their time for each.
func newPool(ctx context.Context, cfg *pgxpool.Config) (*pgxpool.Pool, error) {
	within := cfg.PingTimeout
	var pool atomic.Pointer[pgxpool.Pool]
	cfg.ShouldPing = func(ctx context.Context, at pgxpool.ShouldPingParams) (again bool) {
		if at.IdleDuration <= rested {
			return false
		}
		answers, lost := asked(ctx, at.Conn, within)
		if p := pool.Load(); lost && p != nil {
			go askAll(p, within)
		}
		return !answers // it is closed, which asking it once more shows
	}
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	pool.Store(p)
	return p, err
}

// asked asks a connection whether it is there; lost: it had the time to say so, which is no more than whoever needs it has, but for a
// second. Where he leaves meanwhile the connection is asked all the same: a question that is cut off costs it.
func asked(ctx context.Context, conn *pgx.Conn, within time.Duration) (answers, lost bool) {
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

func askAll(pool *pgxpool.Pool, within time.Duration) {
	var all sync.WaitGroup
	for _, conn := range pool.AcquireAllIdle(context.Background()) {
		all.Go(func() {
			defer conn.Release()
			asked(context.Background(), conn.Conn(), within)
		})
	}
	all.Wait()
}

// hangUp closes a connection that does not answer. The driver would wait another 15 s for it to say goodbye, in which it has its
// place in the pool.
func hangUp(conn *pgx.Conn) { _ = conn.PgConn().Conn().Close() }

type withinKey struct{}

// Within is the context for statements that take little. Each is given up when there is no answer so long after it had a connection
// to be sent on, however long it has waited for that. Those of transactions are not bound by it.
func Within(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, withinKey{}, limit)
}

// prompt sends statements that are given up without an answer in time.
type prompt struct {
	acquire func(context.Context) (_ *pgxpool.Conn, release func(), err error)
	within  time.Duration
}

// begin is the connection for a statement, and the context that ends with its time. Both are to be given back by end.
func (q prompt) begin(ctx context.Context) (_ context.Context, _ *pgxpool.Conn, end func(), err error) {
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

func (q prompt) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	ctx, conn, end, err := q.begin(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer end()
	return conn.Exec(ctx, sql, args...)
}

func (q prompt) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
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

func (q prompt) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	ctx, conn, end, err := q.begin(ctx)
	if err != nil {
		return failedRow{err}
	}
	return sharedRow{conn.QueryRow(ctx, sql, args...), end}
}
