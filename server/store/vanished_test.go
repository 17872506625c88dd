package store_test

import (
	"context"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// What is sent to a machine that is gone is given up long before the quarter of an hour of Linux.
func TestConnectionsThatAreNotHeardAreLost(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the system has no such option")
	}
	var dial func(ctx context.Context, network, address string) (net.Conn, error)
	db, err := store.Open(t.Context(), storetest.New(t), 1, func(cfg *pgxpool.Config) { dial = cfg.ConnConfig.DialFunc })
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

// A connection that was lost while it rested costs whoever needs it the time of one answer, however many were.
func TestConnectionsThatAreLostAtRestAreAskedTogether(t *testing.T) {
	t.Parallel()
	line := storetest.NewLine(t)
	const connections, pong = 10, 300 * time.Millisecond
	db, err := store.Open(t.Context(), storetest.New(t), connections, line.Through, func(cfg *pgxpool.Config) { cfg.PingTimeout = pong })
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
	rest := time.Now()
	eventually(t, "they have rested", func() bool { return time.Since(rest) > 1100*time.Millisecond })
	line.Lose()
	begun := time.Now()
	if _, err := db.Moment(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > connections/2*pong {
		t.Errorf("it took %s", took)
	}
}

// A statement that takes little is given up in its time, and one that may take long is not.
func TestOnlyWhatTakesLittleHasALimit(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	short := store.Within(t.Context(), 50*time.Millisecond)
	sleep := func(ctx context.Context) error {
		return db.InTxOnce(ctx, func(tx store.Tx) error {
			own, err := tx.Begun(ctx)
			if err == nil {
				_, err = own.Exec(ctx, "select pg_sleep(0.3)")
			}
			return err
		})
	}
	if err := sleep(short); err != nil {
		t.Errorf("in a transaction: %v", err)
	}
	locked, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = db.InTxOnce(t.Context(), func(tx store.Tx) error {
			own, err := tx.Begun(t.Context())
			if err == nil {
				_, err = own.Exec(t.Context(), "lock table webhooks in access exclusive mode")
			}
			close(locked)
			if err == nil {
				_, err = own.Exec(t.Context(), "select pg_sleep(1)")
			}
			return err
		})
	}()
	<-locked
	if _, err := db.DueWebhooks(short, store.DueWebhooksParams{MaxRows: 1}); err == nil {
		t.Error("it was waited for")
	}
	<-done
	if _, err := db.DueWebhooks(short, store.DueWebhooksParams{MaxRows: 1}); err != nil {
		t.Error(err)
	}
}

// Whoever has less time than a connection has to answer finds out that it is lost, too: the next one has another.
func TestConnectionThatIsLostIsFoundOutByWhoHasLittleTime(t *testing.T) {
	t.Parallel()
	line := storetest.NewLine(t)
	db, err := store.Open(t.Context(), storetest.New(t), 1, line.Through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := db.Moment(t.Context()); err != nil {
		t.Fatal(err)
	}
	rest := time.Now()
	eventually(t, "it has rested", func() bool { return time.Since(rest) > 1100*time.Millisecond })
	line.Lose()
	little, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	defer cancel()
	if _, err := db.Moment(little); err == nil {
		t.Error("a connection that is lost has answered")
	}
	begun := time.Now()
	if _, err := db.Moment(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 8*time.Second { // the driver says goodbye for 15 s
		t.Errorf("it took %s", took)
	}
}
