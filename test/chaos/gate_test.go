package chaos_test

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate passes connections on, as a balancer or a cable does, and can be cut.
type gate struct {
	addr string
	cut  atomic.Bool
	gone atomic.Int64 // connections that a cut has ended or turned away
	dial func(context.Context) (net.Conn, error)
	both func(from, on net.Conn) // passes on what comes, until one of them ends

	mu   sync.Mutex
	open map[net.Conn]bool
}

func newGate(t testing.TB, dial func(context.Context) (net.Conn, error)) *gate {
	t.Helper()
	return newPassingGate(t, dial, passAll)
}

// newToldGate tells of each connection that has come, and of the one that it goes on by, before anything passes.
func newToldGate(t testing.TB, dial func(context.Context) (net.Conn, error), told func(from, on net.Conn)) *gate {
	t.Helper()
	return newPassingGate(t, dial, func(from, on net.Conn) {
		told(from, on)
		passAll(from, on)
	})
}

// newPassingGate has both pass on what comes by each connection.
func newPassingGate(t testing.TB, dial func(context.Context) (net.Conn, error), both func(from, on net.Conn)) *gate {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: l.Addr().String(), dial: dial, both: both, open: map[net.Conn]bool{}}
	ctx := t.Context()
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { g.pass(ctx, c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.sever()
		passing.Wait()
	})
	return g
}

// sever ends the connections that there are.
func (g *gate) sever() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		c.Close()
	}
	if g.cut.Load() {
		g.gone.Add(int64(len(g.open) / 2)) // each comes and goes on
	}
}

// gates are several to one place, so that it is known who comes through which.
type gates []*gate

// during cuts all of them while f runs.
func (all gates) during(f func()) {
	for _, g := range all {
		g.cut.Store(true)
		g.sever()
	}
	f()
	for _, g := range all {
		g.cut.Store(false)
	}
}

// lost is how many connections cuts have ended or turned away.
func (all gates) lost() (n int64) {
	for _, g := range all {
		n += g.gone.Load()
	}
	return n
}

func (g *gate) pass(ctx context.Context, c net.Conn) {
	defer c.Close()
	if g.cut.Load() {
		g.gone.Add(1)
		return
	}
	dialing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	d, err := g.dial(dialing)
	if err != nil {
		return
	}
	defer d.Close()
	g.mu.Lock()
	g.open[c], g.open[d] = true, true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.open, c)
		delete(g.open, d)
		g.mu.Unlock()
	}()
	if ctx.Err() != nil || g.cut.Load() {
		return
	}
	g.both(c, d)
}

func passAll(c, d net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, d}, {d, c}} {
		both.Go(func() {
			io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
		})
	}
	both.Wait()
}
