package store_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// What is sent to a machine that is gone is given up long before the quarter of an hour of Linux.
func TestConnectionsThatAreNotHeardAreLost(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the system has no such option")
	}
	var dial func(ctx context.Context, network, address string) (net.Conn, error)
	db, err := store.Open(
		t.Context(),
		storetest.New(t),
		1,
		func(cfg *pgxpool.Config) { dial = cfg.ConnConfig.DialFunc },
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	conn, err := dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, most := range map[[2]int]int{
		{syscall.IPPROTO_TCP, 18}:                    30_000, // TCP_USER_TIMEOUT, in ms
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE}:  15,
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL}: 5,
	} {
		err := raw.Control(func(fd uintptr) {
			if n, err := syscall.GetsockoptInt(int(fd), option[0], option[1]); err != nil || n == 0 || n > most {
				t.Errorf("option %d is %d, %v", option[1], n, err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// questions counts the connections that are asked at the same time whether they are there, until they are closed.
type questions struct{ now, most atomic.Int32 }

// askedConn is one of the connections.
type askedConn struct {
	net.Conn
	questions *questions
	end       func()
}

func (c *askedConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("-- ping")) {
		c.end = sync.OnceFunc(func() { c.questions.now.Add(-1) })
		now := c.questions.now.Add(1)
		for most := c.questions.most.Load(); now > most && !c.questions.most.CompareAndSwap(most, now); {
			most = c.questions.most.Load()
		}
	}
	return c.Conn.Write(b)
}

func (c *askedConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// untilRested waits until a connection that was used until now is asked whether it is there, before it is used.
func untilRested(t *testing.T) {
	t.Helper()
	now := time.Now()
	testenv.Until(t, "a connection has rested", func() bool { return time.Since(now) > 1100*time.Millisecond })
}

// If idle connections are lost, the next caller waits for one ping only: all others are pinged concurrently.
func TestConnectionsThatAreLostAtRestAreAskedTogether(t *testing.T) {
	t.Parallel()
	line := storetest.NewLine(t)
	const connections = 10
	var asked questions
	db, err := store.Open(t.Context(), storetest.New(t), connections, line.Through, func(cfg *pgxpool.Config) {
		cfg.PingTimeout = testenv.Timeout(time.Second)
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return &askedConn{conn, &asked, func() {}}, err
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	var held []*pgxpool.Conn
	for range connections {
		conn, err := db.Pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Release()
	}
	untilRested(t)
	line.Lose()
	if _, err := db.Now(t.Context()); err != nil {
		t.Error(err)
	}
	if most := asked.most.Load(); most < connections/2 {
		t.Errorf("%d of %d connections were asked at the same time", most, connections)
	}
}

// A statement that takes little is given up in its time, and one that may take long is not.
func TestOnlyWhatTakesLittleHasALimit(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	none := store.WithStatementTimeout(t.Context(), time.Nanosecond)
	if err := db.InTxOnce(none, func(tx store.Tx) error { return execIn(none, tx, "select 1") }); err != nil {
		t.Errorf("in a transaction: %v", err)
	}
	err := db.InTxOnce(t.Context(), func(tx store.Tx) error {
		if err := execIn(t.Context(), tx, "lock table webhooks in access exclusive mode"); err != nil {
			return err
		}
		short := store.WithStatementTimeout(t.Context(), 50*time.Millisecond)
		if _, err := db.DueWebhooks(
			short,
			dbsqlc.DueWebhooksParams{MaxRows: 1},
		); !errors.Is(
			err,
			context.DeadlineExceeded,
		) {
			t.Errorf("it was waited for: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	enough := store.WithStatementTimeout(t.Context(), testenv.Timeout(time.Minute))
	if _, err := db.DueWebhooks(enough, dbsqlc.DueWebhooksParams{MaxRows: 1}); err != nil {
		t.Error(err)
	}
}

// closings counts what was read from a connection when our side had closed it.
type closings struct {
	net.Conn
	n *atomic.Int32
}

func (c closings) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, net.ErrClosed) {
		c.n.Add(1)
	}
	return n, err
}

// A caller with a deadline shorter than the ping timeout detects a lost connection too, so the next caller gets another one.
func TestConnectionThatIsLostIsFoundOutByWhoHasLittleTime(t *testing.T) {
	t.Parallel()
	line := storetest.NewLine(t)
	var hungUp atomic.Int32
	db, err := store.Open(t.Context(), storetest.New(t), 1, line.Through, func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return closings{conn, &hungUp}, err
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := db.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	untilRested(t)
	line.Lose()
	little, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	defer cancel()
	if _, err := db.Now(little); err == nil {
		t.Error("a connection that is lost has answered")
	}
	if _, err := db.Now(t.Context()); err != nil {
		t.Error(err)
	}
	if hungUp.Load() == 0 {
		t.Error("the driver has waited until the lost connection says goodbye")
	}
}
