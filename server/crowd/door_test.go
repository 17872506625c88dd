package crowd

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// street is a listener that connections come to in the order in which they are sent.
type street struct {
	come   chan net.Conn
	closed chan struct{}
}

func (s *street) Accept() (net.Conn, error) {
	select {
	case n := <-s.come:
		return n, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *street) Close() error { close(s.closed); return nil }

func (s *street) Addr() net.Addr { return &net.TCPAddr{} }

// comer is a connection of some address.
type comer struct {
	net.Conn
	from string
}

func (c comer) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 1))
}

// arrive has n connections of an address come, and says when all have been seen.
func (s *street) arrive(t *testing.T, from string, n int) {
	t.Helper()
	for range n {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		s.come <- comer{ours, from}
	}
	synctest.Wait()
}

func opened(t *testing.T, l Limits) (*street, net.Listener) {
	t.Helper()
	s := &street{come: make(chan net.Conn), closed: make(chan struct{})}
	door := New(l).listen(s)
	t.Cleanup(func() { door.Close() })
	return s, door
}

func entered(t *testing.T, l net.Listener) string {
	t.Helper()
	n, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n.(*conn).place
}

func TestConnectionsThatComeAtOnceAreLetInOneAfterAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, door := opened(t, Limits{Arrivals: 100})
		s.arrive(t, "192.0.2.1", 220)
		begin := time.Now()
		for range 220 {
			entered(t, door)
		}
		if took := time.Since(begin); took < 2*time.Second-50*time.Millisecond || took > 2*time.Second+50*time.Millisecond {
			t.Errorf("220 connections were let in within %s, want 20 at once and 100 a second", took)
		}
	})
}

func TestWhoComesSeldomDoesNotWaitForManyOfAnotherAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, door := opened(t, Limits{Arrivals: 100})
		s.arrive(t, "192.0.2.1", 200)
		s.arrive(t, "192.0.2.2", 200)
		s.arrive(t, "192.0.2.3", 1)
		for range 3 {
			if entered(t, door) == "192.0.2.3" {
				return
			}
		}
		t.Error("one connection waits for those of others that came before it")
	})
}

func TestConnectionsThatGaveWayAtTheDoorAreNotLetIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, door := opened(t, Limits{Arrivals: 100, Connections: 10})
		s.arrive(t, "192.0.2.1", 100)
		s.arrive(t, "192.0.2.2", 1)
		begin := time.Now()
		for range 6 {
			n, err := door.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if n.(*conn).left() {
				t.Error("a connection was let in that had given way")
			}
			defer n.Close()
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("what had given way was waited for, for %s", took)
		}
	})
}

func TestADoorThatShutsSendsAwayWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &street{come: make(chan net.Conn), closed: make(chan struct{})}
		c := New(Limits{})
		door := c.listen(s)
		s.arrive(t, "192.0.2.1", 3)
		if err := door.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err := door.Accept(); err == nil {
			t.Errorf("%v was let in", n)
		}
		if left := len(c.conns); left > 0 {
			t.Errorf("%d connections are still there", left)
		}
	})
}
