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

// origin is a client address with its connections.
type place struct{ conns map[*conn]struct{} }

// conn is a client connection. Its state says what closing it would lose.
type conn struct {
	net.Conn
	crowd *Crowd
	place string
	state atomic.Int32
	since atomic.Int64 // nanoseconds
	gone  chan struct{}
	end   func() // closes the channel closed

	// bytes since the last request; only for the server's reader goroutine
	header int
	head   *visit // set when there are many
}

const (
	arriving int32 = iota // not accepted yet
	// for a request or the rest of its header
	waiting
	asking  // receiving a body
	reading // sending a response
	working
)

func (n *conn) becomes(state int32) {
	n.since.Store(time.Now().UnixNano())
	n.state.Store(state)
}

// Read counts the bytes of a header, which the server holds until it is complete.
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

// headerDone ends the count of a header.
func (n *conn) read() {
	n.header = 0
	if n.head != nil {
		n.head.leave()
		n.head = nil
	}
}

// follow follows the server's state. The server calls a connection active once a header has arrived.
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

// Close closes the connection. Both the server and load shedding call it.
func (n *conn) Close() error {
	n.crowd.mu.Lock()
	n.crowd.forget(n)
	n.crowd.mu.Unlock()
	n.end()
	return n.Conn.Close()
}

// CloseWrite closes the sending side. It lets the server respond to a request whose body it does not read.
func (n *conn) CloseWrite() error {
	if half, ok := n.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// forget removes a connection; with c.mu held. It may be called twice.
func (c *Crowd) forget(n *conn) {
	delete(c.conns, n)
	if p := c.places[n.place]; p != nil {
		if delete(p.conns, n); len(p.conns) == 0 {
			delete(c.places, n.place)
		}
	}
}

// isClosed reports whether a connection has ended or was shed.
func (n *conn) left() bool {
	select {
	case <-n.gone:
		return true
	default:
		return false
	}
}

// admit registers a connection. If there are too many, it sheds others; nil means that none could be shed.
func (c *Crowd) enter(inner net.Conn) *conn {
	n := &conn{
		Conn:  inner,
		crowd: c,
		place: addressOf(inner.RemoteAddr().String()),
		gone:  make(chan struct{}),
	}
	n.end = sync.OnceFunc(func() { close(n.gone) })
	n.becomes(arriving)
	if tcp, ok := inner.(*net.TCPConn); ok {
		// the kernel's default also works while clients read
		_ = tcp.SetWriteBuffer(unsent)
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
		c.places[n.place] = p // it may have been removed
		p.conns[n], c.conns[n] = struct{}{}, struct{}{}
	} else if len(p.conns) == 0 {
		delete(c.places, n.place)
	}
	c.mu.Unlock()
	c.close(out)
	if tooMany {
		c.shed.Add(1)
		inner.Close() //nolint:errcheck // nothing was sent
		return nil
	}
	return n
}

func (c *Crowd) close(out []*conn) {
	c.shed.Add(int64(len(out)))
	for _, n := range out {
		n.end()
		n.Conn.Close() //nolint:errcheck // the connection is shed
	}
}

// largestOrigin returns the origin with most connections. Among equals it prefers one with an accepted connection; with
// c.mu held.
func (c *Crowd) largest() (most *place) {
	inside := false
	for _, p := range c.places {
		if most == nil || len(p.conns) > len(most.conns) || len(p.conns) == len(most.conns) && !inside {
			most, inside = p, p.inside()
		}
	}
	return most
}

// hasAccepted reports whether a connection of the origin was accepted.
func (p *place) inside() bool {
	for n := range p.conns {
		if n.state.Load() != arriving {
			return true
		}
	}
	return false
}

// pickVictims chooses the connections of an origin to shed: those that have waited longest for a request, else those
// with the longest transfer of a request or response, else the last ones not accepted yet. Connections whose request is
// being processed stay.
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
