package admission

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener is a listener for connections that a test sends, in their order.
type pipeListener struct {
	come   chan net.Conn
	closed chan struct{}
}

func (s *pipeListener) Accept() (net.Conn, error) {
	select {
	case n := <-s.come:
		return n, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *pipeListener) Close() error { close(s.closed); return nil }

func (s *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// addressedConn is a connection with a given remote address.
type addressedConn struct {
	net.Conn
	from string
}

func (c addressedConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 1))
}

// arrive sends n connections from an address, and returns when all were received.
func (s *pipeListener) arrive(t *testing.T, from string, n int) {
	t.Helper()
	for range n {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		s.come <- addressedConn{ours, from}
	}
	synctest.Wait()
}

func opened(t *testing.T, l Limits) (*pipeListener, *acceptPacer) {
	t.Helper()
	s := &pipeListener{come: make(chan net.Conn), closed: make(chan struct{})}
	d := New(l).listen(s)
	t.Cleanup(func() {
		if !d.closing {
			d.Close()
		}
		d.closeWaiting()
	})
	return s, d
}

// enters returns the next accepted connection.
func enters(t *testing.T, d *acceptPacer) *conn {
	t.Helper()
	n, err := d.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	n.(*conn).follow(http.StateNew)
	return n.(*conn)
}

func TestAcceptPacer_SpreadsBursts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what     string
		limits   Limits
		from, to time.Duration
	}{
		{"few", Limits{AcceptsPerSecond: 1000}, 75 * time.Millisecond, 85 * time.Millisecond}, // 20 immediately, 80 at the rate
		{"more than the rate accepts soon", Limits{AcceptsPerSecond: 100}, 300 * time.Millisecond, 600 * time.Millisecond},
		{"from a proxy", Limits{AcceptsPerSecond: 100, IsProxy: anyProxy}, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d := opened(t, c.limits)
				s.arrive(t, "192.0.2.1", 100)
				begin := time.Now()
				for range 100 {
					enters(t, d)
				}
				if took := time.Since(begin); took < c.from || took > c.to {
					t.Errorf("100 connections were accepted within %s, want %s to %s", took, c.from, c.to)
				}
			})
		})
	}
}

func TestAcceptPacer_AddressesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{AcceptsPerSecond: 100})
		s.arrive(t, "192.0.2.1", 200)
		s.arrive(t, "192.0.2.2", 200)
		s.arrive(t, "192.0.2.3", 1)
		for range 3 {
			if enters(t, d).origin == "192.0.2.3" {
				return
			}
		}
		t.Error("one connection waits for all earlier ones of other addresses")
	})
}

func TestAcceptPacer_SkipsShedConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{AcceptsPerSecond: 100, Connections: 10})
		s.arrive(t, "192.0.2.1", 100)
		s.arrive(t, "192.0.2.2", 1)
		begin := time.Now()
		for range 6 {
			if n := enters(t, d); n.isClosed() {
				t.Errorf("a shed connection of %s was accepted", n.origin)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("shed connections delayed others by %s", took)
		}
		if n := d.waiting(); n != 0 {
			t.Errorf("%d more wait", n)
		}
	})
}

// If every address has one connection, accepted idle ones are shed first: a waiting client had no time to send a
// request.
func TestAcceptPacer_WaitingConnectionsAreShedLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{AcceptsPerSecond: 100, Connections: 20})
		for i := range 10 {
			s.arrive(t, fmt.Sprint("192.0.2.", i), 1)
			enters(t, d)
		}
		for i := range 20 {
			s.arrive(t, fmt.Sprint("198.51.100.", i), 1)
		}
		if n := d.waiting(); n != 20 {
			t.Errorf("%d of 20 are still waiting", n)
		}
	})
}

func TestAcceptPacer_CloseAcceptsWaitingConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{AcceptsPerSecond: 100})
		s.arrive(t, "192.0.2.1", 60)
		begin := time.Now()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			enters(t, d)
		}
		if n, err := d.Accept(); err == nil {
			t.Errorf("then %v was accepted", n)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("accepting them took %s", took)
		}
	})
}

func TestAcceptPacer_ClosesWaitingConnectionsAtEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{})
		s.arrive(t, "192.0.2.1", 3)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d.closeWaiting()
		if left := len(d.crowd.conns); left > 0 {
			t.Errorf("%d connections remain", left)
		}
	})
}
