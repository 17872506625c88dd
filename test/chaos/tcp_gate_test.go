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

// gate forwards connections, like a load balancer or a network, and can be cut.
type gate struct {
	addr string
	cut  atomic.Bool
	gone atomic.Int64 // connections that a cut has ended or rejected
	dial func(context.Context) (net.Conn, error)
	both func(from, on net.Conn) // forwards data until one of them ends

	mu   sync.Mutex
	open map[net.Conn]bool
}

func newGate(t testing.TB, dial func(context.Context) (net.Conn, error)) *gate {
	t.Helper()
	return newPassingGate(t, dial, passAll)
}

// newToldGate calls begins for each connection and its forwarding connection before any data passes.
func newToldGate(t testing.TB, dial func(context.Context) (net.Conn, error), told func(from, on net.Conn)) *gate {
	t.Helper()
	return newPassingGate(t, dial, func(from, on net.Conn) {
		told(from, on)
		passAll(from, on)
	})
}

// newPassingGate makes both forward each connection.
func newPassingGate(t testing.TB, dial func(context.Context) (net.Conn, error), both func(from, on net.Conn)) *gate {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{
		addr: l.Addr().String(),
		dial: dial,
		both: both,
		open: map[net.Conn]bool{},
	}
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

// sever closes all connections.
func (g *gate) sever() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		c.Close()
	}
	if g.cut.Load() {
		g.gone.Add(int64(len(g.open) / 2)) // each has two ends
	}
}

// gates are several gates to one target, one for each client.
type gates []*gate

// during cuts all gates while f runs.
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

// lost returns how many connections cuts have ended or rejected.
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
