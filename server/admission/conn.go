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
type origin struct{ conns map[*conn]struct{} }

// conn is a client connection. Its state says what closing it would lose.
type conn struct {
	net.Conn
	crowd  *Controller
	origin string
	proxy  bool // the peer is one of our own proxies
	state  atomic.Int32
	since  atomic.Int64 // nanoseconds
	closed chan struct{}
	end    func() // closes the channel closed

	// bytes since the last request; only for the server's reader goroutine
	header int
	head   *request // set when there are many
}

const (
	arriving int32 = iota // not accepted yet
	// for a request or the rest of its header.
	waiting
	asking  // receiving a body
	reading // sending a response
	working
)

func (n *conn) setState(state int32) {
	n.since.Store(time.Now().UnixNano())
	n.state.Store(state)
}

// Read counts the bytes of a header, which the server holds until it is complete.
func (n *conn) Read(b []byte) (int, error) {
	got, err := n.Conn.Read(b)
	if n.state.Load() != waiting {
		return got, err
	}
	if n.header += got; n.header > freeBytes {
		if n.head == nil {
			n.head = n.crowd.register(n.origin, n)
		}
		n.head.holdBytes(got, false)
	}
	return got, err
}

// headerDone ends the count of a header.
func (n *conn) headerDone() {
	n.header = 0
	if n.head != nil {
		n.head.end()
		n.head = nil
	}
}

// follow follows the server's state. The server calls a connection active once a header has arrived.
func (n *conn) follow(state http.ConnState) {
	switch state {
	case http.StateNew, http.StateIdle:
		n.setState(waiting)
	case http.StateActive:
		n.headerDone()
		n.setState(working)
	case http.StateHijacked, http.StateClosed:
		n.headerDone()
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
func (c *Controller) forget(n *conn) {
	delete(c.conns, n)
	if p := c.origins[n.origin]; p != nil {
		if delete(p.conns, n); len(p.conns) == 0 {
			delete(c.origins, n.origin)
		}
	}
}

// isClosed reports whether a connection has ended or was shed.
func (n *conn) isClosed() bool {
	select {
	case <-n.closed:
		return true
	default:
		return false
	}
}

// admit registers a connection. If there are too many, it sheds others; nil means that none could be shed.
func (c *Controller) admit(inner net.Conn) *conn {
	n := &conn{
		Conn:   inner,
		crowd:  c,
		origin: addressOf(inner.RemoteAddr().String()),
		proxy:  c.limits.IsProxy(inner.RemoteAddr()),
		closed: make(chan struct{}),
	}
	n.end = sync.OnceFunc(func() { close(n.closed) })
	n.setState(arriving)
	if tcp, ok := inner.(*net.TCPConn); ok {
		// the kernel's default also works while clients read
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	c.mu.Lock()
	p := c.origins[n.origin]
	if p == nil {
		p = &origin{conns: map[*conn]struct{}{}}
		c.origins[n.origin] = p
	}
	var out []*conn
	if !n.proxy && len(p.conns) >= c.limits.Connections/2 {
		out = p.pickVictims()
	}
	if len(out) == 0 && len(c.conns) >= c.limits.Connections {
		out = c.largestOrigin().pickVictims()
	}
	for _, old := range out {
		c.forget(old)
	}
	tooMany := len(c.conns) >= c.limits.Connections || !n.proxy && len(p.conns) >= c.limits.Connections/2
	if !tooMany {
		c.origins[n.origin] = p // it may have been removed
		p.conns[n], c.conns[n] = struct{}{}, struct{}{}
	} else if len(p.conns) == 0 {
		delete(c.origins, n.origin)
	}
	c.mu.Unlock()
	c.closeAll(out)
	if tooMany {
		c.shed.Add(1)
		inner.Close() //nolint:errcheck // nothing was sent
		return nil
	}
	return n
}

func (c *Controller) closeAll(out []*conn) {
	c.shed.Add(int64(len(out)))
	for _, n := range out {
		n.end()
		n.Conn.Close() //nolint:errcheck // the connection is shed
	}
}

// largestOrigin returns the origin with most connections. Among equals it prefers one with an accepted connection; with
// c.mu held.
func (c *Controller) largestOrigin() (most *origin) {
	inside := false
	for _, p := range c.origins {
		if most == nil || len(p.conns) > len(most.conns) || len(p.conns) == len(most.conns) && !inside {
			most, inside = p, p.hasAccepted()
		}
	}
	return most
}

// hasAccepted reports whether a connection of the origin was accepted.
func (p *origin) hasAccepted() bool {
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
func (p *origin) pickVictims() []*conn {
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
	return out[:min(len(out), max(1, min(len(p.conns)/16, shedBatch)))]
}
