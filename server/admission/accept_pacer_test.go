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

func opened(t *testing.T, l Limits) (*street, *door) {
	t.Helper()
	s := &street{come: make(chan net.Conn), closed: make(chan struct{})}
	d := New(l).listen(s)
	t.Cleanup(func() {
		if !d.shut {
			d.Close()
		}
		d.clear()
	})
	return s, d
}

// enters is the next one that is let in.
func enters(t *testing.T, d *door) *conn {
	t.Helper()
	n, err := d.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	n.(*conn).is(http.StateNew)
	return n.(*conn)
}

func TestConnectionsThatComeAtOnceAreLetInOneAfterAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what     string
		limits   Limits
		from, to time.Duration
	}{
		{"few", Limits{Arrivals: 1000}, 75 * time.Millisecond, 85 * time.Millisecond}, // 20 at once, 80 at their pace
		{"more than that lets in soon", Limits{Arrivals: 100}, 300 * time.Millisecond, 600 * time.Millisecond},
		{"those of a proxy", Limits{Arrivals: 100, Proxied: true}, 0, 0},
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
					t.Errorf("100 connections were let in within %s, want %s to %s", took, c.from, c.to)
				}
			})
		})
	}
}

func TestWhoComesSeldomDoesNotWaitForManyOfAnotherAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{Arrivals: 100})
		s.arrive(t, "192.0.2.1", 200)
		s.arrive(t, "192.0.2.2", 200)
		s.arrive(t, "192.0.2.3", 1)
		for range 3 {
			if enters(t, d).place == "192.0.2.3" {
				return
			}
		}
		t.Error("one connection waits for those of others that came before it")
	})
}

func TestConnectionsThatGaveWayAtTheDoorAreNotLetIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{Arrivals: 100, Connections: 10})
		s.arrive(t, "192.0.2.1", 100)
		s.arrive(t, "192.0.2.2", 1)
		begin := time.Now()
		for range 6 {
			if n := enters(t, d); n.left() {
				t.Errorf("a connection of %s was let in that had given way", n.place)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("what had given way was waited for, for %s", took)
		}
		if n := d.waiting(); n != 0 {
			t.Errorf("%d more wait", n)
		}
	})
}

// Where everybody has come once, those give way that have been let in and ask for nothing: who waits has not had the time to.
func TestWhoWaitsAtTheDoorGivesWayLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{Arrivals: 100, Connections: 20})
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

func TestADoorThatShutsLetsInWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{Arrivals: 100})
		s.arrive(t, "192.0.2.1", 60)
		begin := time.Now()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			enters(t, d)
		}
		if n, err := d.Accept(); err == nil {
			t.Errorf("then %v was let in", n)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("that took %s", took)
		}
	})
}

func TestADoorWhoseServerHasEndedSendsAwayWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := opened(t, Limits{})
		s.arrive(t, "192.0.2.1", 3)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d.clear()
		if left := len(d.crowd.conns); left > 0 {
			t.Errorf("%d connections are still there", left)
		}
	})
}
