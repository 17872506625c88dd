package storetest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Line is the way to a database, by a proxy that can be made to lose what goes over it.
type Line struct {
	listener net.Listener
	mu       sync.Mutex
	dial     func(ctx context.Context) (net.Conn, error)
	lost     chan struct{} // closed: those connected before are
	over     chan struct{}
}

// NewLine makes a line. Its Through is an option of store.Open.
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

// Through has a pool connect over the line.
func (l *Line) Through(cfg *pgxpool.Config) {
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		l.mu.Lock()
		if l.dial == nil { // later it may be the line itself that is asked for, by who cancels a statement
			l.dial = func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, address) }
		}
		l.mu.Unlock()
		return dial(ctx, "tcp", l.listener.Addr().String())
	}
}

// Lose loses all that is sent over the connections that there are, from now on and without a word to either side, as where the
// database's machine is gone and another one has its address. New ones are carried.
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
		case <-lost: // the other side is not told of that either
			<-l.over
		default:
		}
	case <-l.over:
	}
	_, _ = near.Close(), far.Close()
	copying.Wait()
}

// lossy is a connection that takes what is written to it and keeps it, once it is lost.
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
