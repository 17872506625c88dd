package storetest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Line is a proxy to a database that can silently drop traffic.
type Line struct {
	listener net.Listener
	mu       sync.Mutex
	dial     func(ctx context.Context) (net.Conn, error)
	lost     chan struct{} // closed: those connected before are
	over     chan struct{}
}

// NewLine starts a proxy. Through is an option for store.Open.
func NewLine(t testing.TB) *Line {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Line{listener: listener, lost: make(chan struct{}), over: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { l.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		close(l.over)
		serving.Wait()
	})
	return l
}

// Through makes a pool connect through the proxy.
func (l *Line) Through(cfg *pgxpool.Config) {
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		l.mu.Lock()
		if l.dial == nil { // a cancel request dials the proxy itself
			l.dial = func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, address) }
		}
		l.mu.Unlock()
		return dial(ctx, "tcp", l.listener.Addr().String())
	}
}

// Lose silently drops all further traffic of existing connections, as if the machine of the database were gone and another one had
// its address. New connections work.
func (l *Line) Lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.lost)
	l.lost = make(chan struct{})
}

func (l *Line) carry(near net.Conn) {
	l.mu.Lock()
	dial, lost := l.dial, l.lost
	l.mu.Unlock()
	defer near.Close() //nolint:errcheck // nothing is lost
	far, err := dial(context.Background())
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // nothing is lost
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(lossy{far, lost}, near); end() })
	copying.Go(func() { _, _ = io.Copy(lossy{near, lost}, far); end() })
	select {
	case <-ended:
		select {
		case <-lost: // the other side does not notice either
			<-l.over
		default:
		}
	case <-l.over:
	}
	_, _ = near.Close(), far.Close()
	copying.Wait()
}

// lossy is a connection that discards writes once it is lost.
type lossy struct {
	net.Conn
	lost chan struct{}
}

func (c lossy) Write(b []byte) (int, error) {
	select {
	case <-c.lost:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}
