package admission

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

type connKey struct{}

// place is where connections come from.
type place struct{ conns map[*conn]struct{} }

// conn is a connection. Its state is what it would lose if it were closed.
type conn struct {
	net.Conn
	crowd *Crowd
	place string
	state atomic.Int32
	since atomic.Int64 // nanoseconds
	gone  chan struct{}
	end   func() // closes gone

	header int    // bytes since the last request; read by the server's one reader
	head   *visit // where these are many
}

const (
	arriving int32 = iota // has not been let in yet
	waiting               // for a request, or for the rest of its header
	asking                // its body is being received
	reading               // its answer is being sent
	working
)

func (n *conn) becomes(state int32) {
	n.since.Store(time.Now().UnixNano())
	n.state.Store(state)
}

// Read counts what is received of a header, which the server keeps until it has all of it.
func (n *conn) Read(b []byte) (int, error) {
	got, err := n.Conn.Read(b)
	if n.state.Load() != waiting {
		return got, err
	}
	if n.header += got; n.header > ignored {
		if n.head == nil {
			n.head = n.crowd.enroll(n.place, n)
		}
		n.head.hold(got, false)
	}
	return got, err
}

// read is the end of a header.
func (n *conn) read() {
	n.header = 0
	if n.head != nil {
		n.head.leave()
		n.head = nil
	}
}

// is follows the server, to which a connection is active once a header has arrived.
func (n *conn) is(state http.ConnState) {
	switch state {
	case http.StateNew, http.StateIdle:
		n.becomes(waiting)
	case http.StateActive:
		n.read()
		n.becomes(working)
	case http.StateHijacked, http.StateClosed:
		n.read()
	}
}

// Close may come from both the server and whoever has to make room.
func (n *conn) Close() error {
	n.crowd.mu.Lock()
	n.crowd.forget(n)
	n.crowd.mu.Unlock()
	n.end()
	return n.Conn.Close()
}

// CloseWrite lets the server tell what is wrong with a request whose rest it does not read.
func (n *conn) CloseWrite() error {
	if half, ok := n.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// forget takes a connection out, if it has not been already; with c.mu held.
func (c *Crowd) forget(n *conn) {
	delete(c.conns, n)
	if p := c.places[n.place]; p != nil {
		if delete(p.conns, n); len(p.conns) == 0 {
			delete(c.places, n.place)
		}
	}
}

// left says that a connection has ended, or has given way.
func (n *conn) left() bool {
	select {
	case <-n.gone:
		return true
	default:
		return false
	}
}

// enter takes a connection in. Where there are too many others give way to it; nil: nobody could.
func (c *Crowd) enter(inner net.Conn) *conn {
	n := &conn{Conn: inner, crowd: c, place: addressOf(inner.RemoteAddr().String()), gone: make(chan struct{})}
	n.end = sync.OnceFunc(func() { close(n.gone) })
	n.becomes(arriving)
	if tcp, ok := inner.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(unsent) // the system's choice is as good, until somebody does not read
	}
	c.mu.Lock()
	p := c.places[n.place]
	if p == nil {
		p = &place{conns: map[*conn]struct{}{}}
		c.places[n.place] = p
	}
	var out []*conn
	if !c.limits.Proxied && len(p.conns) >= c.limits.Connections/2 {
		out = p.yield()
	}
	if len(out) == 0 && len(c.conns) >= c.limits.Connections {
		out = c.largest().yield()
	}
	for _, old := range out {
		c.forget(old)
	}
	tooMany := len(c.conns) >= c.limits.Connections || !c.limits.Proxied && len(p.conns) >= c.limits.Connections/2
	if !tooMany {
		c.places[n.place] = p // which may have been forgotten
		p.conns[n], c.conns[n] = struct{}{}, struct{}{}
	} else if len(p.conns) == 0 {
		delete(c.places, n.place)
	}
	c.mu.Unlock()
	c.close(out)
	if tooMany {
		c.shed.Add(1)
		inner.Close() //nolint:errcheck // nothing was said
		return nil
	}
	return n
}

func (c *Crowd) close(out []*conn) {
	c.shed.Add(int64(len(out)))
	for _, n := range out {
		n.end()
		n.Conn.Close() //nolint:errcheck // it is given up
	}
}

// largest is the place that has most connections, of those that have as many one that has been let in; with c.mu held.
func (c *Crowd) largest() (most *place) {
	inside := false
	for _, p := range c.places {
		if most == nil || len(p.conns) > len(most.conns) || len(p.conns) == len(most.conns) && !inside {
			most, inside = p, p.inside()
		}
	}
	return most
}

// inside says whether a connection of the place has been let in.
func (p *place) inside() bool {
	for n := range p.conns {
		if n.state.Load() != arriving {
			return true
		}
	}
	return false
}

// yield chooses which of a place's connections give way: those that have waited longest for a request, else those that
// take longest over sending one or over reading an answer, else those that came last and have not been let in. What is
// worked on stays.
func (p *place) yield() []*conn {
	var idle, slow, outside []*conn
	for n := range p.conns {
		switch n.state.Load() {
		case arriving:
			outside = append(outside, n)
		case waiting:
			idle = append(idle, n)
		case asking, reading:
			slow = append(slow, n)
		}
	}
	out := idle
	if len(out) == 0 {
		out = slow
	}
	slices.SortFunc(out, func(a, b *conn) int { return int(a.since.Load() - b.since.Load()) })
	if len(out) == 0 {
		out = outside
		slices.SortFunc(out, func(a, b *conn) int { return int(b.since.Load() - a.since.Load()) })
	}
	return out[:min(len(out), max(1, min(len(p.conns)/16, batch)))]
}
